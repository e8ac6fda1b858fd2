#include "replay/python/fault_keeper.h"

#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "replay/device/debug.h"
#include "replay/record/record.h"

namespace fusebox::python {

FaultKeeper::FaultKeeper(std::span<const Argument> arguments, Device* gpu)
    : is_on_(gpu != nullptr && debug_launches()) {
  if (!is_on_) return;
  for (const Argument& a : arguments) {
    before_.push_back(a);
    if (a.is_scalar) continue;
    RunTensor t;
    t.layout = a.tensor;
    t.layout.storage.reset();
    t.pointer = reinterpret_cast<CudaPointer>(a.tensor.storage.get());
    before_.back() = Argument::of(gpu->download(t, {}));
  }
}

Error FaultKeeper::kept(const Error& e, Run run, const Module& module) const {
  try {
    run.failure = failure_of(e);
    try {
      describe_environment(run);
    } catch (const Error&) {
      // A GPU that failed may not tell its name any more.
    }
    run.digests.push_back({"fusion", digest(run.fusion)});
    digest_stages(run, true);
    const std::string path = write_to_temporary(make_bundle(run, module, exact_inputs(run.fusion, before_), before_));
    return Error(e.code, std::string(e.what()) + "; this bundle shows it: " + path, e.place);
  } catch (const Error& why) {
    return Error(e.code, std::string(e.what()) + "; no bundle was written: " + why.what(), e.place);
  }
}

}  // namespace fusebox::python
