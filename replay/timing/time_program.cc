#include "replay/timing/time_program.h"

#include <algorithm>
#include <chrono>

#include "ir/table/error.h"
#include "replay/run/aten_segment.h"
#include "replay/run/fast_call.h"
#include "replay/run/host_program.h"
#include "replay/run/resolved_call.h"
#include "replay/timing/timed_device.h"

namespace fusebox {
namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TensorData layout_of(const ResolvedTensor& t) {
  TensorData layout;
  layout.dtype = t.dtype;
  layout.shape = t.shape;
  layout.strides = t.strides;
  return layout;
}

// The call with those outputs alone that the caller allocates, or that overwrite an input: the work is the same.
ResolvedCall with_fast_outputs(const ResolvedCall& call) {
  ResolvedCall made = call;
  made.outputs.clear();
  for (const ResolvedOutput& out : call.outputs) {
    made.outputs.push_back(out);
    if (!is_fast(made)) made.outputs.pop_back();
  }
  return made;
}

std::string name_of(const ResolvedStep& step, std::span<const NamedKernel> kernels) {
  switch (step.kind) {
    case ResolvedStep::Kind::kZero:
      return "clear";
    case ResolvedStep::Kind::kCopy:
      return "copy";
    case ResolvedStep::Kind::kLaunch:
      return kernels[step.kernel].name;
    case ResolvedStep::Kind::kAten:
      return "ATen " + step.segment;
  }
  return {};
}

// Puts the times of the steps of each run together by name, in the order of first use.
class Sums {
 public:
  void begin() {
    for (auto& row : rows_) row.us.push_back(0);
    ++runs_;
  }
  void add(const std::string& name, bool is_kernel, double us) {
    auto it = std::ranges::find(rows_, name, &Row::name);
    if (it == rows_.end()) {
      rows_.push_back(Row{name, is_kernel, 0, std::vector<double>(runs_)});
      it = rows_.end() - 1;
    }
    it->us.back() += us;
    it->launches += runs_ == 1 ? 1 : 0;
  }
  void fill(Timing& t) const {
    std::vector<double> all(runs_);
    for (const Row& row : rows_) {
      t.kernels.push_back({row.name, row.launches, Spread::of(row.us)});
      if (!row.is_kernel) continue;
      t.launches += row.launches;
      for (size_t i = 0; i < runs_; ++i) all[i] += row.us[i];
    }
    t.kernels_us = Spread::of(all);
  }
  double last_kernels_us() const {
    double sum = 0;
    for (const Row& row : rows_) sum += row.is_kernel ? row.us.back() : 0;
    return sum;
  }

