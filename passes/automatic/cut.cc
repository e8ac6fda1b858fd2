#include "passes/automatic/cut.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "ir/canonical/canonical.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

// What a launch costs, as bytes that memory could move meanwhile: about 2 µs at 4 TB/s.
constexpr double kLaunchBytes = 8e6;
// A fusion of more ops is not cut at its best places but in stretches as long as schedulers take.
constexpr size_t kMostForBestCut = 96;
constexpr size_t kLongestStretch = 128;

struct Stretch {
  size_t begin = 0, end = 0;  // positions in the order of the ops
  auto operator<=>(const Stretch&) const = default;
  size_t size() const { return end - begin; }
};

class Cutter {
 public:
  Cutter(const Graph& g, const AutomaticOptions& options)
      : g_(g),
        options_(options),
        extractor_(g),
        rebinder_(g, options.sizes),
        sizes_(g, options.sizes),
        memory_(options.memory),
        readers_(uses(g)),
        positions_(g.ops.size(), kNowhere),
        is_output_(g.values.size()) {
    for (OpId op : g[Graph::body()].ops)
      if (g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0])) {
        positions_[op.index] = order_.size();
        order_.push_back(op);
      }
    for (const OutputRef& out : outputs(g)) is_output_[out.value.index] = true;
  }

  std::vector<CutPart> run() {
    if (order_.empty()) return {};
    while (true)
      if (auto parts = try_cut()) return *std::move(parts);
  }

  CutPart one(const std::vector<OpId>& ops) {
    const std::set<OpId> inside(ops.begin(), ops.end());
    std::vector<bool> needed = is_output_;
    for (OpId op : ops)
      for (ValueId v : g_[op].results)
        for (OpId reader : readers_[v.index]) needed[v.index] = needed[v.index] || !inside.contains(reader);
    CutPart part{ops, {}, {}, {}};
    if (is_apart(ops)) return part;
    Graph fusion = extractor_.extract(segment_of(ops, needed));
    find_schedule(fusion, part);
    return part;
  }

 private:
  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

  // -- the ops of a stretch

  // Whether the op is computed again wherever it is read: its operand has no more bytes than its result.
  bool is_cheap(OpId op) const {
    const Op& o = g_[op];
    switch (o.kind) {
      case OpKind::kFull:
      case OpKind::kIota:
      case OpKind::kBroadcast:
      case OpKind::kBroadcastInDim:
      case OpKind::kExpand:
      case OpKind::kSqueeze:
        return true;
      case OpKind::kCast:
        return bits(g_[o.operands[0]].dtype) < bits(g_[o.results[0]].dtype);
      default:  // any other: storing its result is right, and never costs more than it saves by much
        return false;
    }
  }

  // Values that other stretches read, if each of them computes cheap ops again.
  std::vector<bool> needed_of(Stretch s) const {
    std::vector<bool> needed(g_.values.size());
    for (size_t i = s.begin; i < s.end; ++i)
      for (ValueId v : g_[order_[i]].results) {
        bool is_needed = is_output_[v.index];
        for (OpId reader : readers_[v.index])
          if (const size_t at = positions_[reader.index]; at != kNowhere && (at < s.begin || at >= s.end))
            is_needed |= !is_cheap(order_[i]);
        needed[v.index] = is_needed;
      }
    return needed;
  }

  // The ops of a stretch that the needed values need, and the cheap ops before it that these read.
  std::vector<OpId> ops_of(Stretch s, const std::vector<bool>& needed) const {
    std::set<size_t> taken;
    std::vector<size_t> open;
    const auto take = [&](size_t at) {
      if (taken.insert(at).second) open.push_back(at);
    };
    for (size_t i = s.begin; i < s.end; ++i)
      if (std::ranges::any_of(g_[order_[i]].results, [&](ValueId v) { return needed[v.index]; })) take(i);
    while (!open.empty()) {
      const OpId op = order_[open.back()];
      open.pop_back();
      for (ValueId v : g_[op].operands) {
        if (!v || !g_[v].def || !g_.is_tensor(v)) continue;
        const size_t at = positions_[g_[v].def.index];
        if (at != kNowhere && (at >= s.begin || (is_cheap(order_[at]) && !is_output_[v.index]))) take(at);
      }
    }
    std::vector<OpId> ops;
    for (size_t at : taken) ops.push_back(order_[at]);
    return ops;
  }

  // The tensors that ops read and do not make.
  std::vector<ValueId> inputs_of(const std::vector<OpId>& ops) const {
    const std::set<OpId> inside(ops.begin(), ops.end());
    std::set<ValueId> read;
    for (OpId op : ops)
      for (ValueId v : g_[op].operands)
        if (v && g_.is_tensor(v) && !inside.contains(g_[v].def)) read.insert(v);
    return {read.begin(), read.end()};
  }

  Segment segment_of(const std::vector<OpId>& ops, const std::vector<bool>& needed) const {
    Segment s;
    s.name = g_.name;
    for (OpId op : ops) s.ops.push_back(g_[g_[op].results[0]].name);
    for (ValueId v : inputs_of(ops)) s.inputs.push_back({g_[v].name, {}, {}, {}});
    for (OpId op : ops)
      for (ValueId v : g_[op].results)
        if (needed[v.index]) s.outputs.push_back({g_[v].name, {}, {}, {}});
    return s;
  }

  // -- schedules

  // Ops that no single kernel has together, whatever its schedule.
  bool is_apart(const std::vector<OpId>& ops) const {
    const std::set<OpId> inside(ops.begin(), ops.end());
    for (OpId op : ops) {
      const Op& o = g_[op];
      if (o.kind == OpKind::kSegmentSet)
        for (OpId reader : readers_[o.results[0].index])
          if (inside.contains(reader)) return true;
      if (demands(o.kind, kIndexed) && ops.size() > 1 && inside.contains(g_[o.operands[0]].def)) return true;
    }
    return false;
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
  static std::optional<std::string> why_not(const Scheduler& s, const ScheduleView& view) {
    auto why = s.declines(view);
    if (why) return why;
    const bool is_plain = std::ranges::none_of(
        view.fusion.ops, [](const Op& op) { return op.kind == OpKind::kReshape || demands(op.kind, kReduction); });
    if (is_plain) return why;
    if (const std::string empty = tensor_without_elements(view); !empty.empty()) why = "%" + empty + " has no elements";
    return why;
  }

  // Whether a scheduler takes the ops, as far as it can tell without making the kernel plan.
  bool is_taken(const std::vector<OpId>& ops, const std::vector<bool>& needed) {
    const auto [it, is_new] = taken_.try_emplace(ops);
    if (!is_new) return it->second;
    if (is_apart(ops)) return false;
    const Graph fusion = extractor_.extract(segment_of(ops, needed));
    const SizeClasses sizes(fusion, rebinder_.to(fusion));
    const ScheduleView view{fusion, sizes, memory_, options_.device};
    return it->second = std::ranges::any_of(schedulers(), [&](const Scheduler& s) { return !why_not(s, view); });
  }

  // Fills in the first schedule that makes a kernel of the fusion, and schedules the fusion by it. Without one the part
  // has no heuristics.
  void find_schedule(Graph& fusion, CutPart& part) const {
    const SizeClasses sizes(fusion, rebinder_.to(fusion));
    const ScheduleView view{fusion, sizes, memory_, options_.device};
    for (const Scheduler& s : schedulers()) {
      auto why = why_not(s, view);
      if (!why) {
        Graph scheduled = fusion;
        why = refusal(s, view, part, scheduled);
        if (why->empty()) {
          fusion = std::move(scheduled);
          return;
        }
      }
      part.declined.push_back({std::string(s.name), *why});
    }
    part.heuristics = {};
    part.steps.clear();
  }

  // Schedules the fusion. Returns why the scheduler makes no kernel of it; empty if it does.
  std::string refusal(const Scheduler& scheduler, const ScheduleView& view, CutPart& part, Graph& fusion) const {
    try {
      part.heuristics = scheduler.choose(view);
      part.steps = scheduler.plan(view, part.heuristics);
      StepApplier applier(fusion, options_.defects);
      for (const Step& step : part.steps) applier.apply(step);
      (void)plan_refusable(canonical_order(fusion), {.defects = options_.defects, .sizes = {}});
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) throw;
      return "its schedule is refused: " + std::string(e.what()) + (e.place.empty() ? "" : " (" + e.place + ")");
    }
    return {};
  }

  // The ops of each stretch, without empty ones. `needed` is what the parts behind read.
  std::vector<std::pair<Stretch, std::vector<OpId>>> ops_of(const std::vector<Stretch>& stretches) const {
    std::vector<std::pair<Stretch, std::vector<OpId>>> result;
    std::vector<bool> needed = is_output_;
    for (size_t i = stretches.size(); i-- > 0;) {
      const Stretch s = stretches[i];
      std::vector<OpId> ops = ops_of(s, needed);
      if (ops.empty()) continue;
      if (alone_.contains(s)) ops = {order_[s.begin]};
      for (ValueId v : inputs_of(ops)) needed[v.index] = true;
      result.emplace_back(s, std::move(ops));
    }
    std::ranges::reverse(result);
    return result;
  }

  // The parts of the best cut that is known, or nothing if a schedule is refused. Then less is known to be possible.
  std::optional<std::vector<CutPart>> try_cut() {
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
    CrossingLayouts layouts(g_, segmentation, options_.defects);
    std::vector<CutPart> parts(stretches.size());
    for (size_t i = 0; i < segmentation.segments.size(); ++i) {
      const Segment& segment = segmentation.segments[i];
      const size_t at = std::stoul(segment.name);
      const auto& [stretch, ops] = stretches[at];
      parts[at].ops = ops;
      Graph fusion = extractor_.extract(segment);
      find_schedule(fusion, parts[at]);
      if (parts[at].heuristics.scheduler.empty()) {
        if (stretch.size() > 1 || ops.size() > 1) {
          (stretch.size() > 1 ? refused_ : alone_).insert(stretch);
          return std::nullopt;
        }
      }
      layouts.take(segmentation, i, fusion);
    }
    return parts;
  }

  // -- where to cut

  double bytes(ValueId v) const {
    double result = static_cast<double>(bits(g_[v].dtype)) / 8;
    for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v))) result *= static_cast<double>(sizes_.of(d).most);
    return result;
  }

  std::optional<double> cost(Stretch s) {
    if (refused_.contains(s)) return std::nullopt;
    const std::vector<bool> needed = needed_of(s);
    const std::vector<OpId> ops = ops_of(s, needed);
    if (ops.empty()) return 0;
    if (s.size() > 1 && !is_taken(ops, needed)) return std::nullopt;
    double total = kLaunchBytes;
    for (ValueId v : inputs_of(ops)) total += bytes(v);
    for (OpId op : ops)
      for (ValueId v : g_[op].results)
        if (needed[v.index]) total += bytes(v);
    return total;
  }

  std::vector<Stretch> best_cut() {
    const Stretch whole{0, order_.size()};
    if (cost(whole)) return {whole};
    return order_.size() > kMostForBestCut ? longest_stretches() : cheapest_stretches();
  }

  // The cut of least cost, by the best cut of what stands before each position.
  std::vector<Stretch> cheapest_stretches() {
    std::vector<double> least(order_.size() + 1, std::numeric_limits<double>::infinity());
    std::vector<size_t> from(order_.size() + 1);
    least[0] = 0;
    for (size_t end = 1; end <= order_.size(); ++end)
      for (size_t begin = end; begin-- > 0;)
        if (const auto c = cost({begin, end}); c && least[begin] + *c < least[end]) {
          least[end] = least[begin] + *c;
          from[end] = begin;
        }
    std::vector<Stretch> stretches;
    for (size_t end = order_.size(); end > 0; end = from[end]) stretches.push_back({from[end], end});
    std::ranges::reverse(stretches);
    return stretches;
  }

  std::vector<Stretch> longest_stretches() {
    std::vector<Stretch> stretches;
    for (size_t begin = 0; begin < order_.size(); begin = stretches.back().end) {
      size_t length = std::min(kLongestStretch, order_.size() - begin);
      while (length > 1 && !cost({begin, begin + length})) length = (length + 1) / 2;
      stretches.push_back({begin, begin + length});
    }
    return stretches;
  }

  const Graph& g_;
  const AutomaticOptions& options_;
  SegmentExtractor extractor_;
  Rebinder rebinder_;
  SizeClasses sizes_;
  MemoryClasses memory_;
  std::vector<std::vector<OpId>> readers_;  // by value
  std::vector<OpId> order_;                 // the ops that make tensors
  std::vector<size_t> positions_;           // by op: its position in the order
  std::vector<bool> is_output_;             // by value
  std::set<Stretch> refused_;               // of several ops: no kernel can be made of them
  std::set<Stretch> alone_;                 // of one op, which runs without the cheap ops that it reads
  std::map<std::vector<OpId>, bool> taken_;
};

}  // namespace

std::vector<CutPart> cut(const Graph& fusion, const AutomaticOptions& options) { return Cutter(fusion, options).run(); }

CutPart try_part(const Graph& fusion, const std::vector<OpId>& ops, const AutomaticOptions& options) {
  return Cutter(fusion, options).one(ops);
}

}  // namespace fusebox
