#include "replay/run/resolved_call.h"

#include <algorithm>

#include "ir/table/error.h"
#include "replay/run/arena_places.h"

namespace fusebox {
namespace {

// Slots are this far apart as addresses, so that no two tensors overlap.
constexpr int kSlotShift = 40;

// A device that has no memory and notes what it is told to do. The pointer of a tensor tells its slot.
class NotingDevice : public Device {
 public:
  NotingDevice(ResolvedCall& call, std::span<const NamedKernel> kernels, std::span<const uint64_t> addresses)
      : call_(call), kernels_(kernels), addresses_(addresses) {}

  std::string_view name() const override { return "noting"; }
  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) override {
    const uint32_t slot = add(dtype, std::move(shape), std::move(strides));
    lives_.push_back({.slot = slot, .begin = now()});
    if (zeroed && call_.tensors[slot].bytes > 0) call_.steps.push_back({.kind = ResolvedStep::Kind::kZero, .to = slot});
    RunTensor t = tensor(slot);
    t.owner = std::shared_ptr<void>(nullptr, [this, life = lives_.size() - 1](void*) { lives_[life].end = now(); });
    return t;
  }
  RunTensor upload(const TensorData&) override { return refuse("a tensor is copied to the device"); }
  TensorData download(const RunTensor&, const std::string&) override {
    refuse("a segment runs by ATen");
    return {};
  }
  void copy(const RunTensor& to, const RunTensor& from) override {
    if (view(to) || view(from)) refuse("a view is copied");
    if (to.layout.strides != from.layout.strides)
      refuse("an output is stored in another layout than the input it overwrites");
    if (to.layout.storage_elems > element_count(to.layout.shape)) refuse("an output overwrites an input with gaps");
    if (call_.tensors[slot_of(to)].bytes > 0)
      call_.steps.push_back({.kind = ResolvedStep::Kind::kCopy, .to = slot_of(to), .from = slot_of(from)});
  }
  int64_t alignment(const RunTensor& t) override {
    const uint32_t slot = slot_of(t);
    if (call_.tensors[slot].bytes == 0 && slot < addresses_.size()) return alignment_of(0);
    const uint64_t address = slot < addresses_.size() ? addresses_[slot] : static_cast<uint64_t>(kArenaAlign);
    return alignment_of_view(address + static_cast<uint64_t>(bytes_before(t)), bytes_before(t));
  }
  size_t prepare(const Graph& kernel, const KernelUse& use) override {
    check_internal(use.reads_apart, "the tensors of a resolved call overlap");
    const auto it = std::ranges::find_if(kernels_, [&](const NamedKernel& k) { return k.kernel == &kernel; });
    return static_cast<size_t>(it - kernels_.begin());
  }
  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override {
    ResolvedStep step{.kind = ResolvedStep::Kind::kLaunch, .kernel = kernel, .dims = dims};
    take_arguments(step, arguments);
    call_.steps.push_back(std::move(step));
  }
  std::vector<RunTensor> run_aten(const AtenCall& to, const InferSegment& infer) {
    ResolvedStep step{.kind = ResolvedStep::Kind::kAten, .segment = to.name};
    take_arguments(step, to.given);
    if (std::ranges::any_of(step.arguments, [](const ResolvedArgument& a) { return a.view.has_value(); }))
      refuse("a segment by ATen reads a view");
    std::vector<BoundInput> bound;
    for (const RunArgument& a : to.given)
      bound.push_back({.is_scalar = a.is_scalar,
                       .bits = a.bits,
                       .shape = a.tensor.layout.shape,
                       .strides = a.tensor.layout.strides});
    std::vector<RunTensor> made;
    const std::vector<TensorLayout> layouts = infer(to.name, bound);
    for (size_t i = 0; i < layouts.size(); ++i) {
      const std::vector<int64_t> strides = to.strides(i, layouts[i]);
      step.made.push_back(add(to.dtype(i), layouts[i].shape, strides));
      call_.tensors[step.made.back()].is_by_aten = true;
      made.push_back(tensor(step.made.back()));
    }
    call_.steps.push_back(std::move(step));
    return made;
  }
  void synchronize() override {}

