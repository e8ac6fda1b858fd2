// Law: every member of every struct counts (fuzz/field_laws/laws.h). Changes each of them in corpus programs, in their
// compiled form, in drawn cases, and in programs with rare members. Every law that a member's row in ir/module/fields.h
// or serde/fields.h names is tested for it.
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "fuzz/field_laws/changes.h"
#include "fuzz/field_laws/laws.h"
#include "fuzz/field_laws/match.h"
#include "fuzz/generate/case.h"
#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "tests/support/random_bundle.h"
#include "tests/support/real_programs.h"

namespace fusebox::fuzz {
namespace {

// Members that few graphs use, or whose changes rarely leave a graph that verifies. Two loop broadcasts can be
// exchanged; one alone cannot be dropped, because the loop uses it.
constexpr std::string_view kRare = R"(scheduled @rare {
  %n, %h = size
  %x = input f32[i0 iter %n, i1 broadcast 1*%h] contiguity [true, none]
  %y = exp %x : f32[i0 iter %n, i1 broadcast 1*%h] shared {
    o iter, t iter = split i0 by 128 inner
    m iter = merge o, i1
    a iter, b iter = swizzle m, t cyclic
    e iter = resize b by -1, 1
    allocation [t, o, i1]
    loop [a grid.x, e block.x]
    mesh [0, 1]
    inline_at a
    circular_depth 2
  }
  %v = neg %y : f32[i0 iter %n, i1 broadcast 1*%h] local {
    loop_broadcasts [b0 broadcast 1 like %y.t, b1 broadcast 1 like %y.o]
    o iter, t iter = split i0 by 4 outer
    p iter, q iter = split t by 2 inner
    loop [o, p, q unroll, i1, b0, b1]
  }
  %a, %b, %c = welford %x over [0] : f32[i0 reduce %n, i1 broadcast 1*%h], f32[i0 reduce %n, i1 broadcast 1*%h], i64[i0 reduce %n, i1 broadcast 1*%h]
  %k = add c64(1.5, -2.0), c64(0.0, 3.0) : c64
  %z = input c64[i0 iter %n]
  %w = mul %z, c64(1.0, 2.5) : c64[i0 iter %n]
  output %v
  output %w
  output %a
  output %b
}
)";

// Two branches can be exchanged, and one of them dropped.
constexpr std::string_view kRareKernel = R"(kernel @rare_kernel index 32 {
  %y = input f32[?] global
  %n = input index
  %t = thread_index on block.x
  %p = lt %t, %n : bool
  if %p {
    store %y at %t, 1.0_f32
  } else {
    barrier
  }
  for 0, 4, 1 unroll { index %j
    store %y at %j, 0.0_f32 if %p
  }
}
)";

// An unread input may be of any kind.
constexpr std::string_view kRareHost = R"(host @rare_host {
  %x = input f32[4] global
  %s = input stream
  %k = input index
  output %x
}
)";

constexpr std::string_view kModule = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguity [true, false]
  %b = input f32[%m, %n]
  %k = input c128
  %y = neg %x
  %z = mul %y, 2.0_f32
  %d = exp %x
  output %z
  output %y alias %b
}

steps @f fast {
  split %y.i1 by 4 outer -> o, t
  parallelize %y.o grid.x
  parallelize_like %y to [%z] threads [block.x, grid.x]
  set_allocation %y to [%y.t, %y.o] contiguity [true, none]
  cache_after %x -> c
  set_memory_type %c shared
}

segments @f {
  segment @first kernel {
    ops [%y]
    input %x order [1, 0] contiguity [true, false]
    output %y order [1, 0] contiguity [true, true] alias %b
    steps {
      split %y.i1 by 4 -> o, t
      parallelize %y.o on grid.x
    }
  }
  segment @second aten {
    ops [%z, %d]
    input %y order [1, 0]
    output %z
  }
}

inputs @f gpu {
  %x = f32[3, 5]
}

inputs @f host {
  %x = f32[3, 5] strides [10, 2] offset 1 boundary -0.0 3.5 seed 7
  %b = f32[3, 5] uniform 0.25 3.5 seed 9
  %k = c128(0.5, -1.5)
}
)";

// The laws that were tested for each kind of member.
class Seen {
 public:
  Seen() : asked_(field_kinds().size()) {}

  void add(const FieldChange& change, const Asked& asked) {
    Asked& all = asked_[change.kind];
    all.equality |= asked.equality;
    all.digest |= asked.digest;
    all.same_digest |= asked.same_digest;
    all.text |= asked.text;
    all.bytes |= asked.bytes;
    ++changes_;
  }
  // The kinds for which a law in their row was never tested.
  std::set<std::string> missed(bool Asked::* law, bool FieldUse::* use,
                               const std::set<std::string_view>& owners) const {
    std::set<std::string> result;
    for (size_t i = 0; i < asked_.size(); ++i) {
      const FieldKind& kind = field_kinds()[i];
      if (owners.contains(kind.owner) && kind.use.*use && !kind.use.derived && !kind.is_table && !(asked_[i].*law))
        result.insert(text(kind));
    }
    return result;
  }
  const Asked& of(size_t kind) const { return asked_[kind]; }
  size_t changes() const { return changes_; }

