#include "passes/automatic/plan_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "passes/automatic/cut.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

class Reporter {
 public:
  Reporter(const Graph& g, const Segmentation& s, const AutomaticOptions& options)
      : g_(g), segmentation_(s), options_(options) {
    for (uint32_t i = 0; i < g.values.size(); ++i)
      if (!g.values[i].name.empty()) values_.try_emplace(g.values[i].name, ValueId(i));
    const auto& body = g[Graph::body()].ops;
    for (size_t i = 0; i < body.size(); ++i) positions_[body[i]] = i;
  }

  PlanReport run(const std::vector<Decision>& decisions) {
    for (const Segment& s : segmentation_.segments) {
      PlanPart& part = report_.parts.emplace_back();
      part.segment = s.name;
      part.executor = s.executor;
      part.ops = s.ops;
      for (const Crossing& c : s.inputs) part.reads.push_back(tensor(c.value));
      for (const Crossing& c : s.outputs) part.writes.push_back(tensor(c.value));
      const auto d = std::ranges::find(decisions, s.name, &Decision::segment);
      if (d == decisions.end()) continue;
      part.heuristics = text(d->heuristics);
      part.declined = d->declined;
    }
    for (size_t to = 0; to < report_.parts.size(); ++to)
      for (size_t from = 0; from < to; ++from) add_merge(from, to);
    add_copies();
    return std::move(report_);
  }

 private:
  PlanTensor tensor(const std::string& name) const {
    const ValueId v = values_.at(name);
    PlanTensor t{name, bits(g_[v].dtype)};
    for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v))) {
      const auto extent = evaluate_extent(g_, d, options_.sizes);
      if (!extent || __builtin_mul_overflow(t.bytes, *extent, &t.bytes)) return {name, 0};
    }
    t.bytes = (t.bytes + 7) / 8;
    return t;
  }

  void add_merge(size_t from, size_t to) {
    PlanMerge merge{from, to, {}, {}, {}, {}};
    for (const PlanTensor& t : report_.parts[from].writes)
      if (std::ranges::find(report_.parts[to].reads, t.name, &PlanTensor::name) != report_.parts[to].reads.end())
        merge.crossing.push_back(t);
    if (merge.crossing.empty()) return;
    if (const PlanPart* between = lies_between(from, to)) {
      merge.declined.push_back(
          {"any", "@" + between->segment + " lies between them: it reads the one and the other reads it"});
    } else if (report_.parts[from].executor != SegmentExecutor::kKernel ||
               report_.parts[to].executor != SegmentExecutor::kKernel) {
      merge.declined.push_back({"any", "one of them is no kernel"});
    } else {
      try_merge(merge);
    }
    report_.merges.push_back(std::move(merge));
  }

  void try_merge(PlanMerge& merge) const {
    const auto segmentation = merged(merge.from, merge.to);
    if (!segmentation) {
      merge.declined.push_back({"any", "another segment would have to run before and after it"});
      return;
    }
    const std::string& name = report_.parts[merge.from].segment;
    const auto at = std::ranges::find(segmentation->segments, name, &Segment::name) - segmentation->segments.begin();
    const CutPart tried = try_part(g_, *segmentation, static_cast<size_t>(at), options_);
    if (!tried.heuristics.scheduler.empty()) {
      merge.heuristics = text(tried.heuristics);
      for (const InPlaceRefusal& own : tried.own_memory) merge.own_memory.push_back(own.output);
      return;
    }
    merge.declined = tried.declined;
    if (merge.declined.empty())
      merge.declined.push_back({"any", "a segment_set or an op that reads by data keeps them apart"});
  }

  // The segmentation with two segments as one, which has the name of the first. What it reads keeps its layout. Nothing if
  // segments would wait for each other.
  std::optional<Segmentation> merged(size_t from, size_t to) const {
    Segmentation result = segmentation_;
    Segment& one = result.segments[from];
    std::map<size_t, std::string> ops;
    for (size_t part : {from, to})
      for (const std::string& name : report_.parts[part].ops)
        ops.emplace(positions_.at(g_[values_.at(name)].def), name);
    one.ops.clear();
    one.steps.clear();
    for (const auto& [at, name] : ops) one.ops.push_back(name);
    result.segments.erase(result.segments.begin() + static_cast<std::ptrdiff_t>(to));
    const std::string name = one.name;
    try {
      result = complete(g_, std::move(result), options_.defects);
    } catch (const Error& e) {
      if (e.code != ErrorCode::kInvalidGraph) throw;
      return std::nullopt;
    }
    for (Crossing& in : std::ranges::find(result.segments, name, &Segment::name)->inputs)
      for (size_t part : {from, to})
        for (const Crossing& known : segmentation_.segments[part].inputs)
          if (known.value == in.value) in.allocation_order = known.allocation_order, in.contiguity = known.contiguity;
    return result;
  }

  void add_copies() {
    std::set<std::string> in_place;
    for (const Segment& s : segmentation_.segments)
      for (const Crossing& c : s.outputs)
        if (!c.alias.empty()) in_place.insert(c.value);
    for (const OutputRef& out : outputs(g_)) {
      if (!out.alias || out.alias == out.value || !g_.is_tensor(out.value) || in_place.contains(g_[out.value].name))
        continue;
      report_.copies.push_back({tensor(g_[out.value].name), g_[out.alias].name});
    }
  }

  // A part that must run between the two.
  const PlanPart* lies_between(size_t from, size_t to) const {
    std::set<size_t> after{from};
    for (size_t i = from + 1; i < to; ++i)
      if (std::ranges::any_of(after, [&](size_t a) { return reads(i, a); })) after.insert(i);
    after.erase(from);
    for (size_t i : after)
      if (reads(to, i)) return &report_.parts[i];
    return nullptr;
  }
  bool reads(size_t reader, size_t maker) const {
    return std::ranges::any_of(report_.parts[reader].reads, [&](const PlanTensor& t) {
      return std::ranges::find(report_.parts[maker].writes, t.name, &PlanTensor::name) !=
             report_.parts[maker].writes.end();
    });
  }

  const Graph& g_;
  const Segmentation& segmentation_;
  const AutomaticOptions& options_;
  std::map<std::string, ValueId> values_;
  std::map<OpId, size_t> positions_;
  PlanReport report_;
};

}  // namespace

PlanReport report_plan(const Graph& fusion, const Segmentation& segmentation, const std::vector<Decision>& decisions,
                       const AutomaticOptions& options) {
  return Reporter(fusion, segmentation, options).run(decisions);
}

}  // namespace fusebox
