#include <algorithm>
#include <deque>
#include <map>

#include "codegen/bytecode.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "replay/device/device.h"
#include "replay/host/bank_conflicts.h"

namespace fusebox {
namespace {

class HostDevice : public Device {
 public:
  explicit HostDevice(const HostDeviceOptions& options) {
    options_.threads = options.threads;
    options_.step_limit = options.step_limit, options_.memory_limit = options.memory_limit;
    options_.checks = options.checks, options_.observer = options.observer;
    banks_ = options.banks;
    defects_ = options.defects;
  }

  std::string_view name() const override { return "host"; }

  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) override {
    check_fits(dtype, shape);
    RunTensor t;
    t.layout = allocate_tensor(dtype, std::move(shape), std::move(strides));
    t.defined =
        std::make_shared<DefinedElements>(zeroed ? DefinedElements::all(t.layout) : DefinedElements::none(t.layout));
    return t;
  }

  RunTensor upload(const TensorData& from) override {
    RunTensor t;
    t.layout = deep_copy(from);
    t.defined = std::make_shared<DefinedElements>(DefinedElements::of_elements(t.layout));
    return t;
  }

  TensorData download(const RunTensor& t, const std::string& place) override {
    if (const auto missing = t.defined->first_missing(t.layout))
      throw Error(ErrorCode::kUnwrittenOutput,
                  "element " + std::to_string(*missing) + " of its storage was never written", place);
    return deep_copy(t.layout);
  }

  void copy(const RunTensor& to, const RunTensor& from) override {
    copy_elements(to.layout, from.layout);
    to.defined->define(to.layout);
  }

  int64_t alignment(const RunTensor& t) override {
    return alignment_of_view(reinterpret_cast<uintptr_t>(t.layout.data()), t.before);
  }

  size_t prepare(const Graph& kernel, const KernelUse& use) override {
    codes_.push_back(compile_bytecode(kernel, defects_));
    codes_.back().reads_apart = use.reads_apart;
    if (banks_) banks_->emplace_back(codes_.back());
    return codes_.size() - 1;
  }

  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override {
    std::vector<HostArgument> args;
    args.reserve(arguments.size());
    std::deque<std::vector<int64_t>> places;  // of sparse tensors
    for (const RunArgument& a : arguments) {
      if (a.is_scalar) {
        args.push_back(HostArgument::scalar(a.dtype, a.bits));
        continue;
      }
      const TensorData& t = a.tensor.layout;
      std::span<uint8_t> written = a.tensor.defined->flags();
      written = written.subspan(static_cast<size_t>(std::min(t.offset, t.storage_elems)),
                                static_cast<size_t>(std::max<int64_t>(t.storage_elems - t.offset, 0)));
      // A kernel declares data of dtype index as 64-bit integers.
      const Dtype dtype = t.dtype == Dtype::kIndex ? Dtype::kInt64 : t.dtype;
      args.push_back(HostArgument::memory(dtype, t.data(), t.storage_elems - t.offset, written));
      args.back().extents = t.shape;
      if (!is_sparse(t)) continue;
      places.push_back(positions_of(t));
      for (int64_t& p : places.back()) p -= t.offset;
      args.back().places = places.back();
    }
    if (banks_) options_.banks = &(*banks_)[kernel];
    const HostResult result = run_kernel(codes_[kernel], dims, args, options_);
    if (result.finding) throw result.finding->error();
  }

  void synchronize() override {}

 private:
  void check_fits(Dtype dtype, std::span<const int64_t> shape) const {
    if (std::ranges::count(shape, 0) > 0) return;
    int64_t bytes = size_bytes(dtype);
    const bool fits = std::ranges::all_of(shape, [&](int64_t extent) {
      return !__builtin_mul_overflow(bytes, extent, &bytes) && bytes <= options_.memory_limit;
    });
    if (!fits)
      throw Error(
          ErrorCode::kOutOfMemory,
          "a tensor that the program makes takes more than the " + std::to_string(options_.memory_limit) +
              " bytes that are allowed; make the inputs' extents smaller (also those of inputs without elements), "
              "or use fewer blocks");
  }

  HostOptions options_;
  std::vector<BankCounter>* banks_ = nullptr;
  Defects defects_;
  std::vector<Bytecode> codes_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(const HostDeviceOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace fusebox
