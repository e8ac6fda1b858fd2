#include "replay/data/tensor_data.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <xxhash.h>

#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "replay/data/reserved_memory.h"

namespace fusebox {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kBadInputSpec, message); }

std::string list(std::span<const int64_t> numbers) {
  std::string s = "[";
  for (size_t i = 0; i < numbers.size(); ++i) s += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return s + "]";
}

// A tensor without elements takes no memory, but its strides are those of one whose empty axes have an extent of 1.
[[noreturn]] void refuse_span(std::span<const int64_t> shape) {
  const std::string tensor = "a tensor of " + list(shape);
  throw Error(ErrorCode::kOutOfMemory,
              std::ranges::count(shape, 0) > 0
                  ? tensor +
                        " has no elements, but its strides and indices are computed as if its empty axes had one, and "
                        "span more than 2^56 places; make the extents other than 0 smaller"
                  : tensor + " spans more than 2^56 places; make it smaller");
}

// Loads an unsigned integer of the element's width. A complex element has two.
template <class Word>
ConstantBits load_as(const std::byte* at) {
  Word w;
  std::memcpy(&w, at, sizeof w);
  return {static_cast<uint64_t>(w), 0};
}
template <class Word>
void store_as(std::byte* at, uint64_t bits) {
  const Word w = static_cast<Word>(bits);
  std::memcpy(at, &w, sizeof w);
}

std::shared_ptr<std::byte> zeroed_storage(int64_t bytes, bool sparse) {
  if (sparse) return reserve_zeroed(bytes);
  // Fresh pages are zero, so calloc costs nothing for large tensors.
  void* memory = std::calloc(static_cast<size_t>(bytes) + kStorageAlign, 1);
  if (memory == nullptr)
    throw Error(ErrorCode::kOutOfMemory,
                "there is no memory for a tensor of " + std::to_string(bytes) + " bytes; use smaller inputs");
  const auto address = reinterpret_cast<uintptr_t>(memory);
  std::byte* aligned = static_cast<std::byte*>(memory) + (kStorageAlign - address % kStorageAlign) % kStorageAlign;
  return {aligned, [memory](std::byte*) { std::free(memory); }};
}

}  // namespace

bool is_sparse(Dtype dtype, std::span<const int64_t> shape, int64_t storage_elems) {
  constexpr int64_t kLargeBytes = int64_t{1} << 24, kPageBytes = 4096;
  // Sparse: each element has several pages for itself.
  return storage_elems > kLargeBytes / size_bytes(dtype) &&
         element_count(shape) < storage_elems / (16 * kPageBytes / size_bytes(dtype));
}

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t e : shape) count *= e;
  return count;
}

std::vector<int64_t> contiguous_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

int64_t span_elems(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

bool is_contiguous(const TensorData& t) {
  if (element_count(t.shape) == 0) return true;
  int64_t step = 1;
  for (size_t i = t.shape.size(); i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != step) return false;
    step *= t.shape[i];
  }
  return true;
}

bool overlaps(std::span<const int64_t> shape, std::span<const int64_t> strides, bool besides_broadcast) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return false;
    if (shape[i] == 1) continue;
    if (strides[i] == 0 && besides_broadcast) continue;
    axes.emplace_back(strides[i], shape[i]);
  }
  // Sorted by stride, each axis has to step over the whole reach of the axes before it. (Some interleaved layouts do
  // not overlap either.)
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return true;
    reach += (extent - 1) * stride;
  }
  return false;
}

TensorData allocate_tensor(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset) {
  if (strides.empty() && !shape.empty()) {
    for (int64_t e : shape)
      if (e < 0) refuse("an extent of " + std::to_string(e) + " is negative; give 0 or more");
    strides = contiguous_strides(shape);
  }
  if (strides.size() != shape.size())
    refuse(std::to_string(strides.size()) + " strides are given for " + std::to_string(shape.size()) +
           " axes; give one for each");
  if (offset < 0) refuse("an offset of " + std::to_string(offset) + " lies before the storage; give 0 or more");
  // Computes in 128 bits, because a shape from outside may overflow.
  constexpr __int128 kMost = int64_t{1} << 56;
  __int128 count = 1, last = offset;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) refuse("an extent of " + std::to_string(shape[i]) + " is negative; give 0 or more");
    if (strides[i] < 0) refuse("a stride of " + std::to_string(strides[i]) + " is negative; give 0 or more");
    empty |= shape[i] == 0;
    count *= std::max<int64_t>(shape[i], 1);
    last += __int128{std::max<int64_t>(shape[i] - 1, 0)} * strides[i];
    if (count > kMost || last > kMost) refuse_span(shape);
  }
  TensorData t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.strides = std::move(strides);
  t.offset = offset;
  t.storage_elems = empty ? offset : static_cast<int64_t>(last) + 1;
  t.storage = zeroed_storage(t.storage_elems * size_bytes(dtype), is_sparse(t));
  return t;
}