  uint32_t add(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    ResolvedTensor t;
    t.dtype = dtype;
    t.strides = strides.empty() ? contiguous_strides(shape) : std::move(strides);
    t.shape = std::move(shape);
    t.bytes = span_elems(t.shape, t.strides) * size_bytes(dtype);
    if (t.bytes >= int64_t{1} << kSlotShift) refuse("a tensor is larger than any memory");
    call_.tensors.push_back(std::move(t));
    return static_cast<uint32_t>(call_.tensors.size() - 1);
  }
  RunTensor tensor(uint32_t slot) const {
    const ResolvedTensor& from = call_.tensors[slot];
    RunTensor t;
    t.layout.dtype = from.dtype;
    t.layout.shape = from.shape;
    t.layout.strides = from.strides;
    t.layout.storage_elems = from.bytes / size_bytes(from.dtype);
    t.pointer = static_cast<CudaPointer>(slot + 1) << kSlotShift;
    return t;
  }
  static uint32_t slot_of(const RunTensor& t) { return static_cast<uint32_t>((t.pointer >> kSlotShift) - 1); }
  static int64_t bytes_before(const RunTensor& t) {
    return static_cast<int64_t>(t.pointer & ((CudaPointer{1} << kSlotShift) - 1));
  }
  // Nothing for the slot itself.
  std::optional<ResolvedView> view(const RunTensor& t) const {
    const ResolvedTensor& of = call_.tensors[slot_of(t)];
    const int64_t before = bytes_before(t);
    if (before == 0 && of.shape == t.layout.shape && of.strides == t.layout.strides) return std::nullopt;
    return ResolvedView{{t.layout.shape, t.layout.strides}, before / size_bytes(of.dtype)};
  }

  void take_arguments(ResolvedStep& step, std::span<const RunArgument> arguments) const {
    for (const RunArgument& a : arguments) {
      ResolvedArgument made{.dtype = a.dtype, .bits = a.bits};
      if (!a.is_scalar) {
        made.kind = ResolvedArgument::Kind::kTensor;
        made.from = slot_of(a.tensor);
        made.view = view(a.tensor);
      } else if (const auto it = open_.find(a.value); it != open_.end()) {
        made.kind = ResolvedArgument::Kind::kScalar;
        made.from = it->second;
      }
      step.arguments.push_back(made);
    }
  }

  void set_open(ValueId scalar, uint32_t argument) { open_[scalar] = argument; }

  void place_all() { place_in_arena(call_, lives_); }

 private:
  size_t now() const { return call_.steps.size(); }
  RunTensor refuse(std::string why) {
    if (call_.refused.empty()) call_.refused = std::move(why);
    return {};
  }

  ResolvedCall& call_;
  std::span<const NamedKernel> kernels_;
  std::span<const uint64_t> addresses_;
  std::map<ValueId, uint32_t> open_;
  std::vector<TensorLife> lives_;
};

// Scalar inputs that no op but launches reads.
std::vector<ValueId> open_scalars(const Graph& host) {
  std::vector<ValueId> open;
  for (ValueId v : inputs(host))
    if (!host.is_tensor(v)) open.push_back(v);
  for (OpId id : host[Graph::body()].ops) {
    const Op& op = host[id];
    const size_t first = op.kind == OpKind::kLaunch ? 7 : op.operands.size();
    for (size_t i = 0; i < first; ++i) std::erase(open, op.operands[i]);
  }
  return open;
}

}  // namespace

