#include "replay/aten/segment.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <numeric>

#include "ir/table/families.h"
#include "replay/aten/failures.h"
#include "replay/aten/native.h"
#include "replay/data/tensor_data.h"

namespace fusebox::aten {
namespace {

// PyTorch's library of GPU kernels lies beside the one that this module is linked to. Python has loaded it already.
bool load_gpu_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) == 0 || info.dli_fname == nullptr) return false;
  const auto path = std::filesystem::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return false;
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) return false;
  return at::globalContext().hasCUDA();
}

at::Device device_of(const AtenPlace& place) {
  return place.is_gpu ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(place.ordinal)) : at::Device(at::kCPU);
}

// The driver's stream as PyTorch's current one. PyTorch's number of a stream that it did not make is its address, and 0
// is the default stream.
class OnStream {
 public:
  explicit OnStream(const AtenPlace& place) {
    if (!place.is_gpu) return;
    guard_.emplace(c10::Stream(c10::Stream::UNSAFE, device_of(place), reinterpret_cast<c10::StreamId>(place.stream)));
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

// No gradients, and no modes of Python, which would take its lock.
struct Plain {
  const c10::InferenceMode no_gradients;
  const c10::impl::ExcludeDispatchKeyGuard no_python{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
};

at::Tensor tensor_of(const AtenValue& v, const at::Device& device) {
  const auto options = at::TensorOptions(native_type(v.dtype)).device(device);
  return at::from_blob(v.data, v.layout.shape, v.layout.strides, [keeper = v.keeper](void*) {}, options, device);
}

// An axis of stride 0 is stored once.
at::Tensor with_strides(const at::Tensor& t, at::IntArrayRef strides) {
  const at::Tensor made = at::empty_strided(t.sizes(), strides, t.options());
  at::Tensor to = made, from = t;
  for (int64_t a = 0; a < t.dim(); ++a)
    if (strides[static_cast<size_t>(a)] == 0 && t.size(a) > 1) to = to.narrow(a, 0, 1), from = from.narrow(a, 0, 1);
  to.copy_(from);
  return made;
}

// The bytes of every tensor of ATen's on a CPU begin at such an address. Libraries add in another order elsewhere.
constexpr uintptr_t kAlignment = 64;

// Whether elements lie so far apart that a library's operand is moved together: a copy of all between them could need too
// much memory.
bool is_sparse(at::IntArrayRef sizes, at::IntArrayRef strides) {
  const int64_t count = c10::multiply_integers(sizes);
  return count > 0 && span_elems(sizes, strides) > 8 * count;
}

// Strides by which the axes lie in the same order, one beside another. An axis of stride 0 keeps it.
std::vector<int64_t> strides_together(at::IntArrayRef sizes, at::IntArrayRef given) {
  std::vector<int64_t> order(sizes.size()), strides = given.vec();
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::less(), [&](int64_t axis) { return given[static_cast<size_t>(axis)]; });
  int64_t next = 1;
  for (const int64_t axis : order) {
    const auto i = static_cast<size_t>(axis);
    if (given[i] != 0) next *= sizes[i], strides[i] = next / sizes[i];
  }
  return strides;
}

// The tensor as ATen would have put it into memory, so that results do not depend on where a caller's memory lies.
at::Tensor aligned(const at::Tensor& t) {
  if (!t.is_cpu() || t.numel() == 0) return t;
  if (is_sparse(t.sizes(), t.strides())) return with_strides(t, strides_together(t.sizes(), t.strides()));
  if (reinterpret_cast<uintptr_t>(t.data_ptr()) % kAlignment == 0) return t;
  const int64_t span = span_elems(t.sizes(), t.strides());
  const at::Tensor flat = at::empty({span}, t.options());
  std::memcpy(flat.data_ptr(), t.data_ptr(), static_cast<size_t>(span * t.element_size()));
  return flat.as_strided(t.sizes(), t.strides());
}

AtenValue value_of(Dtype dtype, const at::Tensor& t) {
  AtenValue v;
  v.dtype = dtype;
  v.layout = {t.sizes().vec(), t.strides().vec()};
  v.data = t.data_ptr();
  v.keeper = std::make_shared<at::Tensor>(t);
  return v;
}

std::vector<BoundInput> bound(std::span<const AtenValue> given) {
  std::vector<BoundInput> all;
  for (const AtenValue& v : given) {
    BoundInput b;
    b.is_scalar = v.is_scalar, b.bits = v.bits, b.shape = v.layout.shape, b.strides = v.layout.strides;
    all.push_back(std::move(b));
  }
  return all;
}

// Whether libraries that ATen calls compute ops of the segment.
bool calls_libraries(const Graph& segment) {
  return std::ranges::any_of(segment.ops, [](const Op& op) { return demands(op.kind, kLibrary); });
}

constexpr FailureWords kInferring{"an ATen segment", ErrorCode::kNoLayout,
                                  "ATen does not tell the strides of the segment's outputs: ", "; run it in a kernel"};
constexpr FailureWords kRunning{"an ATen segment", ErrorCode::kDeviceFailure,
                                "ATen refuses an op of the segment: ", "; run it in a kernel"};

// Walks the segment on the meta device, and returns what `f` makes of the walk.
template <class F>
auto on_meta(const Graph& segment, std::span<const BoundInput> given, const ProductCall* call, F&& f) {
  return with_coded_failures("@" + segment.name, kInferring, [&] {
    const Plain plain;
    Native walk(segment, given, at::kMeta);
    const auto parameters = inputs(segment);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const BoundInput& b = given[i];
      if (b.is_scalar) continue;
      auto strides = b.strides.empty() && !b.shape.empty() ? at::detail::defaultStrides(b.shape) : b.strides;
      // As on a CPU, where a view of such an operand is an output of the same segment.
      if (calls_libraries(segment) && is_sparse(b.shape, strides)) strides = strides_together(b.shape, strides);
      walk.set(parameters[i],
               at::Tensor(at::detail::empty_strided_meta(b.shape, strides, native_type(segment[parameters[i]].dtype))));
    }
    walk.run(call);
    return f(walk);
  });
}

}  // namespace

