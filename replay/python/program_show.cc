// A PythonProgram as it is compiled for some inputs: its scheduled text, its CUDA text, and its times.
#include <algorithm>

#include "codegen/cuda.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "replay/python/program.h"
#include "replay/timing/time_program.h"

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

py::dict PythonProgram::profile(const py::list& given, int ordinal, int threads, int runs) {
  const std::vector<Argument> arguments = arguments_of(given);
  Timing timing;
  {
    py::gil_scoped_release no_gil;
    const auto compiled = plan(arguments, ordinal)->compiled;
    const std::lock_guard lock(running_);
    const std::shared_ptr<Device> device =
        ordinal >= 0 ? gpu(ordinal)
                     : std::shared_ptr<Device>(make_host_device({.threads = threads, .defects = defects}));
    device->set_stream(nullptr);
    const std::vector<ValueId> values = inputs(graph);
    std::vector<RunTensor> tensors;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      if (a.is_scalar) continue;
      if (ordinal < 0) {
        tensors.push_back(device->upload(a.tensor));
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
        const RunTensor copy = device->allocate(a.dtype, a.tensor.shape, a.tensor.strides, false);
        device->copy(copy, t);
        t = copy;
      }
      tensors.push_back(std::move(t));
    }
    timing = time_program({graph, *compiled, arguments, std::move(tensors)}, device, {.runs = runs});
  }
  return profile_to_python(timing);
}

}  // namespace fusebox::python
