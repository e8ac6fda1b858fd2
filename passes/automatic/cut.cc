#include "passes/automatic/cut.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "ir/canonical/canonical.h"
#include "ir/infer/product_call.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/automatic/cheapest_cut.h"
#include "passes/automatic/stretches.h"
#include "passes/plan/plan_stages.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/fresh_names.h"
#include "passes/schedule/neighbours.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/schedule_memo.h"
#include "passes/schedule/vector_width.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

// The cost of a launch, as bytes that memory could move meanwhile: about 2 µs at 4 TB/s.
constexpr double kLaunchBytes = 8e6;
// A fusion of more ops is not cut at its best places but in stretches as long as schedulers take.
constexpr size_t kMostForBestCut = 96;
constexpr size_t kLongestStretch = 128;
constexpr size_t kLongestEpilogue = 20;  // a product, casts, a scale, a bias and a gelu
// The most reductions that may depend on one another. Each is a further walk over the rows, and computes again what the
// walks before it have computed, unless the row stays in registers.
constexpr int kMostDepth = 8;

// Stretches that schedulers take are kept until they are scheduled, as long as all of them have at most so many ops.
constexpr size_t kMostKeptOps = 8192;

// A segment as a fusion of its own, and what the schedulers say of it.
struct Tried {
  Segment segment;
  MemoryClasses memory;
  Graph fusion;
  SizeClasses sizes;
  ScheduleMemo memo;
  // By scheduler, as far as they have been asked: why it does not take the fusion.
  std::vector<std::optional<std::string>> why_not;
};

// Ops, and the values of theirs that other ops need.
using OpsAndOutputs = std::pair<std::vector<OpId>, std::vector<ValueId>>;

// The schedule that was found for a segment.
struct Scheduled {
  std::string name;  // of the part
  Segment segment;
  MemoryClasses memory;
  CutPart part;
  Graph fusion;  // with the part's steps
};

// Whether both are the same fusion, but for the name.
bool is_same_fusion(const Segment& a, const Segment& b) {
  return a.ops == b.ops && a.inputs == b.inputs && a.outputs == b.outputs;
}

class Cutter {
 public:
  Cutter(const Graph& g, const AutomaticOptions& options, PlanningWork& work)
      : g_(g),
        options_(options),
        work_(work),
        extractor_(g, options.defects),
        rebinder_(g, options.sizes),
        sizes_(g, options.sizes, options.defects),
        memory_(options.memory),
        all_(g, options.defects) {}

  std::vector<CutPart> run() {
    if (all_.size() == 0) return {};
    while (true)
      if (auto parts = try_cut()) return *std::move(parts);
  }

  CutPart one(const std::vector<OpId>& ops) {
    const std::set<OpId> inside(ops.begin(), ops.end());
    std::vector<bool> needed = all_.is_output();
    for (OpId op : ops)
      for (ValueId v : g_[op].results)
        for (OpId reader : all_.readers()[v.index]) needed[v.index] = needed[v.index] || !inside.contains(reader);
    CutPart part{.ops = ops, .steps = {}, .heuristics = {}, .declined = {}};
    if (all_.is_apart(ops, needed)) return part;
    if (const int depth = all_.depth_of(ops); depth > kMostDepth) {
      part.declined.push_back(
          {"any", std::to_string(depth) + " reductions stand one behind the other, each a walk over the rows"});
      return part;
    }
    find_schedule(*tried(segment_of(ops, needed), memory_), part, {});
    return part;
  }

  std::optional<Heuristics> choice_for_all() {
    const Stretch whole{0, all_.size()};
    const std::vector<bool> needed = all_.needed_of(whole);
    const std::vector<OpId> ops = all_.ops_of(whole, needed);
    if (all_.is_apart(ops, needed) || all_.depth_of(ops) > kMostDepth) return std::nullopt;
    const auto t = tried(segment_of(ops, needed), memory_);
    for (size_t i = 0; i < schedulers().size(); ++i)
      if (!why_not(i, *t)) {
        Heuristics choice;
        // Where it is refused, another scheduler may take the fusion: nothing is known then.
        if (refusal([&] { choice = schedulers()[i].choose(view_of(*t)); })) return Heuristics();
        return choice;
      }
    return std::nullopt;
  }

