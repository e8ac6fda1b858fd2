#include "replay/cache/plan_memory.h"

#include <algorithm>

#include "ir/table/error.h"
#include "passes/pipeline/signature.h"

namespace fusebox {
namespace {

template <class T>
int64_t bytes_of_list(const std::vector<T>& list) {
  return static_cast<int64_t>(list.capacity() * sizeof(T));
}

int64_t approximate_bytes(const Graph& g) {
  // Lists and names inside the rows are counted as a few words each.
  constexpr int64_t kInside = 48;
  const auto rows = static_cast<int64_t>(g.values.size() + g.ops.size() + g.tensors.size() + g.domains.size());
  return static_cast<int64_t>(sizeof(Graph)) + bytes_of_list(g.values) + bytes_of_list(g.ops) +
         bytes_of_list(g.tensors) + bytes_of_list(g.domains) + bytes_of_list(g.transforms) + bytes_of_list(g.regions) +
         rows * kInside;
}

// Gives a key back when a thread is done with it, also by an exception.
template <class Done>
struct AtEnd {
  Done done;
  ~AtEnd() { done(); }
};
template <class Done>
AtEnd(Done) -> AtEnd<Done>;

}  // namespace

int64_t approximate_bytes(const Compiled& c) {
  int64_t all = sizeof(Compiled) + approximate_bytes(c.concretized) + approximate_bytes(c.host);
  for (const auto* list : {&c.scheduled, &c.kernels, &c.launches})
    for (const Graph& g : *list) all += approximate_bytes(g);
  for (const Segment& s : c.segmentation.segments)
    all += static_cast<int64_t>(sizeof(Segment)) + bytes_of_list(s.steps) + bytes_of_list(s.ops);
  return all;
}

std::shared_ptr<const KnownPlan> PlanMemory::find(const PlanRequest& request, const InputSignature& signature) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->target != request.target || it->signature != signature) continue;
    if (!serves(*it->plan->compiled, request.fusion, request.sizes, request.options)) continue;
    entries_.splice(entries_.begin(), entries_, it);
    return entries_.front().plan;
  }
  return nullptr;
}

// Compares with the plan used last: of the same signature if there is one, else of the same target, else with any.
std::string PlanMemory::reason(const PlanRequest& request, const InputSignature& signature) const {
  if (entries_.empty()) return counts_.made == 0 ? "the first call" : "no plan is kept";
  const auto same = std::ranges::find_if(
      entries_, [&](const Entry& e) { return e.target == request.target && e.signature == signature; });
  if (same != entries_.end()) return why_not(*same->plan->compiled, request.fusion, request.sizes, request.options);
  const auto it = std::ranges::find(entries_, request.target, &Entry::target);
  if (it == entries_.end()) return "for " + request.target + ", was for " + entries_.front().target;
  return difference(signature, it->signature);
}

void PlanMemory::keep(Entry made) {
  made.bytes = approximate_bytes(*made.plan->compiled);
  if (made.plan->launch) made.bytes += bytes_of_list(made.plan->launch->code);
  bytes_ += made.bytes;
  entries_.push_front(std::move(made));
  while (bytes_ > options_.bytes && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
}

std::shared_ptr<const KnownPlan> PlanMemory::find_or_make(const PlanRequest& request,
                                                          const std::function<KnownPlan()>& make) {
  const InputSignature signature = signature_of(request.fusion, request.options);
  const Key key{request.target, text(signature)};
  std::unique_lock lock(using_);
  while (true) {
    if (auto known = find(request, signature)) {
      ++counts_.hits;
      return known;
    }
    if (being_made_.insert(key).second) break;
    ++counts_.waited;
    is_made_.wait(lock, [&] { return !being_made_.contains(key); });
  }
  const AtEnd finished{[&] {
    if (!lock.owns_lock()) lock.lock();
    being_made_.erase(key);
    is_made_.notify_all();
  }};
  const std::string why = reason(request, signature);
  const uint64_t state = state_;
  lock.unlock();
  const auto plan = std::make_shared<const KnownPlan>(make());
  if (options_.log) options_.log("@" + request.fusion.name + " for " + request.target + ": " + why);
  lock.lock();
  ++counts_.made;
  if (counts_.recompiles.size() == kReasons) counts_.recompiles.erase(counts_.recompiles.begin());
  counts_.recompiles.push_back(why);
  if (state == state_) keep({request.target, signature, plan, 0});
  return plan;
}

void PlanMemory::clear() {
  const std::lock_guard lock(using_);
  entries_.clear();
  bytes_ = 0;
  ++state_;
}

PlanMemory::Info PlanMemory::info() const {
  const std::lock_guard lock(using_);
  Info result = counts_;
  result.kept = static_cast<int64_t>(entries_.size());
  result.bytes = bytes_;
  return result;
}

}  // namespace fusebox
