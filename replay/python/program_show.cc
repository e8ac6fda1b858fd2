// A PythonProgram as it is compiled for some inputs: its scheduled text, its CUDA text, and its times.
#include <algorithm>

#include "codegen/cuda.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "replay/python/program.h"
#include "replay/timing/time_program.h"
#include "replay/timing/tune_program.h"

namespace fusebox::python {
namespace {

py::tuple spread(const Spread& s) { return py::make_tuple(s.median, s.p10, s.p90); }

py::object number(std::optional<double> v) { return v ? py::object(py::float_(*v)) : py::none(); }

py::dict profile_to_python(const Timing& t) {
  py::list kernels;
  for (const KernelTiming& k : t.kernels) kernels.append(py::make_tuple(k.name, k.launches, spread(k.us)));
  py::dict result;
  result["executor"] = fusebox::text(t.executor);
  result["gpu"] = t.measured ? py::object(py::str(t.measured->gpu)) : py::none();
  result["runs"] = t.runs;
  result["launches"] = t.launches;
  result["whole_us"] = spread(t.whole_us);
  result["kernels_us"] = spread(t.kernels_us);
  result["host_us"] = spread(t.host_us);
  result["kernels"] = kernels;
  result["read_bytes"] = t.bytes.read;
  result["written_bytes"] = t.bytes.written;
  result["copy_gb_s"] = number(t.measured ? std::optional(t.measured->copy_rate / 1000) : std::nullopt);
  result["empty_us"] = number(t.measured ? std::optional(t.measured->empty_us) : std::nullopt);
  result["floor_us"] = number(t.floor_us());
  result["fraction"] = number(t.fraction());
  return result;
}

}  // namespace

std::string PythonProgram::scheduled_text_for(const py::list& given) const {
  const std::vector<Argument> arguments = arguments_of(given);
  py::gil_scoped_release no_gil;
  Module scheduled;
  scheduled.graphs = compiled_for(arguments, -1).scheduled;
  return print(scheduled);
}

std::vector<std::pair<std::string, std::string>> PythonProgram::cuda_source(const py::list& given) const {
  const std::vector<Argument> arguments = arguments_of(given);
  py::gil_scoped_release no_gil;
  const Compiled compiled = compiled_for(arguments, -1);
  std::vector<std::pair<std::string, std::string>> texts;
  for (size_t i = 0; i < compiled.kernels.size(); ++i) {
    const Segment& segment = compiled.segmentation.segments[i];
    if (segment.executor == SegmentExecutor::kKernel)
      texts.emplace_back(segment.name, emit_cuda(compiled.kernels[i]).text);
  }
  return texts;
}

std::vector<RunTensor> PythonProgram::timed_inputs(std::span<const Argument> arguments, Device& device,
                                                   int ordinal) const {
  const std::vector<ValueId> values = inputs(graph);
  std::vector<RunTensor> tensors;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    if (a.is_scalar) continue;
    if (ordinal < 0) {
      tensors.push_back(device.upload(a.tensor));
      continue;
    }
    RunTensor t;
    t.layout = a.tensor;
    t.layout.storage.reset();
    t.pointer = reinterpret_cast<CudaPointer>(a.tensor.storage.get());
    t.owner = a.tensor.storage;
    const bool is_written =
        std::ranges::any_of(outputs(graph), [&](const OutputRef& out) { return out.alias == values[i]; });
    if (is_written) {
      const RunTensor copy = device.allocate(a.dtype, a.tensor.shape, a.tensor.strides, false);
      device.copy(copy, t);
      t = copy;
    }
    tensors.push_back(std::move(t));
  }
  return tensors;
}

py::dict PythonProgram::profile(const py::list& given, int ordinal, int threads, int runs) {
  const std::vector<Argument> arguments = arguments_of(given);
  Timing timing;
  {
    py::gil_scoped_release no_gil;
    const auto known = plan(arguments, ordinal);
    const auto& compiled = known->compiled;
    const std::lock_guard lock(running_);
    if (ordinal >= 0) prepare(*known, ordinal);
    const std::shared_ptr<Device> device =
        ordinal >= 0 ? gpu(ordinal)
                     : std::shared_ptr<Device>(make_host_device({.threads = threads, .defects = defects}));
    device->set_stream(nullptr);
    timing =
        time_program({graph, *compiled, arguments, timed_inputs(arguments, *device, ordinal)}, device, {.runs = runs});
  }
  return profile_to_python(timing);
}

std::unique_ptr<PythonProgram> PythonProgram::with_steps(std::span<const Step> list,
                                                         std::span<const Argument> arguments) const {
  std::vector<std::vector<int64_t>> shapes;
  for (const Argument& a : arguments)
    if (!a.is_scalar) shapes.push_back(a.tensor.shape);
  auto other = std::make_unique<PythonProgram>(graph.name);
  other->graph = graph;
  other->defects = defects;
  other->originals_ = originals_;
  other->originals_[serial_] = graph.values.size();
  const size_t rewrites = leading_rewrites(list);
  for (const Step& s : list.first(rewrites)) other->take(s);
  other->concretize(shapes);
  for (const Step& s : list.subspan(rewrites)) other->take(s);
  return other;
}

py::tuple PythonProgram::tune(const py::list& given, int ordinal, int runs) {
  const std::vector<Argument> arguments = arguments_of(given);
  Tuned tuned;
  {
    py::gil_scoped_release no_gil;
    const std::lock_guard lock(running_);
    const std::shared_ptr<Device> device = ordinal >= 0 ? gpu(ordinal) : std::shared_ptr<Device>(make_host_device({}));
    device->set_stream(nullptr);
    tuned = tune_program(graph, arguments, timed_inputs(arguments, *device, ordinal), device,
                         compile_options(arguments, ordinal), {.runs = runs});
  }
  py::list segments;
  for (const TunedSegment& s : tuned.segments)
    segments.append(
        py::make_tuple(s.segment, fusebox::text(s.chosen), fusebox::text(s.best), s.before, s.after, s.tries));
  return py::make_tuple(with_steps(tuned.best.automatic->steps, arguments), segments);
}

}  // namespace fusebox::python
