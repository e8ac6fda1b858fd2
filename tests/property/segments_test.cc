// Law: the ops of a fusion may be assigned to segments in any way that some order fits, and kernels or ATen may run
// them: the outputs are right, including overwritten inputs and crossing tensors and scalars, and the run replays
// identically from its bundle. An assignment without an order is refused with a code.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "passes/segment/segment.h"
#include "replay/device/module_loader.h"
#include "replay/record/record.h"
#include "replay/record/replay.h"
#include "tests/support/random_fusion.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

using testing::Random;
using testing::setting;

std::vector<std::vector<std::string>> tensor_ops(const Graph& g) {
  std::vector<std::vector<std::string>> result;
  for (OpId op : g[Graph::body()].ops) {
    if (g[op].kind == OpKind::kInput || g[op].results.empty() || !g.is_tensor(g[op].results[0])) continue;
    result.emplace_back();
    for (ValueId v : g[op].results) result.back().push_back(g[v].name);
  }
  return result;
}

bool is_reduction(const Graph& g, const std::string& name) {
  return demands(g[g[*find_value(g, name)].def].kind, kReduction);
}

// Segments of about 1 to 4 ops. The unfused plan schedules a kernel of one op; a kernel of several runs in one thread,
// through global memory. Ops are taken in text order, or at random, for which there may be no order.
std::vector<Step> random_assignment(const Graph& g, Random& random, bool in_order) {
  std::vector<std::pair<std::string, std::vector<std::string>>> segments;
  for (const auto& names : tensor_ops(g)) {
    const std::string& name = random.pick(names);
    const bool is_new = segments.empty() || random.one_in(3);
    if (is_new) segments.push_back({"s" + std::to_string(segments.size()), {}});
    const size_t at = in_order || is_new ? segments.size() - 1 : random.below(segments.size());
    segments[at].second.push_back(name);
    // Two segments compute some of the ops.
    if (random.one_in(8)) segments[random.below(segments.size())].second.push_back(name);
  }
  std::vector<Step> steps, marks;
  std::map<std::string, int> copies;
  for (const auto& [segment, names] : segments)
    for (const std::string& name : names) ++copies[name];
  for (const auto& [segment, names] : segments) {
    Step step{StepKind::kAssign, {}, {}, {}};
    for (const std::string& name : names) step.operands.push_back(StepOperand::of(name));
    const bool simple = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return copies[name] == 1 && !is_reduction(g, name);
    });
    const bool kernel = (names.size() == 1 || simple) && !random.one_in(3);
    if (kernel && names.size() > 1)
      for (const std::string& name : names) {
        marks.push_back({StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}});
        marks.back().attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
      }
    step.attrs.set(AttrKey::kName, segment);
    step.attrs.set_enum(AttrKey::kExecutor, kernel ? SegmentExecutor::kKernel : SegmentExecutor::kAten);
    steps.push_back(step);
  }
  // The order of assign steps does not matter.
  for (size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[random.below(i)]);
  steps.insert(steps.end(), marks.begin(), marks.end());
  return steps;
}

// Makes one change to a host program, as in a bundle from a foreign writer.
void damage(Graph& host, Random& random) {
  auto& body = host[Graph::body()].ops;
  std::vector<size_t> calls, frees;
  for (size_t i = 0; i < body.size(); ++i) {
    if (host[body[i]].kind == OpKind::kRunAten) calls.push_back(i);
    if (host[body[i]].kind == OpKind::kDeallocate) frees.push_back(i);
  }
  if (!frees.empty() && (calls.empty() || random.one_in(3))) {
    // Frees memory too early, or twice.
    const OpId op = body[random.pick(frees)];
    const auto begin = std::find(body.begin(), body.end(), host[host[op].operands[0]].def) + 1;
    const auto at = std::find(begin, body.end(), op);
    std::rotate(begin, at, at + 1);
    return;
  }
  if (calls.empty()) return;
  Op& op = host[body[random.pick(calls)]];
  const int64_t slot = op.attrs.integer(AttrKey::kSlot);
  switch (random.below(3)) {
    case 0:
      return op.attrs.set(AttrKey::kSlot, slot + (random.one_in(2) ? 1 : -1) * static_cast<int64_t>(random.below(9)));
    case 1:
      op.operands.erase(op.operands.begin() + static_cast<std::ptrdiff_t>(random.below(op.operands.size())));
      return;
    default:
      std::swap(op.operands[random.below(op.operands.size())], op.operands[random.below(op.operands.size())]);
  }
}

