// The oracle that assigns the ops to segments at random and orders the segments by itself.
#include <algorithm>
#include <set>

#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "passes/segment/assign_step.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kMostSegments = 4;

// For each op that makes a tensor, by position: its segments. Also the steps that say so.
struct Dealt {
  std::vector<OpId> ops;
  std::vector<std::set<size_t>> segments;
  std::vector<Step> steps;
};

Dealt deal(RandomSource& random, const Graph& g) {
  Dealt dealt;
  for (OpId id : g[Graph::body()].ops)
    if (const Op& op = g[id]; op.kind != OpKind::kInput && !op.results.empty() && g.is_tensor(op.results[0]))
      dealt.ops.push_back(id);
  const size_t count = 2 + random.below(kMostSegments - 1);
  dealt.segments.resize(dealt.ops.size());
  for (auto& of : dealt.segments) {
    of.insert(random.below(count));
    // Several segments may compute an op.
    if (random.one_in(8)) of.insert(random.below(count));
  }
  for (size_t s = 0; s < count; ++s) {
    std::vector<std::string> ops;
    for (size_t i = 0; i < dealt.ops.size(); ++i)
      if (dealt.segments[i].contains(s)) ops.push_back(g[g[dealt.ops[i]].results[0]].name);
    if (!ops.empty()) dealt.steps.push_back(assign_step(ops, "s" + std::to_string(s), SegmentExecutor::kKernel));
  }
  return dealt;
}

// The segments that a segment waits for, directly or indirectly. If several compute a value, the first one provides it.
using Waits = std::array<std::array<bool, kMostSegments>, kMostSegments>;
Waits waits_of(const Graph& g, const Dealt& dealt) {
  Waits waits = {};
  for (size_t i = 0; i < dealt.ops.size(); ++i)
    for (ValueId v : g[dealt.ops[i]].operands) {
      const auto maker = v ? std::find(dealt.ops.begin(), dealt.ops.end(), g[v].def) : dealt.ops.end();
      if (maker == dealt.ops.end()) continue;
      const auto& makers = dealt.segments[static_cast<size_t>(maker - dealt.ops.begin())];
      for (size_t s : dealt.segments[i])
        if (!makers.contains(s)) waits[s][*makers.begin()] = true;
    }
  for (size_t by = 0; by < kMostSegments; ++by)
    for (auto& row : waits)
      for (size_t to = 0; to < kMostSegments; ++to) row[to] = row[to] || (row[by] && waits[by][to]);
  return waits;
}

}  // namespace

void segments(OracleRun& run) {
  const Graph& g = run.fusion();
  RandomSource random = run.random(53);
  const Dealt dealt = deal(random, g);
  if (dealt.ops.size() < 2) return;
  const Waits waits = waits_of(g, dealt);
  std::set<std::string> cyclic;
  for (size_t s = 0; s < kMostSegments; ++s)
    if (waits[s][s]) cyclic.insert("segment s" + std::to_string(s));
  try {
    const Segmentation made = plan_assigned(g, dealt.steps, run.options().defects);
    if (!cyclic.empty())
      return run.report("segments", "cycle", "", "segments that need each other are ordered: " + *cyclic.begin());
    if (made.segments.size() != dealt.steps.size())
      return run.report("segments", "count", "", "some segments are missing, or there are others");
    for (size_t i = 0; i < made.segments.size(); ++i)
      for (size_t k = i + 1; k < made.segments.size(); ++k) {
        const auto number = [](const Segment& s) { return static_cast<size_t>(s.name[1] - '0'); };
        if (waits[number(made.segments[i])][number(made.segments[k])])
          run.report("segments", "order", "",
                     made.segments[i].name + " runs before " + made.segments[k].name + ", which it waits for");
      }
  } catch (const Error& e) {
    if (cyclic.empty() || e.code != ErrorCode::kInvalidGraph)
      run.report("segments", e, "ops dealt out to segments");
    else if (!cyclic.contains(e.place))
      run.report("segments", "place", "", "the refusal names " + e.place + ", which is on no cycle");
  }
}

}  // namespace fusebox::fuzz