ResolvedCall resolve_call(const Graph& host, std::span<const NamedKernel> kernels, std::span<const Argument> arguments,
                          std::span<const uint64_t> addresses, const InferSegment& infer) {
  ResolvedCall call;
  if (!infer && std::ranges::any_of(host.ops, [](const Op& op) { return op.kind == OpKind::kRunAten; })) {
    call.refused = "a segment runs by ATen";
    return call;
  }
  NotingDevice device(call, kernels, addresses);
  std::vector<RunTensor> given;
  for (const Argument& a : arguments) {
    if (a.is_scalar) continue;
    const uint32_t slot = device.add(a.dtype, a.tensor.shape, a.tensor.strides);
    call.tensors[slot].is_input = true;
    given.push_back(device.tensor(slot));
  }
  const std::vector<ValueId> open = open_scalars(host);
  const std::vector<ValueId> taken = inputs(host);
  call.is_open_scalar.resize(arguments.size());
  for (size_t i = 0; i < taken.size() && i < arguments.size(); ++i)
    if (std::ranges::find(open, taken[i]) != open.end()) {
      call.is_open_scalar[i] = true;
      device.set_open(taken[i], static_cast<uint32_t>(i));
    }
  HostProgramOptions options;
  options.in_place_inputs = given;
  options.run_aten = [&](const AtenCall& to) { return device.run_aten(to, infer); };
  const ProgramResult result = run_host_program(host, kernels, device, arguments, options, false);
  for (const ProgramOutput& out : result.outputs) {
    ResolvedOutput made{.name = out.name, .overwrites_input = out.overwrites_input, .is_scalar = out.value.is_scalar};
    if (made.is_scalar) {
      made.dtype = out.value.dtype;
      made.bits = out.value.bits;
    } else {
      if (device.view(out.on_device)) call.refused = "an output is a view";
      made.slot = NotingDevice::slot_of(out.on_device);
      made.dtype = call.tensors[made.slot].dtype;
      call.tensors[made.slot].is_output = true;
    }
    call.outputs.push_back(std::move(made));
  }
  device.place_all();
  return call;
}

RunTensor tensor_of(const ResolvedArgument& argument, const RunTensor& slot) {
  if (!argument.view) return slot;
  const auto& [layout, first] = *argument.view;
  return view_of(slot, layout.shape, layout.strides, first, "resolved call");
}

std::vector<RunTensor> run_resolved(const ResolvedCall& call, std::span<const NamedKernel> kernels, Device& device,
                                    std::span<const Argument> arguments, std::span<const RunTensor> inputs) {
  std::vector<RunTensor> tensors(inputs.begin(), inputs.end());
  for (size_t slot = inputs.size(); slot < call.tensors.size(); ++slot) {
    const ResolvedTensor& t = call.tensors[slot];
    const bool zeroed = std::ranges::any_of(
        call.steps, [&](const ResolvedStep& s) { return s.kind == ResolvedStep::Kind::kZero && s.to == slot; });
    tensors.push_back(device.allocate(t.dtype, t.shape, t.strides, zeroed));
  }
  for (const ResolvedStep& step : call.steps) {
    if (step.kind == ResolvedStep::Kind::kZero) continue;
    check_internal(step.kind != ResolvedStep::Kind::kAten, "a call with ATen segments is run by a fast call");
    if (step.kind == ResolvedStep::Kind::kCopy) {
      device.copy(tensors[step.to], tensors[step.from]);
      continue;
    }
    std::vector<RunArgument> values;
    for (const ResolvedArgument& a : step.arguments) {
      RunArgument value;
      value.is_scalar = a.kind != ResolvedArgument::Kind::kTensor;
      value.dtype = a.dtype;
      if (a.kind == ResolvedArgument::Kind::kTensor) value.tensor = tensor_of(a, tensors[a.from]);
      if (value.is_scalar) value.bits = a.kind == ResolvedArgument::Kind::kScalar ? arguments[a.from].bits : a.bits;
      values.push_back(std::move(value));
    }
    device.launch(device.prepare(*kernels[step.kernel].kernel, {}), step.dims, values);
  }
  device.synchronize();
  return tensors;
}

}  // namespace fusebox
