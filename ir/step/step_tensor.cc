// Steps on a tensor as a whole: its memory, layout, devices and circular buffer.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_rules.h"

namespace fusebox {

void step_set_memory_type(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  if (!c.step.attrs.has(AttrKey::kMemory)) c.refuse("set_memory_type needs a memory type, such as shared", c.place(t));
  const MemoryType memory = c.step.attrs.enumerator<MemoryType>(AttrKey::kMemory);
  if (is_output(c.g, c.g[t].value) && memory != MemoryType::kGlobal && memory != MemoryType::kUnset)
    c.refuse("an output is kept in global memory; use cache_before, and set the memory of the copy", c.place(t));
  if (!c.target) return;
  c.begin();
  (*c.target)[t].memory = memory;
}

void step_set_allocation(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const auto listed = c.domains_from(1);
  const auto visible = logical_without_reductions(c.g, c.g[t]);
  for (DomainId d : listed)
    if (c.g[d].tensor != t) c.refuse("an allocation is a list of the tensor's own domains", c.place(d));
  if (!is_complete(c.g, visible, listed))
    c.refuse("these domains do not hold every element once; list what follows from all axes that are not reduced",
             c.place(t));
  std::vector<Contiguity> inferred, contiguity;
  for (DomainId d : listed)
    inferred.push_back(c.g[d].iter_type == IterType::kBroadcast ? Contiguity::kNone : Contiguity::kTrue);
  if (c.step.attrs.has(AttrKey::kContiguity)) {
    for (int64_t i : c.step.attrs.ints(AttrKey::kContiguity)) {
      if (i < 0 || i > static_cast<int64_t>(Contiguity::kNone))
        c.refuse("a contiguity is 0 (false), 1 (true) or 2 (none)", c.place(t));
      contiguity.push_back(static_cast<Contiguity>(i));
    }
    if (contiguity.size() != listed.size())
      c.refuse("one contiguity is needed for each domain of the allocation", c.place(t));
    for (size_t i = 0; i < listed.size(); ++i)
      if ((contiguity[i] == Contiguity::kNone) != (inferred[i] == Contiguity::kNone))
        c.refuse("contiguity is none at broadcast domains, and only there", c.place(listed[i]));
  }
  if (!c.target) return;
  c.begin();
  Tensor& tensor = (*c.target)[t];
  tensor.allocation = listed == visible ? std::vector<DomainId>() : listed;
  tensor.contiguity = contiguity == inferred ? std::vector<Contiguity>() : contiguity;
}

void step_set_mesh(StepContext& c) {
  const TensorId t = c.tensor(0);
  const auto devices = c.step.attrs.ints(AttrKey::kDevices);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] < 0) c.refuse("a device is a number from 0", c.place(t));
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      c.refuse("device " + std::to_string(devices[i]) + " is listed twice", c.place(t));
  }
  if (devices.empty())
    for (TensorId s : siblings(c.g, t))
      for (DomainId d : loop_of(c.g[s]))
        if (c.g[d].parallel >= ParallelType::kMeshX && c.g[d].parallel <= ParallelType::kMeshZ)
          c.refuse("a loop is spread over the mesh; make it serial first", c.place(d));
  if (!c.target) return;
  // All results of one op are made on the same devices. A mesh is set before segmentation, so this step does not turn
  // the graph into a scheduled one.
  for (TensorId s : siblings(*c.target, t)) (*c.target)[s].devices.assign(devices.begin(), devices.end());
}

void step_circular_buffer(StepContext& c) {
  constexpr int64_t kMostStages = 64;
  const TensorId t = c.scheduled_tensor(0);
  const int64_t depth = c.step.attrs.integer(AttrKey::kDepth);
  if (depth < 2 || depth > kMostStages)
    c.refuse("a circular buffer has 2 to 64 stages, not " + std::to_string(depth), c.place(t));
  if (is_output(c.g, c.g[t].value)) c.refuse("an output is no buffer; use cache_before", c.place(t));
  if (readers(c.g, c.g[t].value).empty()) c.refuse("nothing reads this tensor, so it needs no stages", c.place(t));
  if (!c.target) return;
  c.begin();
  (*c.target)[t].circular_depth = depth;
}

}  // namespace fusebox