 private:
  Segment segment_of(const std::vector<OpId>& ops, const std::vector<bool>& needed) const {
    Segment s;
    s.name = g_.name;
    for (OpId op : ops) s.ops.push_back(g_[g_[op].results[0]].name);
    for (ValueId v : all_.inputs_of(ops)) s.inputs.push_back({g_[v].name, {}, {}, {}});
    for (ValueId v : outputs_of(ops, needed)) s.outputs.push_back({g_[v].name, {}, {}, {}});
    return s;
  }
  std::vector<ValueId> outputs_of(const std::vector<OpId>& ops, const std::vector<bool>& needed) const {
    std::vector<ValueId> result;
    for (OpId op : ops)
      for (ValueId v : g_[op].results)
        if (needed[v.index]) result.push_back(v);
    return result;
  }

  // -- schedules

  static std::string refused(const Error& e) {
    return "its schedule is refused: " + std::string(e.what()) + (e.place.empty() ? "" : " (" + e.place + ")");
  }

  // The name of a tensor of the fusion without elements; empty if there is none.
  static std::string tensor_without_elements(const ScheduleView& view) {
    const Graph& g = view.fusion;
    const auto is_empty = [&](DomainId d) { return view.sizes.of(d).most == 0; };
    for (const Value& v : g.values)
      if (v.kind == ValueKind::kTensor &&
          (std::ranges::any_of(root_of(g[v.tensor]), is_empty) || std::ranges::any_of(g[v.tensor].logical, is_empty)))
        return v.name;
    return {};
  }