bool can_use_gpu() {
  static const bool can = load_gpu_library();
  return can;
}

std::vector<AtenValue> run_segment(const Graph& segment, std::span<const AtenValue> given, const AtenPlace& place,
                                   const ProductCall* call) {
  return with_coded_failures("@" + segment.name, kRunning, [&] {
    const Plain plain;
    const OnStream on_stream(place);
    const at::Device device = device_of(place);
    Native walk(segment, bound(given), device);
    std::vector<const c10::StorageImpl*> taken;
    const bool multiplies = calls_libraries(segment);
    const auto parameters = inputs(segment);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (given[i].is_scalar) continue;
      const at::Tensor t = tensor_of(given[i], device);
      taken.push_back(t.storage().unsafeGetStorageImpl());
      walk.set(parameters[i], multiplies ? aligned(t) : t);
    }
    walk.run(call);
    std::vector<AtenValue> results;
    for (const OutputRef& out : outputs(segment)) {
      at::Tensor t = walk.value(out.value);
      const auto* storage = t.storage().unsafeGetStorageImpl();
      // A view of something else gets memory of its own, with the same strides.
      if (t.storage_offset() != 0 || std::ranges::find(taken, storage) != taken.end()) t = with_strides(t, t.strides());
      taken.push_back(t.storage().unsafeGetStorageImpl());
      results.push_back(value_of(segment[out.value].dtype, t));
    }
    return results;
  });
}

std::vector<TensorLayout> infer_segment(const Graph& segment, std::span<const BoundInput> given,
                                        const ProductCall* call) {
  return on_meta(segment, given, call, [&](const Native& walk) {
    std::vector<TensorLayout> layouts;
    for (const OutputRef& out : outputs(segment)) {
      const at::Tensor& t = walk.value(out.value);
      layouts.push_back({t.sizes().vec(), t.strides().vec()});
    }
    return layouts;
  });
}

std::vector<std::string> referred_values(const Graph& segment, std::span<const BoundInput> given) {
  return on_meta(segment, given, nullptr, [&](const Native& walk) {
    std::vector<std::string> names;
    for (ValueId v : walk.referred()) names.push_back(segment[v].name);
    return names;
  });
}

AtenValue copied_tensor(const AtenValue& from, std::span<const int64_t> strides, const AtenPlace& place) {
  constexpr FailureWords kCopying{
      "a copy of an ATen segment's output", ErrorCode::kInvalidField,
      "the recorded strides of an ATen segment's output do not fit: ", "; record the run again"};
  const Plain plain;
  const OnStream on_stream(place);
  return with_coded_failures("stages", kCopying, [&] {
    return value_of(from.dtype, with_strides(tensor_of(from, device_of(place)), {strides.data(), strides.size()}));
  });
}

}  // namespace fusebox::aten
