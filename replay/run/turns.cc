#include "replay/run/turns.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

namespace fusebox {
namespace {

std::shared_ptr<std::byte> new_arena(int64_t bytes) {
  constexpr std::align_val_t kAlign{static_cast<size_t>(kArenaAlign)};
  auto* memory = static_cast<std::byte*>(::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kAlign));
  return {memory, [](std::byte* p) { ::operator delete(p, kAlign); }};
}

class Turns {
 public:
  Turns(const ResolvedCall& call, std::span<const NamedKernel> kernels, Device& device, std::span<const Turn> turns,
        const TurnOptions& options)
      : call_(call), kernels_(kernels), device_(device), turns_(turns), options_(options), prepared_(kernels.size()) {
    for (const Turn& turn : turns) place(turn);
  }

  std::vector<std::vector<RunTensor>> run() {
    for (const ResolvedStep& step : call_.steps)
      for (size_t turn = 0; turn < turns_.size(); ++turn) execute(step, turn);
    device_.synchronize();
    return std::move(tensors_);
  }

 private:
  void place(const Turn& turn) {
    const bool is_first = tensors_.empty();
    if (is_first || !options_.defects.has(Defect::kArenaShared)) arena_ = new_arena(call_.arena_bytes);
    std::vector<RunTensor> tensors(turn.inputs.begin(), turn.inputs.end());
    for (size_t slot = tensors.size(); slot < call_.tensors.size(); ++slot) {
      tensors.push_back(tensor(call_.tensors[slot]));
    }
    tensors_.push_back(std::move(tensors));
  }

  RunTensor tensor(const ResolvedTensor& t) {
    if (t.in_arena == ResolvedTensor::kNoPlace) return device_.allocate(t.dtype, t.shape, t.strides, false);
    RunTensor made;
    made.layout = external_tensor(t.dtype, arena_.get() + t.in_arena, t.shape, t.strides, arena_);
    made.defined = std::make_shared<DefinedElements>(DefinedElements::none(made.layout));
    return made;
  }

  void execute(const ResolvedStep& step, size_t turn) {
    std::vector<RunTensor>& tensors = tensors_[turn];
    switch (step.kind) {
      case ResolvedStep::Kind::kZero: {
        RunTensor& t = tensors[step.to];
        std::memset(t.layout.data(), 0, static_cast<size_t>(call_.tensors[step.to].bytes));
        *t.defined = DefinedElements::all(t.layout);
        return;
      }
      case ResolvedStep::Kind::kCopy:
        return device_.copy(tensors[step.to], tensors[step.from]);
      case ResolvedStep::Kind::kLaunch:
        return launch(step, turn);
      case ResolvedStep::Kind::kAten:
        throw Error(ErrorCode::kInternal, "a call with a segment by ATen has no turns", step.segment);
    }
  }

  void launch(const ResolvedStep& step, size_t turn) {
    std::vector<RunArgument> values;
    for (const ResolvedArgument& a : step.arguments) {
      RunArgument value;
      value.is_scalar = a.kind != ResolvedArgument::Kind::kTensor;
      value.dtype = a.dtype;
      if (a.kind == ResolvedArgument::Kind::kTensor) value.tensor = tensor_of(a, tensors_[turn][a.from]);
      const size_t from = options_.defects.has(Defect::kOpenScalarKept) ? 0 : turn;
      if (a.kind == ResolvedArgument::Kind::kScalar) value.bits = turns_[from].arguments[a.from].bits;
      if (a.kind == ResolvedArgument::Kind::kBits) value.bits = a.bits;
      values.push_back(std::move(value));
    }
    std::optional<size_t>& prepared = prepared_[step.kernel];
    if (!prepared) prepared = device_.prepare(*kernels_[step.kernel].kernel, {});
    device_.launch(*prepared, step.dims, values);
  }

  const ResolvedCall& call_;
  std::span<const NamedKernel> kernels_;
  Device& device_;
  std::span<const Turn> turns_;
  const TurnOptions& options_;
  std::vector<std::optional<size_t>> prepared_;  // by kernel; none: not launched yet
  std::shared_ptr<std::byte> arena_;             // of the call that is placed
  std::vector<std::vector<RunTensor>> tensors_;
};

}  // namespace

std::vector<std::vector<RunTensor>> run_in_turns(const ResolvedCall& call, std::span<const NamedKernel> kernels,
                                                 Device& device, std::span<const Turn> turns,
                                                 const TurnOptions& options) {
  return Turns(call, kernels, device, turns, options).run();
}

}  // namespace fusebox
