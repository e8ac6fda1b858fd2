// Calls that are ready to run on a GPU (fast_call.h).
#include "replay/python/program.h"
#include "replay/run/fast_call.h"

namespace fusebox::python {

py::object PythonProgram::fast_call(const py::list& given, int ordinal) {
  const std::vector<Argument> arguments = arguments_of(given);
  std::unique_ptr<FastCall> made;
  {
    py::gil_scoped_release no_gil;
    const std::lock_guard lock(running_);
    const auto compiled = plan(arguments, ordinal);
    std::vector<NamedKernel> kernels;
    for (size_t i = 0; i < compiled->kernels.size(); ++i)
      kernels.push_back({compiled->segmentation.segments[i].name, &compiled->kernels[i]});
    std::vector<uint64_t> addresses;
    for (const Argument& a : arguments)
      if (!a.is_scalar) addresses.push_back(reinterpret_cast<uint64_t>(a.tensor.storage.get()));
    const ResolvedCall call = resolve_call(compiled->host, kernels, arguments, addresses);
    made = make_fast_call(call, kernels, arguments, gpu(ordinal));
    if (made) made->is_stale = is_stale_;
    if (made) keep_plan(arguments);
  }
  if (!made) return py::none();
  return py::capsule(made.release(), kFastCallCapsule, [](PyObject* capsule) {
    delete static_cast<FastCall*>(PyCapsule_GetPointer(capsule, kFastCallCapsule));
  });
}

}  // namespace fusebox::python
