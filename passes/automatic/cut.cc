#include "passes/automatic/cut.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "ir/canonical/canonical.h"
#include "ir/graph/name_index.h"
#include "ir/infer/product_call.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/automatic/cut_views.h"
#include "passes/automatic/cut_windows.h"
#include "passes/automatic/left_behind.h"
#include "passes/automatic/stretches.h"
#include "passes/plan/parameters.h"
#include "passes/plan/plan_stages.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/fresh_names.h"
#include "passes/schedule/neighbours.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/schedule_memo.h"
#include "passes/schedule/vector_width.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/own_memory.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

// The cost of a launch, as bytes that memory could move meanwhile: about 2 µs at 4 TB/s.
constexpr double kLaunchBytes = 8e6;
// The cost of a copy of an output over the input that it overwrites, besides the output's bytes. It is a bit less than a
// launch, so that one kernel and a copy of a small output are preferred to two kernels.
constexpr double kCopyBytes = 6e6;
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
  // `views` are the ops that no kernel has.
  Cutter(const Graph& g, const AutomaticOptions& options, PlanningWork& work, std::vector<OpId> views = {})
      : g_(g),
        options_(options),
        work_(work),
        extractor_(g, options.defects),
        rebinder_(g, options.sizes),
        sizes_(g, options.sizes, options.defects),
        views_(g, std::move(views), sizes_, options.memory, options.defects),
        memory_(views_.memory()),
        all_(g, options.defects, views_.ops()),
        windows_(all_.independent(), kMostForBestCut) {}

  bool takes_all() { return all_.size() == 0 || is_possible({0, all_.size()}); }

  std::vector<CutPart> run() {
    if (all_.size() == 0 && views_.ops().empty()) return {};
    while (true)
      if (auto parts = try_cut()) return *std::move(parts);
  }

  CutPart one(const Segmentation& segmentation, size_t at) {
    Segment segment = segmentation.segments[at];
    CutPart part;
    NameIndex names(g_);
    for (const std::string& name : segment.ops) part.ops.push_back(g_[*names.find(name)].def);
    std::vector<bool> needed(g_.values.size());
    for (const Crossing& c : segment.outputs) needed[names.find(c.value)->index] = true;
    const std::vector<OpId>& ops = part.ops;
    if (all_.is_apart(ops, needed)) return part;
    if (const int depth = all_.depth_of(ops); depth > kMostDepth) {
      part.declined.push_back(
          {"any", std::to_string(depth) + " reductions stand one behind the other, each a walk over the rows"});
      return part;
    }
    memory_ = views_.memory_in(segmentation);
    while (true) {
      CutPart found = part;
      find_schedule(*tried(segment, memory_), found, {});
      if (!found.heuristics.scheduler.empty() || !found.in_place) return found;
      const auto output = std::ranges::find(segment.outputs, found.in_place->output, &Crossing::value);
      output->alias.clear();
      memory_.erase(output->value);
      part.own_memory.push_back(*std::move(found.in_place));
    }
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
    views_.lay_out_inputs(s);
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

  // Why a scheduler does not take the fusion, as far as it can tell. Where a tensor has no elements, a reshape splits
  // loops by 0, and a reduction may have no loop. Such a part has little to gain, so it runs as in the unfused plan.
  static std::optional<std::string> ask(const Scheduler& s, const ScheduleView& view) {
    std::optional<std::string> why;
    if (s.executor == SegmentExecutor::kKernel) why = too_many_parameters(view.fusion);
    if (why) return why;
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
  const MemoryClasses& asked_memory() const { return windows_.longest() > kMostForBestCut ? memory_ : views_.memory(); }

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
  Scheduled& scheduled(const Segment& segment, const std::vector<OpId>& ops, const std::string& name,
                       const std::vector<InPlaceRefusal>& own) {
    Scheduled& known = scheduled_[ops];
    known.segment.name = segment.name;
    // Heuristics are replaced by name.
    const bool is_same_name = options_.heuristics.empty() || known.name == name;
    const bool is_same_place =
        std::ranges::equal(known.part.own_memory, own, {}, &InPlaceRefusal::output, &InPlaceRefusal::output);
    if (is_same_name && is_same_place && known.segment == segment && known.memory == memory_) return known;
    known = {name, segment, memory_, CutPart{.ops = ops, .steps = {}, .heuristics = {}, .declined = {}}, {}};
    known.part.own_memory = own;
    known.fusion = find_schedule(*take_tried(segment, ops), known.part, name);
    if (!known.part.heuristics.scheduler.empty()) give_own_memory(known);
    return known;
  }

  // Adds the steps that give outputs memory of their own. The kernel plan stays as it is: outputs are in global memory
  // anyway.
  void give_own_memory(Scheduled& made) const {
    StepApplier applier(made.fusion, options_.defects);
    for (const InPlaceRefusal& own : made.part.own_memory) {
      made.part.steps.push_back(own_memory_step(output_after(made.part.steps, own.output)));
      applier.apply(made.part.steps.back());
      ++work_.steps;
      made.part.declined.push_back({"in place", own.why});
    }
  }

  // Fills in the first schedule that makes a kernel of the fusion, and returns the fusion with it. Without one the part
  // has no heuristics, and the fusion stays as it is.
  Graph find_schedule(Tried& t, CutPart& part, const std::string& name) const {
    const auto given = options_.heuristics.find(name);
    for (size_t i = 0; i < schedulers().size(); ++i) {
      const Scheduler& s = schedulers()[i];
      std::optional<std::string> why = why_not(i, t);
      if (!why) {
        Graph result;
        part.steps.clear();
        const auto error = refusal(
            [&] { result = schedule(s, t, given == options_.heuristics.end() ? nullptr : &given->second, part); });
        if (!error) return result;
        why = refused(*error);
        if (error->code == ErrorCode::kIllegalAliasOrder && !part.in_place)
          part.in_place = in_place_refusal(t.segment, part.steps, *error);
      }
      part.declined.push_back({std::string(s.name), *why});
    }
    part.heuristics = {};
    part.steps.clear();
    part.executor = SegmentExecutor::kKernel;
    return std::move(t.fusion);
  }

  // Which output of the segment a schedule with these steps may not store over an input.
  static InPlaceRefusal in_place_refusal(const Segment& segment, const std::vector<Step>& steps, const Error& error) {
    const auto is_over = [](const Crossing& c) { return !c.alias.empty(); };
    const auto is_named = [&](const Crossing& c) {
      return is_over(c) && error.place == "%" + output_after(steps, c.value);
    };
    auto output = std::ranges::find_if(segment.outputs, is_named);
    if (output == segment.outputs.end()) output = std::ranges::find_if(segment.outputs, is_over);
    check_internal(output != segment.outputs.end(), "an output is refused its place and lies over no input");
    return {output->value, std::string(error.what()) + " (%" + output->value + ")"};
  }

  // Why a schedule is refused that something makes; nothing if it is not.
  template <class Make>
  static std::optional<Error> refusal(Make&& make) {
    try {
      make();
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) throw;
      return e;
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
      if (const auto error = left_behind(scheduled)) throw *error;
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
        // Where vectors are refused, narrower ones may help. A multiple gives a size another form, and a thread that takes
        // several chunks walks a loop of its own: both may not be proved equal to what they meet.
        const bool is_vectors = e.code == ErrorCode::kUnalignedVector || e.code == ErrorCode::kIllegalVectorize;
        next = is_vectors ? with_narrower_vectors(*next) : plainer(*next);
        if (!next) throw;
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
      if (views_.is_inner(stretches[i].second)) s.executor = SegmentExecutor::kView;
    }
    views_.add_to(segmentation, stretches.size());
    segmentation = complete(g_, std::move(segmentation), options_.defects);
    std::vector<std::vector<InPlaceRefusal>> own(stretches.size());
    for (Segment& s : segmentation.segments)
      if (const size_t at = std::stoul(s.name); at < stretches.size())
        own[at] = take_off_inputs(segmentation, s, stretches[at].first);
    memory_ = views_.memory_in(segmentation);
    CrossingLayouts layouts(
        g_, segmentation,
        {.infer = options_.infer, .sizes = options_.sizes, .inputs = options_.inputs, .defects = options_.defects});
    std::vector<CutPart> parts(segmentation.segments.size());
    std::vector<Scheduled*> found(stretches.size());
    for (size_t i = 0; i < segmentation.segments.size(); ++i) {
      const Segment& segment = segmentation.segments[i];
      const size_t at = std::stoul(segment.name);
      if (segment.executor == SegmentExecutor::kView) {
        parts[at] = views_.part(segment, extractor_.extract(segment));
        layouts.take(segmentation, i, parts[at].planned.scheduled);
        continue;
      }
      const auto& [stretch, ops] = stretches[at];
      Scheduled& made = scheduled(segment, ops, part_name(g_, at, parts.size()), own[at]);
      found[at] = &made;
      parts[at] = made.part;
      if (parts[at].heuristics.scheduler.empty()) {
        if (stretch.size() > 1 || ops.size() > 1) {
          if (made.part.in_place)
            try_own_memory(stretch, *made.part.in_place);
          else if (stretch.size() > 1)
            refuse(stretch);
          else
            alone_.insert(stretch);
          return std::nullopt;
        }
      }
      segmentation.segments[i].executor = parts[at].executor;
      layouts.take(segmentation, i, made.fusion);
    }
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i]) parts[i].planned = {std::move(found[i]->segment), std::move(found[i]->fusion)};
    for (CutPart& part : parts)
      if (part.executor == SegmentExecutor::kAten && part.ops.size() == 1)
        if (const std::string why = why_no_epilogue(g_, part.ops[0], all_.readers()); !why.empty())
          part.declined.push_back({"epilogue", why});
    return parts;
  }

  // Clears the places of the stretch's outputs that get memory of their own, in the segment and in those that read them.
  // Returns these outputs.
  std::vector<InPlaceRefusal> take_off_inputs(Segmentation& segmentation, Segment& segment, Stretch stretch) const {
    std::vector<InPlaceRefusal> result;
    const auto known = own_memory_.find(stretch);
    if (known == own_memory_.end() || alone_.contains(stretch)) return result;
    for (const InPlaceRefusal& own : known->second) {
      const auto output = std::ranges::find(segment.outputs, own.output, &Crossing::value);
      if (output == segment.outputs.end() || output->alias.empty()) continue;  // it is copied in any case
      output->alias.clear();
      for (Segment& s : segmentation.segments)
        for (Crossing& c : s.inputs)
          if (c.value == own.output) c.alias.clear();
      result.push_back(own);
    }
    return result;
  }

  // From now on the stretch has memory of its own for the output, and costs a copy more.
  void try_own_memory(Stretch s, InPlaceRefusal output) {
    windows_.raise(s, copy_cost(output));
    own_memory_[s].push_back(std::move(output));
  }

  // -- where to cut

  double copy_cost(const InPlaceRefusal& output) const {
    return kCopyBytes + 2 * bytes(*find_value(g_, output.output));
  }

  double bytes(ValueId v) const { return bytes_at_most(g_, v, sizes_); }

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
    windows_.refuse(s);
  }

  std::vector<Stretch> best_cut() {
    const Stretch whole{0, all_.size()};
    if (!own_memory_.contains(whole) && is_possible(whole)) return {whole};
    std::vector<Stretch> result;
    for (size_t i = 0; i < windows_.size(); ++i) {
      const Stretch ops = windows_[i];
      if (ops.size() <= kMostForBestCut && !windows_.is_begun(i)) begin_window(i);
      const auto cut = ops.size() > kMostForBestCut ? longest_stretches(ops) : windows_.cheapest(i);
      result.insert(result.end(), cut.begin(), cut.end());
    }
    return result;
  }

  // By end and begin: what each stretch of the window costs.
  void begin_window(size_t i) {
    const Stretch ops = windows_[i];
    if (of_values_.empty()) {
      of_values_.resize(g_.values.size());
      for (size_t v = 0; v < of_values_.size(); ++v)
        if (g_.is_tensor(ValueId(v))) of_values_[v] = bytes(ValueId(v));
    }
    std::vector<std::vector<double>> costs(ops.size() + 1);
    for (size_t k = 1; k <= ops.size(); ++k) {
      costs[k] = all_.costs_until(ops.begin, ops.begin + k, kLaunchBytes, of_values_);
      const Stretch last{ops.begin + k - 1, ops.begin + k};
      if (views_.is_inner({all_.op(last.begin)}) && all_.ops_of(last, all_.needed_of(last)).size() == 1)
        costs[k][k - 1] = 0;
    }
    windows_.begin(i, std::move(costs), [this](Stretch s) { return is_possible(s); });
    for (const auto& [s, known] : own_memory_)
      if (s.begin >= ops.begin && s.end <= ops.end)
        for (const InPlaceRefusal& output : known) windows_.raise(s, copy_cost(output));
  }

  std::vector<Stretch> longest_stretches(Stretch ops) {
    std::vector<Stretch> stretches;
    for (size_t begin = ops.begin; begin < ops.end; begin = stretches.back().end) {
      // A product of matrices takes its epilogue, whatever its length.
      const bool is_head = is_product(g_[all_.op(begin)].kind);
      size_t length = std::min(is_head ? kLongestEpilogue : kLongestStretch, ops.end - begin);
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
  const CutViews views_;
  MemoryClasses memory_;
  Stretches all_;
  std::map<Stretch, bool> possible_;  // those that were asked for
  CutWindows windows_;
  std::vector<double> of_values_;  // the bytes of each tensor, for all windows
  std::set<Stretch> alone_;        // of one op, which runs without the cheap ops that it reads
  // Outputs that no schedule of the stretch can store over their inputs.
  std::map<Stretch, std::vector<InPlaceRefusal>> own_memory_;
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
  std::vector<OpId> views = CutViews::find(fusion, options.defects);
  // One kernel needs no views. A scheduler may take all, and its schedule be refused.
  if (!views.empty()) {
    Cutter whole(fusion, options, work);
    if (whole.takes_all())
      if (auto parts = whole.run(); parts.size() <= 1) return parts;
  }
  return Cutter(fusion, options, work, std::move(views)).run();
}

std::optional<Heuristics> choice_for_all(const Graph& fusion, const AutomaticOptions& options) {
  PlanningWork work;
  return Cutter(fusion, options, work).choice_for_all();
}

CutPart try_part(const Graph& fusion, const Segmentation& segmentation, size_t segment,
                 const AutomaticOptions& options) {
  PlanningWork work;
  return Cutter(fusion, options, work, CutViews::of(fusion, segmentation)).one(segmentation, segment);
}

}  // namespace fusebox