// Runs the host program of a bundle and counts refusals. None may be an internal error.
int replay_damaged(Bundle b, Random& random) {
  for (StageRecord& stage : b.stages)
    if (stage.stage == Stage::kHost) damage(stage.module.graphs[0], random);
  ReplayOptions options;
  options.from = ReplayFrom::kKernel;
  try {
    const Replay again = replay(b, options);
    if (!again.run.failure) return 0;
    EXPECT_NE(again.run.failure->code, ErrorCode::kInternal) << again.run.failure->message;
  } catch (const Error& e) {
    EXPECT_NE(e.code, ErrorCode::kInternal) << e.what();
  }
  return 1;
}

TEST(Segments, OfKernelsAndAtenGiveTheFusionsOutputs) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1), count = setting("FUSEBOX_SEGMENTATIONS", 600);
  RunOptions unfused;
  unfused.unfused = true;
  int ran = 0, in_place = 0, aten = 0, kernels = 0, without_order = 0, damaged = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    // Dead ops are in no segment.
    const Graph g = canonical_order(testing::random_fusion(seed, {.aliases = true}));
    Random random(seed);
    const auto arguments = testing::random_inputs(g, random);
    Module m;
    m.graphs = {g};
    // A fusion that the unfused plan refuses says nothing about segments.
    try {
      if (run_program(m, arguments, unfused).failure) continue;
    } catch (const Error& e) {
      ASSERT_NE(e.code, ErrorCode::kInternal) << e.what();
      continue;
    }
    RunOptions options;
    options.steps = random_assignment(g, random, !random.one_in(4));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(g) + print_steps(*options.steps));
    const fusebox::Run run = run_program(m, arguments, options);
    if (run.failure) {
      ASSERT_EQ(run.failure->code, ErrorCode::kInvalidGraph) << run.failure->message << " " << run.failure->place;
      ASSERT_EQ(run.failure->place.substr(0, 8), "segment ");
      ++without_order;
      continue;
    }
    ++ran;
    for (const Segment& s : run.compiled.segmentation.segments)
      ++(s.executor == SegmentExecutor::kAten ? aten : kernels);
    for (const OutputRef& out : outputs(g)) in_place += out.alias ? 1 : 0;
    for (const CheckedOutput& out : check_outputs(run, arguments))
      ASSERT_TRUE(out.comparison.ok) << out.comparison.message(out.name) << "\n" << print(run.compiled.host);
    if (seed % 8 != 0) continue;
    const Bundle b = make_bundle(run, m, exact_inputs(g, arguments), arguments);
    for (ReplayFrom from : {ReplayFrom::kFusion, ReplayFrom::kScheduled, ReplayFrom::kKernel}) {
      ReplayOptions replayed;
      replayed.from = from;
      const Replay again = replay(b, replayed);
      ASSERT_TRUE(again.identical()) << again.first_difference()->stage << again.first_difference()->difference;
    }
    for (int i = 0; i < 4; ++i) damaged += replay_damaged(b, random);
    ASSERT_FALSE(HasFailure()) << print(run.compiled.host);
  }
  std::printf("  %d ran: %d ATen segments, %d kernels, %d outputs in place; %d without an order\n", ran, aten, kernels,
              in_place, without_order);
  std::printf("  %d damaged host programs refused\n", damaged);
  if (count < 600) return;
  EXPECT_GE(ran, 300);
  EXPECT_GE(without_order, 10);
  EXPECT_GE(in_place, 50);
  EXPECT_GE(damaged, 50);
}

}  // namespace
}  // namespace fusebox
