// The names in a program, the order in which its nodes were made and unused nodes do not matter. Every corpus program,
// reordered, renamed or with dead nodes, has the same digest at every stage, the same CUDA text and the same bits, with
// its own schedule and under the unfused plan.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "ir/build/builder.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "replay/data/file.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

using Random = std::mt19937_64;

bool is_pinned(const Op& op) { return demands(op.kind, kSignature | kEffect); }

// Reorders the definitions and thus the ids: each op comes after its operands, and signature ops keep their order.
void shuffle(Graph& g, Random& random) {
  std::vector<OpId> left = g[Graph::body()].ops, order;
  std::set<OpId> done;
  while (!left.empty()) {
    std::vector<size_t> ready;
    bool pinned_before = false;
    for (size_t i = 0; i < left.size(); ++i) {
      const Op& op = g[left[i]];
      // Sizes stay in place: their use orders them, as their position orders inputs.
      const bool may_go = !is_pinned(op) || !pinned_before;
      pinned_before |= is_pinned(op);
      if (may_go && std::all_of(op.operands.begin(), op.operands.end(),
                                [&](ValueId v) { return !v || !g[v].def || done.count(g[v].def) != 0; }))
        ready.push_back(i);
    }
    ASSERT_FALSE(ready.empty());
    const size_t at = ready[random() % ready.size()];
    done.insert(left[at]);
    order.push_back(left[at]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  g[Graph::body()].ops = order;
}

// Renames values in another alphabetical order. References by name follow.
void rename(Module& m, Random& random) {
  Graph& g = m.graphs[0];
  std::map<std::string, std::string> names;
  const auto renamed = [&](const std::string& name) {
    auto [it, is_new] = names.try_emplace(name);
    if (is_new) it->second = "r" + std::to_string(random() % 1000) + "_" + std::to_string(names.size());
    return it->second;
  };
  for (Value& v : g.values)
    if (!v.name.empty()) v.name = renamed(v.name);
  // Results of steps keep their names, which belong to the steps.
  const auto rename_steps = [&](std::vector<Step>& steps) {
    for (Step& s : steps)
      for (StepOperand& o : s.operands)
        if (const auto it = names.find(o.value); it != names.end()) o.value = it->second;
  };
  for (StepList& list : m.step_lists) rename_steps(list.steps), list.graph = "other";
  for (InputSpecs& specs : m.input_specs) {
    specs.graph = "other";
    for (InputSpec& s : specs.specs) s.name = renamed(s.name);
  }
  g.name = "other";
}

// Adds ops that no output needs, between the others.
void add_dead(Graph& g, Random& random) {
  for (const ValueId x : inputs(g)) {
    if (!g.is_tensor(x)) continue;
    const ValueId dead = unary(g, OpKind::kIsfinite, unary(g, OpKind::kSet, x));
    if (random() % 2 == 0) unary(g, OpKind::kSet, dead);
  }
}

struct Seen {
  std::vector<StageDigest> digests;
  std::vector<std::string> texts;
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* to) {
  for (const StageDigest& d : seen.digests) *to << d.name << " " << text(d.digest) << "\n";
}

Seen run(const Module& m, bool unfused) {
  const auto inputs = make_arguments(main_graph(m), find_input_specs(m, main_graph(m).name, "host"), {});
  const Run r = run_program(m, inputs, {.unfused = unfused});
  EXPECT_FALSE(r.failure) << r.failure->message << " " << r.failure->place;
  Seen seen{r.digests, {}};
  for (const KernelSource& s : r.sources) seen.texts.push_back(s.text);
  return seen;
}

TEST(ProgramIdentity, OrderNamesAndDeadNodesChangeNoStage) {
  int compared = 0, changed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("corpus/programs")) {
    const Module original = parse_module(read_text_file(entry.path().string()));
    ASSERT_EQ(original.graphs.size(), 1u);
    const Seen expected[] = {run(original, false), run(original, true)};
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed);
      Module m = original;
      if (seed % 4 == 0 || seed % 4 == 1) shuffle(m.graphs[0], random);
      if (seed % 4 == 0 || seed % 4 == 2) rename(m, random);
      if (seed % 4 == 0 || seed % 4 == 3) add_dead(m.graphs[0], random);
      SCOPED_TRACE(entry.path().string() + " seed " + std::to_string(seed));
      // Printing and parsing assigns every id again, in the written order.
      const std::string text = print(m);
      SCOPED_TRACE(text);
      const Module other = parse_module(text);
      verify(other);
      changed += other.graphs[0] == original.graphs[0] ? 0 : 1;  // a chain of ops has only one order
      for (const bool unfused : {false, true}) {
        ASSERT_EQ(run(other, unfused), expected[unfused]);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 12 * 12 * 2);
  EXPECT_GE(changed, 12 * 9);
  std::printf("  %d runs of programs in other orders, with other names and dead nodes; %d programs differ\n", compared,
              changed);
}

}  // namespace
}  // namespace fusebox
