// Laws of segments as fusions of their own, by plain definitions that look at names alone: a segment's fusion has the
// segment's ops, its inputs are the tensors that these read and do not make, its outputs those that others need; the
// order of the segments is the first that runs each after what it needs. One extractor gives for every segment, in any
// order, what a fresh one gives.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/segment/segment.h"
#include "tests/support/random_fusion.h"

namespace fusebox {
namespace {

using testing::Random;
using Names = std::multiset<std::string>;

bool is_tensor_op(const Graph& g, OpId op) {
  return g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]);
}

// A tensor op as text, by names.
std::string op_text(const Graph& g, const Op& op) {
  std::string result(row_of(op.kind).text);
  for (ValueId v : op.results) result += " %" + g[v].name + ":" + std::string(text(g[v].dtype));
  for (ValueId v : op.operands)
    if (v) result += g.is_tensor(v) ? " %" + g[v].name : " scalar";
  return result;
}

struct Border {
  Names ops, inputs, outputs;
};

Border of_graph(const Graph& g) {
  Border b;
  for (OpId op : g[Graph::body()].ops) {
    if (is_tensor_op(g, op)) b.ops.insert(op_text(g, g[op]));
    if (g[op].kind == OpKind::kInput && g.is_tensor(g[op].results[0])) b.inputs.insert(g[g[op].results[0]].name);
    if (g[op].kind == OpKind::kOutput) b.outputs.insert(g[g[op].operands[0]].name);
  }
  return b;
}

// One segment as the definition gives it.
Border of_definition(const Graph& g, const Segmentation& s, size_t index) {
  const auto ops_of = [&](const Segment& segment) {
    std::set<OpId> ops;
    for (const std::string& name : segment.ops) ops.insert(g[*find_value(g, name)].def);
    return ops;
  };
  std::vector<std::set<OpId>> all;
  for (const Segment& segment : s.segments) all.push_back(ops_of(segment));
  std::set<std::string> inputs, outputs_of;
  Border b;
  for (OpId op : all[index]) {
    b.ops.insert(op_text(g, g[op]));
    for (ValueId v : g[op].operands)
      if (v && g.is_tensor(v) && !all[index].contains(g[v].def)) inputs.insert(g[v].name);
    for (ValueId v : g[op].results) {
      bool is_needed = false;
      for (const OutputRef& out : outputs(g)) is_needed |= out.value == v;
      for (size_t k = 0; k < all.size(); ++k)
        if (!all[k].contains(op))
          for (OpId reader : all[k])
            is_needed |= std::count(g[reader].operands.begin(), g[reader].operands.end(), v) > 0;
      if (is_needed) outputs_of.insert(g[v].name);
    }
  }
  // An output may be stored over an input that the segment does not read.
  for (const Crossing& c : s.segments[index].outputs)
    if (!c.alias.empty()) inputs.insert(c.alias);
  b.inputs.insert(inputs.begin(), inputs.end());
  b.outputs.insert(outputs_of.begin(), outputs_of.end());
  return b;
}

void expect_laws(const Graph& g, const Segmentation& s) {
  std::vector<Graph> fresh;
  for (size_t i = 0; i < s.segments.size(); ++i) {
    fresh.push_back(extract(g, s.segments[i]));
    const auto error = find_error(fresh.back());
    ASSERT_FALSE(error) << error->what() << "\n" << print(fresh.back());
    const Border is = of_graph(fresh.back()), wanted = of_definition(g, s, i);
    ASSERT_EQ(is.ops, wanted.ops);
    ASSERT_EQ(is.inputs, wanted.inputs) << print(g) << print(fresh.back());
    ASSERT_EQ(is.outputs, wanted.outputs) << print(g) << print(fresh.back());
  }
  SegmentExtractor shared(g);
  for (size_t i = 0; i < fresh.size(); ++i) ASSERT_EQ(print(shared.extract(s.segments[i])), print(fresh[i]));
  for (size_t i = fresh.size(); i-- > 0;) ASSERT_EQ(print(shared.extract(s.segments[i])), print(fresh[i]));
}