 private:
  std::vector<Asked> asked_;
  size_t changes_ = 0;
};

// Makes up to `most` changes of each kind, spread over the value; 0: all.
template <class T, class Judge>
void change_each(const T& was, size_t most, const ChangeNames& names, Seen& seen, const std::string& what,
                 Judge judge) {
  const ChangeCounts counts = count_changes(was, names);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    const size_t step = most == 0 || counts[kind] <= most ? 1 : counts[kind] / most;
    for (size_t i = 0; i < counts[kind]; i += step) {
      T changed = was;
      const FieldChange change = make_change(changed, kind, i, names);
      Asked asked;
      if (const Broken broken = judge(changed, asked))
        ADD_FAILURE() << what << ": " << text(change) << ": " << broken->law << ": " << broken->message;
      seen.add(change, asked);
    }
  }
}

void change_graph(const Graph& g, size_t most, Seen& seen, const std::string& what) {
  const Defects none;
  const GraphLaws laws(g, none);
  change_each(g, most, {}, seen, what + " " + std::string(text(g.level)),
              [&](const Graph& changed, Asked& asked) { return laws.broken_by(changed, asked); });
}

template <class T>
void change_beside(const Graph& g, const T& was, size_t most, Seen& seen, const std::string& what) {
  change_each(was, most, names_of(g), seen, what,
              [&](const T& changed, Asked& asked) { return broken_by(g, was, changed, {}, asked); });
}

void change_module(const Module& m, size_t most, Seen& seen, const std::string& what) {
  for (const Graph& g : m.graphs) change_graph(g, most, seen, what);
  if (m.graphs.empty()) return;
  const Graph& g = main_graph(m);
  for (const StepList& list : m.step_lists) change_beside(g, list, most, seen, what);
  for (const Segmentation& s : m.segmentations) change_beside(g, s, most, seen, what);
  for (const InputSpecs& specs : m.input_specs) change_beside(g, specs, most, seen, what);
}

void change_compiled(const Compiled& c, size_t most, Seen& seen, const std::string& what) {
  change_graph(c.concretized, most, seen, what);
  change_graph(c.host, most, seen, what);
  for (size_t i = 0; i < c.kernels.size(); ++i)
    for (const Graph* g : {&c.scheduled[i], &c.kernels[i]})
      if (!g->ops.empty()) change_graph(*g, most, seen, what);
  change_beside(c.concretized, c.segmentation, most, seen, what);
}

// The law of texts needs values that verify.
Module checked(Module m) {
  for (const Graph& g : m.graphs)
    if (const auto error = find_error(g))
      ADD_FAILURE() << "@" << g.name << ": " << code_text(error->code) << " " << error->place << ": " << error->what();
  return m;
}

Module rare_module() {
  Module m;
  for (std::string_view text : {kRare, kRareKernel, kRareHost}) m.graphs.push_back(parse_graph(text));
  return checked(m);
}

using Names = std::set<std::string>;

TEST(Fields, EveryMemberOfAProgramCounts) {
  Seen seen;
  change_module(rare_module(), 0, seen, "rare");
  change_module(checked(parse_module(kModule)), 0, seen, "module");
  for (const testing::RealProgram& program : testing::real_programs())
    change_module(program.module, 12, seen, program.path);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const DrawnCase drawn = generate_case(seed, {});
    if (drawn.refusal) continue;
    const Case& c = drawn.value;
    const std::string what = "case " + std::to_string(seed);
    change_module(c.module, 3, seen, what);
    try {
      CompileOptions options{.inputs = bound_inputs(c.inputs())};
      if (c.steps()) options.steps = *c.steps();
      change_compiled(compile(c.fusion(), sizes_of(c.fusion(), c.inputs()), options), 3, seen, what);
    } catch (const Error&) {
      // The program refuses these sizes.
    }
  }
  const std::set<std::string_view> graph = {"ConstantBits", "Value", "Tensor", "IterDomain", "Transform",
                                            "Attr",         "Op",    "Region", "Graph"};
  const std::set<std::string_view> beside = {"StepOperand", "Step",         "StepList",  "Crossing",
                                             "Segment",     "Segmentation", "InputSpec", "InputSpecs"};
  EXPECT_EQ(seen.missed(&Asked::bytes, &FieldUse::encoded, graph), Names{});
  EXPECT_EQ(seen.missed(&Asked::bytes, &FieldUse::encoded, beside), Names{});
  EXPECT_EQ(seen.missed(&Asked::digest, &FieldUse::digested, graph), Names{});
  EXPECT_EQ(seen.missed(&Asked::digest, &FieldUse::digested, beside), Names{});
  EXPECT_EQ(seen.missed(&Asked::equality, &FieldUse::printed, graph), Names{});
  EXPECT_EQ(seen.missed(&Asked::equality, &FieldUse::printed, beside), Names{});
  // In a graph that verifies, the op determines it.
  EXPECT_EQ(seen.missed(&Asked::text, &FieldUse::printed, graph), Names{"Region.index"});
  EXPECT_EQ(seen.missed(&Asked::text, &FieldUse::printed, beside), Names{});
  // A member that is not digested never changes the digest.
  for (size_t i = 0; i < field_kinds().size(); ++i) {
    const FieldKind& kind = field_kinds()[i];
    if (kind.use.digested || kind.use.derived || !kind.use.printed) continue;
    if (kind.owner == "InputSpec" || kind.owner == "InputSpecs") continue;
    EXPECT_TRUE(seen.of(i).same_digest && !seen.of(i).digest) << text(kind);
  }
  std::printf("  %zu changes\n", seen.changes());
}

