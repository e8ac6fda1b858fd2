// Calls that are ready to run on a GPU (fast_call.h).
#include <algorithm>

#include "replay/device/debug.h"
#include "replay/device/module_loader.h"
#include "replay/python/program.h"
#include "replay/run/aten_segment.h"
#include "replay/run/fast_call.h"
#include "replay/run/launch_machine.h"
#include "replay/run/prepare_together.h"

namespace fusebox::python {

py::object PythonProgram::fast_call(const py::list& given, int ordinal) {
  if (debug_launches()) return py::none();
  const std::vector<Argument> arguments = arguments_of(given);
  std::unique_ptr<FastCall> made;
  {
    py::gil_scoped_release no_gil;
    const auto known = plan(arguments, ordinal);
    const std::lock_guard lock(running_);
    const auto& compiled = known->compiled;
    prepare(*known, ordinal);
    const std::vector<NamedKernel> kernels = named_kernels(*compiled);
    std::vector<uint64_t> addresses;
    for (const Argument& a : arguments)
      if (!a.is_scalar) addresses.push_back(reinterpret_cast<uint64_t>(a.tensor.storage.get()));
    std::map<std::string, AtenForm> forms = aten_forms(*compiled);
    const bool may_infer = forms.empty() || load_aten().has_gpu();
    const InferSegment infer = [&](const std::string& segment, std::span<const BoundInput> given) {
      const AtenForm& form = forms.at(segment);
      return load_aten().infer(form.graph, given, form.one_call());
    };
    // A launch record has no segment by ATen.
    const ResolvedCall call = known->launch && forms.empty() ? evaluate_launch(*known->launch, arguments, addresses)
                                                             : resolve_call(compiled->host, kernels, arguments,
                                                                            addresses, may_infer ? infer : nullptr);
    made = make_fast_call(call, kernels, arguments, gpu(ordinal), std::move(forms));
    if (made) {
      made->name = graph.name;
      made->is_stale = is_stale_;
      keep_plan(*known, arguments, ordinal);
    }
    // Other layouts may be copied between for some inputs only; the other reasons lie in the program.
    needs_host_program_ = !may_infer || (call.refused.empty() && !made);
  }
  if (!made) return py::none();
  return py::capsule(made.release(), kFastCallCapsule, [](PyObject* capsule) {
    delete static_cast<FastCall*>(PyCapsule_GetPointer(capsule, kFastCallCapsule));
  });
}

}  // namespace fusebox::python
