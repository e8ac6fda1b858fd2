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

int64_t bytes_of_images(const KnownPlan::Images& images) {
  int64_t all = bytes_of_list(images);
  for (const KernelImage& image : images) all += bytes_of_list(image.binary);
  return all;
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

// -- the store

const std::shared_ptr<PlanStore>& PlanStore::of_process() {
  static const auto store = std::make_shared<PlanStore>(int64_t{256} << 20);
  return store;
}

std::shared_ptr<const PlanProgram> PlanStore::program(std::string bytes) {
  const std::lock_guard lock(using_);
  std::weak_ptr<const PlanProgram>& known = programs_[bytes];
  std::shared_ptr<const PlanProgram> found = known.lock();
  if (!found) known = found = std::make_shared<const PlanProgram>(std::move(bytes));
  if (programs_.size() > most_programs_) {
    std::erase_if(programs_, [](const auto& p) { return p.second.expired(); });
    most_programs_ = 64 + 2 * programs_.size();
  }
  return found;
}

void PlanStore::keep(Entry made, const Key& key) {
  made.bytes = approximate_bytes(*made.plan->compiled);
  if (made.plan->launch) made.bytes += bytes_of_list(made.plan->launch->code);
  if (const auto images = made.plan->state->images.load()) made.bytes += bytes_of_images(*images);
  bytes_ += made.bytes;
  ++kept_;
  entries_.push_front(std::move(made));
  const auto list = by_key_.try_emplace(key).first;
  entries_.front().key = &list->first;
  list->second.push_front(entries_.begin());
  evict();
}

void PlanStore::use(std::list<Entry>::iterator entry) {
  entries_.splice(entries_.begin(), entries_, entry);
  auto& same = by_key_.at(*entry->key);
  same.splice(same.begin(), same, std::ranges::find(same, entry));
}

void PlanStore::evict() {
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    const auto last = std::prev(entries_.end());
    const auto list = by_key_.find(*last->key);
    list->second.remove(last);
    if (list->second.empty()) by_key_.erase(list);
    bytes_ -= last->bytes;
    entries_.pop_back();
  }
}

void PlanStore::keep_images(const KnownPlan& plan, KnownPlan::Images images) {
  const std::lock_guard lock(using_);
  if (plan.state->images.load()) return;  // another thread was faster
  const int64_t bytes = bytes_of_images(images);
  plan.state->images = std::make_shared<const KnownPlan::Images>(std::move(images));
  const auto it = std::ranges::find_if(entries_, [&](const Entry& e) { return e.plan->state == plan.state; });
  if (it == entries_.end()) return;
  it->bytes += bytes;
  bytes_ += bytes;
  evict();
}

void PlanStore::clear() {
  const std::lock_guard lock(using_);
  by_key_.clear();
  entries_.clear();
  bytes_ = 0;
  ++state_;
}

// -- one program's view

namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> next = 1;
  return next++;
}

}  // namespace

PlanMemory::PlanMemory(PlanMemoryOptions options)
    : options_(std::move(options)),
      store_(options_.store ? options_.store : std::make_shared<PlanStore>(options_.bytes)),
      id_(next_id()) {}

// Compares with the program's plan used last: of the same signature if there is one, else of the same target, else with any.
std::string PlanMemory::reason(const PlanRequest& request, const InputSignature& signature) const {
  using Entry = PlanStore::Entry;
  const auto& all = store_->entries_;
  const auto any = std::ranges::find(all, request.program, &Entry::program);
  if (any == all.end()) return counts_.made == 0 ? "the first call" : "no plan is kept";
  const auto same =
      std::ranges::find_if(all, [&](const Entry& e) { return e.is_for(request) && e.signature == signature; });
  if (same != all.end()) return why_not(*same->plan->compiled, request.fusion, request.sizes, request.options);
  const auto it = std::ranges::find_if(all, [&](const Entry& e) { return e.is_for(request); });
  if (it == all.end()) return "for " + request.target + ", was for " + any->target;
  return difference(signature, it->signature);
}

std::shared_ptr<const KnownPlan> PlanMemory::find_or_make(const PlanRequest& request,
                                                          const std::function<KnownPlan()>& make) {
  const InputSignature signature = signature_of(request.fusion, request.options);
  const PlanStore::Key key{request.program.get(), request.target, text(signature)};
  PlanStore& s = *store_;
  std::unique_lock lock(s.using_);
  program_ = request.program;
  while (true) {
    // Whether a plan serves is asked without the lock. A plan that is kept meanwhile may serve too.
    const uint64_t kept = s.kept_;
    std::vector<std::shared_ptr<const KnownPlan>> candidates;
    const auto same = s.by_key_.find(key);
    if (same != s.by_key_.end())
      for (const auto& e : same->second)
        if (e->signature == signature) candidates.push_back(e->plan);
    lock.unlock();
    const auto found = std::ranges::find_if(candidates, [&](const auto& plan) {
      return serves(*plan->compiled, request.fusion, request.sizes, request.options);
    });
    lock.lock();
    if (found != candidates.end()) {
      ++counts_.hits;
      // It may have been evicted meanwhile.
      if (const auto now = s.by_key_.find(key); now != s.by_key_.end()) {
        const auto it = std::ranges::find(now->second, *found, [](const auto& e) { return e->plan; });
        if (it != now->second.end()) {
          if ((*it)->maker != id_) ++counts_.shared;
          s.use(*it);
        }
      }
      return *found;
    }
    if (s.kept_ != kept) continue;
    if (s.being_made_.insert(key).second) break;
    ++counts_.waited;
    s.is_made_.wait(lock, [&] { return !s.being_made_.contains(key); });
  }
  const AtEnd finished{[&] {
    if (!lock.owns_lock()) lock.lock();
    s.being_made_.erase(key);
    s.is_made_.notify_all();
  }};
  const std::string why = reason(request, signature);
  const uint64_t state = s.state_;
  lock.unlock();
  const auto plan = std::make_shared<const KnownPlan>(make());
  if (options_.log) options_.log("@" + request.fusion.name + " for " + request.target + ": " + why);
  lock.lock();
  ++counts_.made;
  if (counts_.recompiles.size() == kReasons) counts_.recompiles.erase(counts_.recompiles.begin());
  counts_.recompiles.push_back(why);
  if (state == s.state_) s.keep({request.program, request.target, signature, plan, id_, 0}, key);
  return plan;
}

PlanMemory::Info PlanMemory::info() const {
  const std::lock_guard lock(store_->using_);
  Info result = counts_;
  for (const auto& e : store_->entries_)
    if (e.program == program_) ++result.kept, result.bytes += e.bytes;
  return result;
}

}  // namespace fusebox