TEST(Fields, EveryMemberOfABundleComesBack) {
  Seen seen;
  const auto change_bundle = [&](const Bundle& b, size_t most, const std::string& what) {
    change_each(b, most, {}, seen, what,
                [&](const Bundle& changed, Asked& asked) { return broken_by(b, changed, asked); });
  };
  Bundle rare;
  rare.stages = {{static_cast<Stage>(0), rare_module()}, {static_cast<Stage>(1), parse_module(kModule)}};
  change_bundle(rare, 0, "rare");
  for (uint64_t seed = 0; seed < 120; ++seed)
    change_bundle(testing::random_bundle(seed), 4, "bundle " + std::to_string(seed));
  std::set<std::string_view> owners;
  for (const FieldKind& kind : field_kinds()) owners.insert(kind.owner);
  EXPECT_EQ(seen.missed(&Asked::bytes, &FieldUse::encoded, owners), Names{});
  std::printf("  %zu changes\n", seen.changes());
}

TEST(Fields, EveryDefectComesBackFromItsText) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "a build without defects";
  Defects before;
  for (const DefectRow& row : defect_rows()) {
    Defects one, all = before;
    one.add(row.defect);
    all.add(row.defect);
    EXPECT_TRUE(parse_defect_list(join(one)) == one) << row.text;
    EXPECT_TRUE(parse_defect_list(join(all)) == all) << row.text;
    EXPECT_FALSE(all == before) << row.text;
    before = all;
  }
}

TEST(Fields, FloatsOfInputsAreEqualWhereTheirTextIs) {
  InputSpec a, b;
  EXPECT_TRUE(a == b);
  b.low = -0.0;
  EXPECT_FALSE(a == b);
  a.high = b.high = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(a == b);
  a.low = -0.0;
  EXPECT_TRUE(a == b);
  a.name = "x";
  const std::string text = print(a);
  EXPECT_TRUE(parse_input_spec("x", text.substr(text.find(" = ") + 3)) == a) << text;
}

// Tests the walk that judges digests on programs with known answers.
TEST(Fields, MatchKnowsNamesIdsAndOrder) {
  const Graph g = parse_graph(
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %a = neg %x\n  %b = exp %x\n"
      "  %y = add %a, %b\n  output %y\n}\n");
  const Graph renamed = parse_graph(
      "fusion @g {\n  %m = size\n  %n = size\n  %q = input f32[%m, %n]\n  %b = exp %q\n"
      "  %dead = abs %q\n  %a = neg %q\n  %y = add %a, %b\n  output %y\n}\n");
  const Graph exchanged = parse_graph(
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %a = neg %x\n"
      "  %b = exp %x\n  %y = add %b, %a\n  output %y\n}\n");
  const Graph square = parse_graph(
      "fusion @f {\n  %m = size\n  %x = input f32[%m, %m]\n  %a = neg %x\n  %b = exp %x\n"
      "  %y = add %a, %b\n  output %y\n}\n");
  EXPECT_TRUE(programs_match(g, renamed));
  EXPECT_FALSE(programs_match(g, renamed, {.names = true}));
  EXPECT_TRUE(programs_match(g, g, {.names = true}));
  EXPECT_TRUE(programs_match(g, canonicalize(g)));
  EXPECT_FALSE(programs_match(g, exchanged));
  EXPECT_FALSE(programs_match(g, square));
  EXPECT_FALSE(programs_match(square, g));
  EXPECT_EQ(difference(g, g), std::nullopt);
  Graph h = g;
  h.domains[1].parallel = ParallelType::kGridX;
  EXPECT_EQ(difference(g, h), "domains[1].parallel");
  EXPECT_FALSE(programs_match(g, h));
}

}  // namespace
}  // namespace fusebox::fuzz