  // Why a scheduler does not take the fusion, as far as it can tell. Where a tensor has no elements, a reshape splits
  // loops by 0, and a reduction may have no loop. Such a part has little to gain, so it runs as in the unfused plan.
  static std::optional<std::string> ask(const Scheduler& s, const ScheduleView& view) {
    std::optional<std::string> why;
    try {
      why = s.declines(view);
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) throw;
      return refused(e);  // it tried to make a part of its schedule
    }
    if (why || s.executor != SegmentExecutor::kKernel) return why;
    const bool is_plain = std::ranges::none_of(
        view.fusion.ops, [](const Op& op) { return op.kind == OpKind::kReshape || demands(op.kind, kReduction); });
    if (is_plain) return why;
    if (const std::string empty = tensor_without_elements(view); !empty.empty()) why = "%" + empty + " has no elements";
    return why;
  }

  std::unique_ptr<Tried> tried(Segment segment, const MemoryClasses& memory) {
    auto t = std::make_unique<Tried>();
    t->segment = std::move(segment);
    t->memory = memory;
    t->fusion = extractor_.extract(t->segment);
    t->memo.work = &work_;
    ++work_.extractions;
    t->sizes = SizeClasses(t->fusion, rebinder_.to(t->fusion), options_.defects);
    return t;
  }
  ScheduleView view_of(Tried& t) const {
    return {t.fusion, t.sizes, t.memory, options_.device, options_.defects, &t.memo};
  }

  // Why the scheduler does not take the fusion. The schedulers before it have been asked.
  const std::optional<std::string>& why_not(size_t scheduler, Tried& t) const {
    if (scheduler == t.why_not.size()) t.why_not.push_back(ask(schedulers()[scheduler], view_of(t)));
    return t.why_not[scheduler];
  }

  // The memory with which schedulers are asked whether they take a stretch. Where the best cut is looked for, the answers
  // must not depend on the cuts that were tried before.
  const MemoryClasses& asked_memory() const { return all_.size() > kMostForBestCut ? memory_ : options_.memory; }

  // Whether a scheduler takes the ops, as far as it can tell without making the kernel plan.
  bool is_taken(const std::vector<OpId>& ops, const std::vector<bool>& needed) {
    const auto [it, is_new] = taken_.try_emplace({ops, outputs_of(ops, needed)});
    if (!is_new) return it->second;
    if (all_.is_apart(ops, needed) || all_.depth_of(ops) > kMostDepth) return false;
    // All other schedulers want a reduction. This is known without making the ops a fusion.
    const bool reduces = std::ranges::any_of(ops, [&](OpId op) { return demands(g_[op].kind, kReduction); });
    if (!reduces && read_too_often(g_, ops, all_.inputs_of(ops), needed)) return false;
    auto t = tried(segment_of(ops, needed), asked_memory());
    for (size_t i = 0; i < schedulers().size() && !it->second; ++i) it->second = !why_not(i, *t);
    const size_t count = t->fusion.ops.size();
    if (it->second && kept_ops_ + count <= kMostKeptOps) {
      kept_ops_ += count;
      tried_[ops] = std::move(t);
    }
    return it->second;
  }

  // The segment, which may be known already as a stretch that schedulers take.
  std::unique_ptr<Tried> take_tried(const Segment& segment, const std::vector<OpId>& ops) {
    if (const auto it = tried_.find(ops); it != tried_.end()) {
      auto t = std::move(it->second);
      tried_.erase(it);
      kept_ops_ -= t->fusion.ops.size();
      if (is_same_fusion(t->segment, segment) && t->memory == memory_) {
        t->fusion.name = segment.name;
        return t;
      }
    }
    return tried(segment, memory_);
  }

  // The schedule of a segment with these ops. A cut that is tried again asks for most of them once more.
  Scheduled& scheduled(const Segment& segment, const std::vector<OpId>& ops, const std::string& name) {
    Scheduled& known = scheduled_[ops];
    known.segment.name = segment.name;
    // Heuristics are replaced by name.
    const bool is_same_name = options_.heuristics.empty() || known.name == name;
    if (is_same_name && known.segment == segment && known.memory == memory_) return known;
    known = {name, segment, memory_, CutPart{.ops = ops, .steps = {}, .heuristics = {}, .declined = {}}, {}};
    known.fusion = find_schedule(*take_tried(segment, ops), known.part, name);
    return known;
  }

  // Fills in the first schedule that makes a kernel of the fusion, and returns the fusion with it. Without one the part
  // has no heuristics, and the fusion stays as it is.
  Graph find_schedule(Tried& t, CutPart& part, const std::string& name) const {
    const auto given = options_.heuristics.find(name);
    for (size_t i = 0; i < schedulers().size(); ++i) {
      const Scheduler& s = schedulers()[i];
      std::optional<std::string> why = why_not(i, t);
      Graph result;
      if (!why)
        why = refusal(
            [&] { result = schedule(s, t, given == options_.heuristics.end() ? nullptr : &given->second, part); });
      if (!why) return result;
      part.declined.push_back({std::string(s.name), *why});
    }
    part.heuristics = {};
    part.steps.clear();
    part.executor = SegmentExecutor::kKernel;
    return std::move(t.fusion);
  }

  // Why a schedule is refused that something makes; nothing if it is not.
  template <class Make>
  static std::optional<std::string> refusal(Make&& make) {
    try {
      make();
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) throw;
      return refused(e);
    }
    return std::nullopt;
  }

  // The fusion with these steps, which the scheduler made from the heuristics, and what is known of its kernel plan.
  std::pair<Graph, std::shared_ptr<KernelPlan::Views>> with_steps(Tried& t, const Heuristics& heuristics,
                                                                  const std::vector<Step>& steps) const {
    const Written written = std::exchange(t.memo.schedule, {});
    if (written.prepared && written.heuristics == heuristics && options_.defects.empty() &&
        written.prepared->w.steps() == steps)
      return {written.prepared->w.take_graph(), written.views};
    Graph result = t.fusion;
    StepApplier applier(result, options_.defects);
    work_.steps += static_cast<int64_t>(steps.size());
    for (const Step& step : steps) applier.apply(step);
    return {std::move(result), nullptr};
  }

  // Fills in the part and returns the fusion with its schedule. Throws if no kernel can be made.
  Graph schedule(const Scheduler& scheduler, Tried& t, const Replacement* replacement, CutPart& part) const {
    const ScheduleView view = view_of(t);
    const Heuristics chosen = scheduler.choose(view);
    if (options_.others) part.others = scheduler.others(view);
    const auto apply = [&](const Heuristics& heuristics) {
      part.heuristics = heuristics;
      part.steps = scheduler.plan(view, heuristics);
      part.executor = scheduler.executor;
      if (part.executor != SegmentExecutor::kKernel) return t.fusion;
      if (options_.defects.has(Defect::kChoiceForgotten)) part.heuristics.choices.pop_back();
      auto [scheduled, views] = with_steps(t, heuristics, part.steps);
      // In the order of the view's fusion, whose classes go by the ids of its values.
      ++work_.kernel_plans;
      const KernelPlan plan = plan_refusable(scheduled, {.defects = options_.defects, .sizes = {}}, std::move(views));
      if (!shows_vectors(view, plan))
        throw Error(ErrorCode::kUnalignedVector, "its vectors need more than is known of sizes and of memory");
      return std::move(scheduled);
    };
    if (replacement != nullptr && replacement->chosen == chosen) {
      Graph replaced;
      if (!refusal([&] { replaced = apply(replacement->taken); })) return replaced;
    }
    for (std::optional<Heuristics> next = chosen; true;) {
      try {
        return apply(*next);
      } catch (const Error& e) {
        next = with_narrower_vectors(*next);
        const bool is_vectors = e.code == ErrorCode::kUnalignedVector || e.code == ErrorCode::kIllegalVectorize;
        if (!is_vectors || !next) throw;  // narrower vectors do not help
      }
    }
  }

  // The ops of each stretch, without empty ones. `needed` is what the parts behind read.
  std::vector<std::pair<Stretch, std::vector<OpId>>> ops_of(const std::vector<Stretch>& stretches) const {
    std::vector<std::pair<Stretch, std::vector<OpId>>> result;
    std::vector<bool> needed = all_.is_output();
    for (size_t i = stretches.size(); i-- > 0;) {
      const Stretch s = stretches[i];
      std::vector<OpId> ops = all_.ops_of(s, needed);
      if (ops.empty()) continue;
      if (alone_.contains(s)) ops = {all_.op(s.begin)};
      for (ValueId v : all_.inputs_of(ops)) needed[v.index] = true;
      result.emplace_back(s, std::move(ops));
    }
    std::ranges::reverse(result);
    return result;
  }

  // The parts of the best cut that is known, or nothing if a schedule is refused. Then less is known to be possible.
  std::optional<std::vector<CutPart>> try_cut() {
    ++work_.tried_cuts;
    const auto stretches = ops_of(best_cut());
    Segmentation segmentation;
    segmentation.graph = g_.name;
    for (size_t i = 0; i < stretches.size(); ++i) {
      Segment& s = segmentation.segments.emplace_back();
      s.name = std::to_string(i);
      for (OpId op : stretches[i].second) s.ops.push_back(g_[g_[op].results[0]].name);
    }
    segmentation = complete(g_, std::move(segmentation), options_.defects);
    // A value that is stored over an input lies in the input's memory.
    memory_ = options_.memory;
    for (const Segment& s : segmentation.segments)
      for (const Crossing& c : s.outputs)
        if (const auto it = options_.memory.find(c.alias); it != options_.memory.end()) memory_[c.value] = it->second;
    CrossingLayouts layouts(
        g_, segmentation,
        {.infer = options_.infer, .sizes = options_.sizes, .inputs = options_.inputs, .defects = options_.defects});
    std::vector<CutPart> parts(stretches.size());
    std::vector<Scheduled*> found(parts.size());
    for (size_t i = 0; i < segmentation.segments.size(); ++i) {
      const Segment& segment = segmentation.segments[i];
      const size_t at = std::stoul(segment.name);
      const auto& [stretch, ops] = stretches[at];
      Scheduled& made = scheduled(segment, ops, part_name(g_, at, parts.size()));
      found[at] = &made;
      parts[at] = made.part;
      if (parts[at].heuristics.scheduler.empty()) {
        if (stretch.size() > 1 || ops.size() > 1) {
          if (stretch.size() > 1)
            refuse(stretch);
          else
            alone_.insert(stretch);
          return std::nullopt;
        }
      }
      layouts.take(segmentation, i, made.fusion);
    }
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].planned = {std::move(found[i]->segment), std::move(found[i]->fusion)};
    for (CutPart& part : parts)
      if (part.executor == SegmentExecutor::kAten && part.ops.size() == 1)
        if (const std::string why = why_no_epilogue(g_, part.ops[0], all_.readers()); !why.empty())
          part.declined.push_back({"epilogue", why});
    return parts;
  }

  // -- where to cut

  double bytes(ValueId v) const {
    double result = static_cast<double>(bits(g_[v].dtype)) / 8;
    for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v))) result *= static_cast<double>(sizes_.of(d).most);
    return result;
  }

  // Whether one kernel can be made of the stretch, as far as is known.
  bool is_possible(Stretch s) {
    const auto [known, is_new] = possible_.try_emplace(s);
    if (is_new) known->second = is_possible_without_refusals(s);
    return known->second;
  }

  bool is_possible_without_refusals(Stretch s) {
    ++work_.stretches;
    if (s.size() == 1) return true;
    const std::vector<bool> needed = all_.needed_of(s);
    const std::vector<OpId> ops = all_.ops_of(s, needed);
    return ops.empty() || is_taken(ops, needed);
  }

  void refuse(Stretch s) {
    possible_[s] = false;
    if (cheapest_) cheapest_->refuse(s);
  }

  std::vector<Stretch> best_cut() {
    const Stretch whole{0, all_.size()};
    if (is_possible(whole)) return {whole};
    if (all_.size() > kMostForBestCut) return longest_stretches();
    if (!cheapest_) cheapest_.emplace(costs(), [this](Stretch s) { return is_possible(s); });
    return cheapest_->find();
  }

  // By end and begin: what each stretch costs.
  std::vector<std::vector<double>> costs() const {
    std::vector<double> of_values(g_.values.size());
    for (size_t i = 0; i < of_values.size(); ++i)
      if (g_.is_tensor(ValueId(i))) of_values[i] = bytes(ValueId(i));
    std::vector<std::vector<double>> result(all_.size() + 1);
    for (size_t end = 1; end <= all_.size(); ++end) result[end] = all_.costs_until(end, kLaunchBytes, of_values);
    return result;
  }

  std::vector<Stretch> longest_stretches() {
    std::vector<Stretch> stretches;
    for (size_t begin = 0; begin < all_.size(); begin = stretches.back().end) {
      // A product of matrices takes its epilogue, whatever its length.
      const bool is_head = is_product(g_[all_.op(begin)].kind);
      size_t length = std::min(is_head ? kLongestEpilogue : kLongestStretch, all_.size() - begin);
      while (length > 1 && !is_possible({begin, begin + length})) length = is_head ? length - 1 : (length + 1) / 2;
      stretches.push_back({begin, begin + length});
    }
    return stretches;
  }

  const Graph& g_;
  const AutomaticOptions& options_;
  PlanningWork& work_;
  SegmentExtractor extractor_;
  Rebinder rebinder_;
  SizeClasses sizes_;
  MemoryClasses memory_;
  Stretches all_;
  std::map<Stretch, bool> possible_;  // those that were asked for
  std::optional<CheapestCut> cheapest_;
  std::set<Stretch> alone_;  // of one op, which runs without the cheap ops that it reads
  std::map<OpsAndOutputs, bool> taken_;
  std::map<std::vector<OpId>, std::unique_ptr<Tried>> tried_;  // those that are taken and not scheduled yet
  size_t kept_ops_ = 0;                                        // of them
  std::map<std::vector<OpId>, Scheduled> scheduled_;
};

}  // namespace

std::string part_name(const Graph& fusion, size_t index, size_t count) {
  return count == 1 ? fusion.name : assignable_name(fusion.name) + "_" + std::to_string(index);
}

std::vector<CutPart> cut(const Graph& fusion, const AutomaticOptions& options, PlanningWork& work) {
  return Cutter(fusion, options, work).run();
}

std::optional<Heuristics> choice_for_all(const Graph& fusion, const AutomaticOptions& options) {
  PlanningWork work;
  return Cutter(fusion, options, work).choice_for_all();
}

CutPart try_part(const Graph& fusion, const std::vector<OpId>& ops, const AutomaticOptions& options) {
  PlanningWork work;
  return Cutter(fusion, options, work).one(ops);
}

}  // namespace fusebox