// The first of the remaining segments whose inputs are made: tried one after another.
std::vector<std::string> plain_order(const Graph& g, const std::vector<std::pair<std::string, Names>>& segments) {
  std::set<std::string> made;
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind == OpKind::kInput) made.insert(g[g[op].results[0]].name);
  std::vector<std::string> order;
  std::set<std::string> done;
  const auto can_run = [&](const Names& ops) {
    for (const std::string& name : ops)
      for (ValueId v : g[g[*find_value(g, name)].def].operands)
        if (v && g.is_tensor(v) && !made.contains(g[v].name)) {
          const std::string& maker = g[g[g[v].def].results[0]].name;
          if (!ops.contains(maker)) return false;
        }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [name, ops] : segments) {
      if (done.contains(name) || !can_run(ops)) continue;
      done.insert(name);
      order.push_back(name);
      for (const std::string& op : ops)
        for (ValueId v : g[g[*find_value(g, op)].def].results) made.insert(g[v].name);
      moved = true;
      break;
    }
  }
  return order;
}

Graph program(uint64_t seed) {
  Graph g = testing::random_fusion(seed, {.aliases = seed % 2 == 0});
  // Views of symbolic extents, each read by an op whose result has no such axis: the extent of what crosses the border
  // is computed there and nowhere else.
  Random random(seed);
  std::vector<ValueId> tensors;
  for (OpId op : g[Graph::body()].ops)
    if (is_tensor_op(g, op) && rank_of(g, g[op].results[0]) == 2) tensors.push_back(g[op].results[0]);
  for (int i = 0; i < 4 && !tensors.empty(); ++i) {
    const ValueId view = pad(g, random.pick(tensors), {i, 1}, {}, "p" + std::to_string(i));
    output(g, select(g, view, constant_index(g, 0), 1, "q" + std::to_string(i)));
    tensors.push_back(view);
  }
  // As `compile` has it: without the scalars that nothing reads.
  return canonical_order(g);
}

TEST(Extraction, AKernelForEachOp) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Graph g = program(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_laws(g, plan_unfused(g));
  }
}

TEST(Extraction, SegmentsOfManyOpsRunInTheFirstOrder) {
  int ordered = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Graph g = program(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::vector<std::pair<std::string, Names>> segments;
    const size_t count = 2 + random.below(5);
    for (size_t i = 0; i < count; ++i) segments.push_back({"s" + std::to_string(i), {}});
    // In the order of the program, or dealt out at random, where no order may fit; named in any order.
    size_t at = 0;
    for (OpId op : g[Graph::body()].ops) {
      if (!is_tensor_op(g, op)) continue;
      if (seed % 3 == 0)
        at = random.below(count);
      else if (at + 1 < count && random.one_in(4))
        ++at;
      segments[at].second.insert(g[g[op].results[0]].name);
    }
    for (size_t i = segments.size(); i > 1; --i) std::swap(segments[i - 1], segments[random.below(i)]);
    std::erase_if(segments, [](const auto& s) { return s.second.empty(); });
    std::vector<Step> steps;
    for (const auto& [name, ops] : segments) {
      Step step{StepKind::kAssign, {}, {}, {}};
      for (const std::string& op : ops) step.operands.push_back(StepOperand::of(op));
      step.attrs.set(AttrKey::kName, name);
      steps.push_back(step);
    }
    const std::vector<std::string> expected = plain_order(g, segments);
    try {
      const Segmentation s = plan_assigned(g, steps);
      std::vector<std::string> order;
      for (const Segment& segment : s.segments) order.push_back(segment.name);
      ASSERT_EQ(order, expected);
      expect_laws(g, s);
      ++ordered;
    } catch (const Error& e) {
      ASSERT_EQ(e.code, ErrorCode::kInvalidGraph) << e.what();
      ASSERT_LT(expected.size(), segments.size());
      ++refused;
    }
  }
  EXPECT_GT(ordered, 200);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace fusebox