TensorData external_tensor(Dtype dtype, void* data, std::vector<int64_t> shape, std::vector<int64_t> strides,
                           std::shared_ptr<void> owner) {
  TensorData t;
  t.dtype = dtype;
  t.storage_elems = span_elems(shape, strides);
  t.shape = std::move(shape);
  t.strides = std::move(strides);
  t.storage = std::shared_ptr<std::byte>(std::move(owner), static_cast<std::byte*>(data));
  return t;
}

int64_t position_of(const TensorData& t, std::span<const int64_t> index) {
  int64_t position = t.offset;
  for (size_t i = 0; i < index.size(); ++i) position += index[i] * t.strides[i];
  return position;
}

ConstantBits load_element(const TensorData& t, int64_t position) {
  const int64_t size = size_bytes(t.dtype);
  const std::byte* at = t.storage.get() + position * size;
  switch (row_of(t.dtype).kind) {
    case DtypeKind::kSigned:
      switch (size) {
        case 1:
          return {static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(load_as<uint8_t>(at).low))), 0};
        case 2:
          return {static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(load_as<uint16_t>(at).low))), 0};
        case 4:
          return {static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(load_as<uint32_t>(at).low))), 0};
        default:
          return load_as<uint64_t>(at);
      }
    case DtypeKind::kComplex:
      if (size == 8) return {load_as<uint32_t>(at).low, load_as<uint32_t>(at + 4).low};
      return {load_as<uint64_t>(at).low, load_as<uint64_t>(at + 8).low};
    case DtypeKind::kBoolean:
      return {load_as<uint8_t>(at).low != 0 ? uint64_t{1} : 0, 0};
    case DtypeKind::kUnsigned:
    case DtypeKind::kFloating:
    case DtypeKind::kPacked:
      break;
  }
  switch (size) {
    case 1:
      return load_as<uint8_t>(at);
    case 2:
      return load_as<uint16_t>(at);
    case 4:
      return load_as<uint32_t>(at);
    default:
      return load_as<uint64_t>(at);
  }
}

void store_element(const TensorData& t, int64_t position, ConstantBits bits) {
  const int64_t size = size_bytes(t.dtype);
  std::byte* at = t.storage.get() + position * size;
  if (is_complex(t.dtype)) {
    if (size == 8) {
      store_as<uint32_t>(at, bits.low);
      store_as<uint32_t>(at + 4, bits.high);
    } else {
      store_as<uint64_t>(at, bits.low);
      store_as<uint64_t>(at + 8, bits.high);
    }
    return;
  }
  switch (size) {
    case 1:
      return store_as<uint8_t>(at, bits.low);
    case 2:
      return store_as<uint16_t>(at, bits.low);
    case 4:
      return store_as<uint32_t>(at, bits.low);
    default:
      return store_as<uint64_t>(at, bits.low);
  }
}

void copy_elements(const TensorData& to, const TensorData& from) {
  check_internal(to.shape == from.shape && to.dtype == from.dtype, "tensors of different shape or dtype are copied");
  const int64_t size = size_bytes(to.dtype);
  if (is_contiguous(to) && is_contiguous(from)) {
    if (const int64_t count = element_count(to.shape))
      std::memcpy(to.data(), from.data(), static_cast<size_t>(count * size));
    return;
  }
  std::vector<int64_t> starts;
  for_each_run(to, [&](int64_t position, int64_t, int64_t) { starts.push_back(position); });
  const int64_t to_stride = to.shape.empty() ? 1 : to.strides.back();
  size_t run = 0;
  for_each_run(from, [&](int64_t position, int64_t stride, int64_t count) {
    std::byte* t = to.storage.get() + starts[run++] * size;
    const std::byte* f = from.storage.get() + position * size;
    if (stride == 1 && to_stride == 1) {
      std::memcpy(t, f, static_cast<size_t>(count * size));
    } else {
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(t + i * to_stride * size, f + i * stride * size, static_cast<size_t>(size));
    }
  });
}

TensorData contiguous_copy(const TensorData& t) {
  TensorData result = allocate_tensor(t.dtype, t.shape);
  copy_elements(result, t);
  return result;
}