 private:
  struct Row {
    std::string name;
    bool is_kernel;
    int64_t launches;
    std::vector<double> us;  // of each run
  };
  std::vector<Row> rows_;
  size_t runs_ = 0;
};

void time_on_gpu(const TimedProgram& p, const std::shared_ptr<Device>& device, int runs, GpuClock& clock, Timing& t) {
  const std::vector<NamedKernel> kernels = named_kernels(p.compiled);
  std::vector<uint64_t> inputs;
  for (const RunTensor& input : p.inputs) inputs.push_back(input.pointer);
  // A part that reads what ATen makes cannot be timed alone, so such programs are refused here.
  const ResolvedCall resolved = resolve_call(p.compiled.host, kernels, p.arguments, inputs);
  if (!resolved.refused.empty())
    throw Error(ErrorCode::kUnsupportedOp,
                "only a program whose kernels can be launched again alone is timed on a GPU, and " + resolved.refused +
                    "; time it on the host executor",
                "@" + p.fusion.name);
  std::vector<TensorData> layouts;
  for (const ResolvedOutput& out : resolved.outputs)
    layouts.push_back(out.is_scalar ? TensorData() : layout_of(resolved.tensors[out.slot]));
  t.bytes = moved_bytes(p.fusion, p.arguments, layouts);

  const ResolvedCall call = with_fast_outputs(resolved);
  const auto whole = make_fast_call(call, kernels, p.arguments, device);
  const std::vector<size_t> steps = whole->steps();
  std::vector<RunTensor> outputs;
  std::vector<uint64_t> out_addresses, scalars;
  for (const FastTensor& o : whole->outputs) {
    outputs.push_back(device->allocate(o.dtype, o.shape, o.strides, false));
    out_addresses.push_back(outputs.back().pointer);
  }
  const RunTensor arena = device->allocate(Dtype::kUint8, {whole->arena_bytes}, {1}, false);
  for (const Argument& a : p.arguments) scalars.push_back(a.bits.low);
  const FastAddresses at{.inputs = inputs.data(),
                         .outputs = out_addresses.data(),
                         .arena = arena.pointer,
                         .scalars = scalars.data(),
                         .stream = nullptr};
  const std::function<void()> all = [&] { whole->start(at); };
  std::vector<std::function<void()>> parts;
  for (const size_t step : steps) parts.emplace_back([&at, &whole, step] { whole->start_step(step, at); });

  const double wait_whole = clock.wait_for({&all, 1}), wait_parts = clock.wait_for(parts);
  std::vector<double> whole_us, host_us;
  Sums sums;
  for (int run = 0; run < runs; ++run) {
    const GpuClock::Measured once = clock.measure({&all, 1}, wait_whole);
    whole_us.push_back(once.parts_us[0]);
    host_us.push_back(once.host_us);
    const GpuClock::Measured each = clock.measure(parts, wait_parts);
    sums.begin();
    for (size_t i = 0; i < parts.size(); ++i) {
      const ResolvedStep& step = call.steps[steps[i]];
      sums.add(name_of(step, kernels), step.kind == ResolvedStep::Kind::kLaunch, each.parts_us[i]);
    }
  }
  t.whole_us = Spread::of(std::move(whole_us));
  t.host_us = Spread::of(std::move(host_us));
  sums.fill(t);
  t.measured = {std::string(clock.gpu()), clock.copy_rate(), clock.empty_us()};
}

void time_on_host(const TimedProgram& p, Device& device, int runs, Timing& t) {
  const std::vector<NamedKernel> kernels = named_kernels(p.compiled);
  Sums sums;
  TimedDevice timed(device, [&](const std::string& kernel, double us) { sums.add(kernel, true, us); });
  HostProgramOptions options;
  options.run_aten = [&, run = run_aten_segments(p.compiled)](const AtenCall& call) {
    const double start = now_us();
    std::vector<RunTensor> made = run(call);
    sums.add("ATen " + call.name, true, now_us() - start);
    return made;
  };
  options.in_place_inputs = p.inputs;
  const auto once = [&] { return run_host_program(p.compiled.host, kernels, timed, p.arguments, options, false); };
  sums.begin();
  std::vector<TensorData> layouts;
  for (const ProgramOutput& out : once().outputs)
    layouts.push_back(out.value.is_scalar ? TensorData() : out.on_device.layout);
  t.bytes = moved_bytes(p.fusion, p.arguments, layouts);
  sums = {};
  std::vector<double> whole_us, host_us;
  for (int run = 0; run < runs; ++run) {
    sums.begin();
    const double start = now_us();
    once();
    whole_us.push_back(now_us() - start);
    host_us.push_back(whole_us.back() - sums.last_kernels_us());
  }
  t.whole_us = Spread::of(std::move(whole_us));
  t.host_us = Spread::of(std::move(host_us));
  sums.fill(t);
}

}  // namespace

std::optional<double> Timing::floor_us() const {
  if (!measured || measured->copy_rate <= 0) return std::nullopt;
  return static_cast<double>(bytes.total()) / measured->copy_rate;
}

std::optional<double> Timing::fraction() const {
  const auto floor = floor_us();
  return floor && whole_us.median > 0 ? std::optional(*floor / whole_us.median) : std::nullopt;
}

Timing time_program(const TimedProgram& program, const std::shared_ptr<Device>& device, const TimeOptions& options) {
  if (options.runs < 1)
    throw Error(ErrorCode::kUsage, "a program is timed over at least one run; give a positive number",
                std::to_string(options.runs));
  Timing t;
  t.runs = options.runs;
  if (device->session() == nullptr) {
    time_on_host(program, *device, options.runs, t);
    return t;
  }
  t.executor = Executor::kCuda;
  std::unique_ptr<GpuClock> own;
  if (options.clock == nullptr) own = std::make_unique<GpuClock>(device);
  time_on_gpu(program, device, options.runs, own ? *own : *options.clock, t);
  return t;
}

Timing time_run(const Run& run, std::span<const Argument> arguments, int runs, int threads) {
  if (run.executor == Executor::kAten)
    throw Error(ErrorCode::kUsage,
                "ATen runs the program op by op, without kernels; time it with --on cuda or --on host", "--time");
  const std::shared_ptr<Device> device = run.executor == Executor::kCuda
                                             ? make_cuda_device()
                                             : make_host_device({.threads = threads, .defects = run.defects});
  std::vector<RunTensor> inputs;
  for (const Argument& a : arguments)
    if (!a.is_scalar) inputs.push_back(device->upload(a.tensor));
  return time_program({run.fusion, run.compiled, arguments, std::move(inputs)}, device, {.runs = runs});
}

}  // namespace fusebox