TensorData converted_copy(const TensorData& t, Dtype dtype) {
  if (t.dtype == dtype) return contiguous_copy(t);
  TensorData result = allocate_tensor(dtype, t.shape);
  int64_t to = 0;
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      store_element(result, to++, convert(t.dtype, load_element(t, position + i * stride), dtype));
  });
  return result;
}

TensorData deep_copy(const TensorData& t) {
  TensorData result = t;
  result.storage = zeroed_storage(t.storage_elems * size_bytes(t.dtype), is_sparse(t));
  if (is_sparse(t))
    copy_elements(result, t);
  else if (t.storage_elems > 0)
    std::memcpy(result.storage.get(), t.storage.get(), static_cast<size_t>(t.storage_elems * size_bytes(t.dtype)));
  return result;
}

DefinedElements::DefinedElements(const TensorData& t) {
  const auto count = static_cast<size_t>(t.storage_elems);
  if (is_sparse(t)) {
    reserved_ = reserve_zeroed(t.storage_elems);
    flags_ = {reinterpret_cast<uint8_t*>(reserved_.get()), count};
  } else {
    small_.assign(count, 0);
    flags_ = small_;
  }
}

DefinedElements DefinedElements::all(const TensorData& t) {
  DefinedElements d(t);
  std::fill(d.flags_.begin(), d.flags_.end(), uint8_t{1});
  return d;
}

void DefinedElements::define(const TensorData& t) {
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) flags_[static_cast<size_t>(position + i * stride)] = 1;
  });
}

std::optional<int64_t> DefinedElements::first_missing(const TensorData& t) const {
  std::optional<int64_t> first;
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      if (const int64_t at = position + i * stride; !(*this)[at] && (!first || at < *first)) first = at;
  });
  return first;
}

std::vector<int64_t> positions_of(const TensorData& t) {
  std::vector<int64_t> positions;
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) positions.push_back(position + i * stride);
  });
  return positions;
}

Digest digest(const TensorData& t, const DefinedElements* defined) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  const auto number = [&](uint64_t n) { XXH3_128bits_update(&state, &n, sizeof n); };
  const std::string_view name = text(t.dtype);
  XXH3_128bits_update(&state, name.data(), name.size());
  number(t.shape.size());
  for (int64_t e : t.shape) number(static_cast<uint64_t>(e));
  for (size_t i = 0; i < t.shape.size(); ++i) number(t.shape[i] > 1 ? static_cast<uint64_t>(t.strides[i]) : 0);
  const int64_t size = size_bytes(t.dtype);
  std::vector<std::byte> gathered;
  int64_t undefined = 0;
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    const std::byte* from = t.storage.get() + position * size;
    if (stride == 1 && !defined) {
      XXH3_128bits_update(&state, from, static_cast<size_t>(count * size));
      return;
    }
    gathered.resize(static_cast<size_t>(count * size));
    size_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (defined && !(*defined)[position + i * stride]) {
        ++undefined;
        continue;
      }
      std::memcpy(gathered.data() + kept, from + i * stride * size, static_cast<size_t>(size));
      kept += static_cast<size_t>(size);
    }
    XXH3_128bits_update(&state, gathered.data(), kept);
    if (kept < gathered.size())
      for (int64_t i = 0; i < count; ++i)
        if (!(*defined)[position + i * stride]) number(static_cast<uint64_t>(i));
  });
  if (undefined > 0) number(static_cast<uint64_t>(undefined));
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return Digest{hash.low64, hash.high64};
}

std::string describe(const TensorData& t) {
  std::string s = std::string(text(t.dtype)) + list(t.shape);
  if (!is_contiguous(t)) s += " strides " + list(t.strides);
  return s;
}

namespace {

// The largest power of two, up to 16, that divides the address of element (0, 0, …). Storage is aligned further, so this
// does not depend on where it lies.
int64_t align_of(const TensorData& t) {
  const auto address = reinterpret_cast<uintptr_t>(t.data());
  return address == 0 ? 16 : static_cast<int64_t>(std::min<uintptr_t>(address & (~address + 1), 16));
}

}  // namespace

std::vector<BoundInput> bound_inputs(std::span<const Argument> arguments) {
  std::vector<BoundInput> bound;
  bound.reserve(arguments.size());
  for (const Argument& a : arguments) {
    BoundInput b;
    b.is_scalar = a.is_scalar;
    b.bits = a.bits;
    b.shape = a.tensor.shape;
    b.strides = a.tensor.strides;
    if (!a.is_scalar) b.align = align_of(a.tensor);
    bound.push_back(std::move(b));
  }
  return bound;
}

}  // namespace fusebox
