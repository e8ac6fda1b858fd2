// The oracle of known answers: calls that are refused with a code at a place, schedules that are legal, calls with known
// results, and programs whose kernels have at most so many conditions and quotients. The case only chooses among them.
#include <algorithm>
#include <iterator>

#include "fuzz/base/error_form.h"
#include "fuzz/base/random_source.h"
#include "fuzz/known/kernel_counts.h"
#include "fuzz/oracle/oracle.h"
#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/infer/infer.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/heuristics.h"

namespace fusebox::fuzz {
namespace {

constexpr const char* kRows = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %a = mul %x, 2.0_f32
  %s = sum %a over [1]
  output %s
}
)";

void read(const std::string& text) { verify(parse_module(text)); }

// A line of a fusion with inputs of several kinds. It is line 6.
void with_line(const std::string& line) {
  read("fusion @f {\n  %x = input f32[3, 4]\n  %i = input i64[3, 4]\n  %p = input f32[4]\n  %q = input f4e2m1[4]\n" +
       line + "\n}\n");
}

void with_step(const std::string& step) {
  Graph g = parse_module(kRows).graphs[0];
  apply(g, parse_step(step));
}

BoundInput contiguous(const std::vector<int64_t>& shape) {
  BoundInput input{.is_scalar = false, .bits = {}, .shape = shape, .strides = std::vector<int64_t>(shape.size(), 1)};
  for (size_t i = shape.size(); i-- > 1;) input.strides[i - 1] = input.strides[i] * shape[i];
  return input;
}

void with_steps(const std::string& steps) {
  const Module m = parse_module(std::string(kRows) + "steps @f {\n" + steps + "}\n");
  const BoundInput input = contiguous({5, 7});
  compile(m.graphs[0], bind_sizes(m.graphs[0], {&input, 1}), {.steps = find_steps(m, "f")->steps});
}

void bind(std::vector<int64_t> shape, std::vector<int64_t> strides) {
  const BoundInput input{.is_scalar = false, .bits = {}, .shape = std::move(shape), .strides = std::move(strides)};
  bind_sizes(parse_module(kRows).graphs[0], {&input, 1});
}

void size_of_x(int64_t axis) {
  Graph g = parse_module(kRows).graphs[0];
  size_of(g, *find_value(g, "x"), axis);
}

struct Refused {
  ErrorCode code;
  std::string_view place;
  void (*call)();
};

constexpr Refused kRefused[] = {
    // programs
    {ErrorCode::kShapeMismatch, "6:3", [] { with_line("  %y = squeeze %p over [0]"); }},
    {ErrorCode::kShapeMismatch, "6:3", [] { with_line("  %y = reshape %p to [-1, 3]"); }},
    {ErrorCode::kShapeMismatch, "6:3", [] { with_line("  %y = expand %p to [5]"); }},
    {ErrorCode::kRankMismatch, "6:3", [] { with_line("  %y = add %p, %x"); }},
    {ErrorCode::kWrongKind, "6:3", [] { with_line("  %y = gather %x, 3 axis 0"); }},
    {ErrorCode::kWrongKind, "6:3", [] { with_line("  %y = floor_div %i, %i"); }},
    {ErrorCode::kUnsupportedDtype, "6:3", [] { with_line("  %y = add %p, %q"); }},
    {ErrorCode::kUnsupportedDtype, "6:3", [] { with_line("  %y = add %q, %p"); }},
    {ErrorCode::kBadAxis, "6:3", [] { with_line("  %y = sum %x over [0, -2]"); }},
    {ErrorCode::kBadAttribute, "6:3", [] { with_line("  %y = cast %x"); }},
    {ErrorCode::kDtypeMismatch, "%y", [] { with_line("  %y = add %p, %p : f16[i0 iter 4]"); }},
    {ErrorCode::kShapeMismatch, "%y.i0",
     [] {
       with_line(
           "  %b = broadcast %x mask [1, 0, 0]\n  %e = expand %b to [4, -1, -1]\n"
           "  %y = expand %e to [5, 3, 4] : f32[i0 broadcast 1*5, i1 iter 3, i2 iter 4]");
     }},
    // texts
    {ErrorCode::kUnknownOp, "6:3", [] { with_line("  y = neg %x"); }},
    {ErrorCode::kSyntax, "6:15", [] { with_line("  %y = neg %x %z = neg %x"); }},
    {ErrorCode::kSyntax, "6:20", [] { with_line("  %y = sum %x over 0]"); }},
    {ErrorCode::kSyntax, "7:1", [] { with_line("  %y = sum %x over [0"); }},
    // calls of the builder
    {ErrorCode::kBadAxis, "%x", [] { size_of_x(2); }},
    {ErrorCode::kBadAxis, "%x", [] { size_of_x(-3); }},
    {ErrorCode::kShapeMismatch, "%e",
     [] {
       Graph g = fusion("f");
       const ValueId x = input(g, "x", Dtype::kFloat, {Scalar(1), Scalar(3)});
       squeeze(g, expand(g, x, {Scalar(4), Scalar(3)}, "e"), {0});
     }},
    // graphs
    {ErrorCode::kUnknownName, "@f_0",
     [] {
       const Graph g = parse_module(kRows).graphs[0];
       const BoundInput input = contiguous({5, 7});
       Module m;
       m.graphs = {compile(g, bind_sizes(g, {&input, 1}), {}).host};
       verify(m);
     }},
    // inputs
    {ErrorCode::kBadInput, "%x", [] { bind({5, 7}, {1}); }},
    {ErrorCode::kBadInput, "%x", [] { bind({5}, {1}); }},
    {ErrorCode::kBadInput, "%x.i1", [] { bind({5, -1}, {1, 1}); }},
    {ErrorCode::kBadInput, "%x.i0", [] { bind({5, 7}, {8, 1}); }},
    // steps
    {ErrorCode::kStepNotApplicable, "", [] { with_step("split %s.i0 by 4 -> o"); }},
    {ErrorCode::kStepNotApplicable, "%s.i0", [] { with_step("merge %s.i0 with %s.i0 -> o"); }},
    {ErrorCode::kStepNotApplicable, "4",
     [] {
       Graph g = parse_module(kRows).graphs[0];
       apply(g, Step{StepKind::kSplit, {StepOperand::number(4), StepOperand::number(4)}, {"o", "t"}, {}});
     }},
    {ErrorCode::kStepNotApplicable, "@a", [] { with_steps("  assign of [] name \"a\" by kernel\n"); }},
    {ErrorCode::kIllegalParallel, "%s.i1", [] { with_steps("  parallelize %s.i1 on vectorize\n"); }},
    {ErrorCode::kIllegalAllocation, "%c",
     [] { with_steps("  cache_before %s -> c\n  parallelize %s.i0 on vectorize\n  inline_most of []\n"); }},
    {ErrorCode::kIllegalVectorize, "%y.v",
     [] {
       const Module m = parse_module(
           "fusion @f {\n  %x = input f32[4, 6] contiguous\n  %y = mul %x, 2.0_f32\n  output %y\n}\n"
           "steps @f {\n  cache_before %y -> c\n  split %y.i1 by 4 -> o, v\n  transform_like %y to []\n"
           "  parallelize %y.v on vectorize\n  inline_most of []\n}\n");
       compile(m.graphs[0], bind_sizes(m.graphs[0], std::vector<BoundInput>{{false, {}, {4, 6}, {6, 1}}}),
               {.steps = find_steps(m, "f")->steps});
     }},
};

// Schedules of kRows that are legal.
constexpr const char* kAccepted[] = {
    "  parallelize %s.i1 on block.x\n  parallelize_like %s to []\n  inline_most of []\n",
    "  parallelize %s.i0 on grid.x\n  split %s.i1 by 4 -> o, t\n  transform_like %s to []\n"
    "  parallelize %s.t on block.x\n  parallelize_like %s to []\n  inline_most of []\n",
    "  split %s.i1 by 4 -> o, t\n  rfactor %s over [%s.o] -> p\n  propagate %p until []\n"
    "  parallelize %p.t on block.x\n  parallelize_like %p to []\n  inline_most of []\n",
    "  parallelize %s.i1 on unroll\n  parallelize %s.i0 on block.y\n  parallelize_like %s to []\n  inline_most of []\n",
};

void expect(bool holds, const char* what) { check_internal(holds, what); }

size_t loops_of(const Graph& g, std::string_view name) { return loop_of(g.tensor_of(*find_value(g, name))).size(); }

Graph after(std::initializer_list<const char*> steps) {
  Graph g = parse_module(kRows).graphs[0];
  for (const char* step : steps) apply(g, parse_step(step));
  return g;
}

// Calls with known results.
constexpr void (*kCalls[])() = {
    [] {
      Graph g = parse_module(kRows).graphs[0];
      expect(g[cast(g, *find_value(g, "x"), Dtype::kHalf)].dtype == Dtype::kHalf, "cast gives its dtype");
    },
    [] {
      const Module m = parse_module(std::string(kRows) + "inputs @f host {\n  %x = f32[5, 7] normal seed 1\n}\n");
      expect(find_input_specs(m, "f", "host") && !find_input_specs(m, "f", "cuda") && !find_input_specs(m, "g", "host"),
             "inputs are found by both names");
    },
    [] {
      const auto power = [](int64_t base, int64_t exponent) {
        const TypedBits operands[] = {{Dtype::kInt64, from_int64(Dtype::kInt64, base)},
                                      {Dtype::kInt64, from_int64(Dtype::kInt64, exponent)}};
        return to_int64(Dtype::kInt64, *evaluate_op(OpKind::kPow, Dtype::kInt64, operands));
      };
      expect(power(-1, -2) == 1 && power(-1, -3) == -1 && power(1, -5) == 1 && power(3, -1) == 0 && power(-3, 3) == -27,
             "powers of integers");
    },
    [] {
      Graph g = parse_module(kRows).graphs[0];
      const ValueId n = *find_value(g, "n"), zero = constant_index(g, 0), one = constant_index(g, 1);
      const auto times = [&](ValueId a, ValueId b) { return scalar::mul(g, Graph::body(), a, b); };
      expect(times(n, zero) == zero && times(zero, n) == zero && times(n, one) == n && times(one, n) == n,
             "products with 0 and 1 fold");
    },
    // Inferring an op again adds no scalar, because each extent stands before it already.
    [] {
      for (const char* shape : {"[-1, 2]", "[%m, -1]", "[-1, 5]"}) {
        Graph g = parse_module("fusion @f {\n  %m = size\n  %x = input f32[%m, 4]\n  %y = reshape %x to " +
                               std::string(shape) + "\n  output %y\n}\n")
                      .graphs[0];
        const Graph before = g;
        infer(g, g[*find_value(g, "y")].def);
        expect(print(g) == print(before), "inference is the same again");
        expect(ops_in_order(g).size() == ops_in_order(before).size(), "inference adds nothing again");
      }
    },
    [] {
      const auto bound = [](const BoundInput& x, const BoundInput& i) {
        const Graph g = parse_module(
                            "fusion @f {\n  %m, %n, %k, %l = size\n  %x = input f32[%m, %n]\n"
                            "  %i = input i64[%k, %l]\n  %y = gather %x, %i axis -1\n  output %y\n}\n")
                            .graphs[0];
        bind_sizes(g, std::vector<BoundInput>{x, i});
      };
      bound({.shape = {3, 4}}, {.shape = {3, 9}});
      bound({.shape = {3, 4}}, {.shape = {2, 4}});
    },
    [] {
      const Graph g = after({"split %s.i1 by 4 -> o, t", "transform_like %s to []"});
      expect(loops_of(g, "a") == 3, "transform_like reaches the producer");
    },
    [] {
      const Graph g = after({"split %a.i1 by 4 -> o, t", "propagate %a until []"});
      expect(loops_of(g, "s") == 3, "propagate reaches the consumer");
    },
    [] {
      const Graph g = after({"parallelize %s.i0 on grid.x", "parallelize_like %s to []"});
      expect(g[g.tensor_of(*find_value(g, "a")).logical[0]].parallel == ParallelType::kGridX,
             "parallelize_like reaches the producer");
    },
    [] {
      const Graph g = after({"inline_most of []"});
      expect(bool(g.tensor_of(*find_value(g, "a")).inline_at), "inline_most inlines a pointwise producer");
    },
    // Two sizes that are known to be 1 once the axes of %a are resolved.
    [] {
      const Graph g = parse_module(
                          "fusion @f {\n  %n, %m = size\n  %a = input f32[symbolic %n, symbolic %m]\n"
                          "  %b = expand %a to [3, %m]\n  %c = input f32[1, 2]\n  %y = add %b, %c\n  output %y\n}\n")
                          .graphs[0];
      const Compiled c = compile(g, bind_sizes(g, std::vector<BoundInput>{{.shape = {1, 1}}, {.shape = {1, 2}}}), {});
      verify(c.concretized);
      expect(std::ranges::none_of(c.concretized.domains,
                                  [](const IterDomain& d) { return d.tensor && d.iter_type == IterType::kSymbolic; }),
             "no axis is left symbolic");
    },
    // Choices as text: a number that no 64 bits hold is a word, and a word that reads as a number is quoted.
    [] {
      const Heuristics h = parse_heuristics("s a 99999999999999999999 b 7 c \"7\" d -3 e 7x");
      expect(h.scheduler == "s" && h.choices.size() == 5, "choices are pairs");
      expect(h.word("a") == "99999999999999999999" && h.word("c") == "7" && h.word("e") == "7x", "words");
      expect(h.number("b") == 7 && h.number("d") == -3 && h.number_or("b", 1) == 7 && h.number_or("z", 1) == 1 &&
                 h.has("a") && !h.has("z"),
             "numbers");
      expect(text(h) == "s a 99999999999999999999 b 7 c \"7\" d -3 e 7x" && parse_heuristics(text(h)) == h,
             "choices read back");
    },
};

// A program with its schedule and the shapes of its inputs, and the most conditions and quotients that its kernel has.
struct Simple {
  std::string inputs, ops, steps;  // lines; the last op makes %y
  std::vector<std::vector<int64_t>> shapes;
  int conditions, quotients;
};

constexpr const char* kMatrix = "  %m, %n = size\n  %x = input f32[%m, %n] contiguous\n";

// Steps that finish a schedule of %y: its loops go to the coordinates, and all other ops follow it.
std::string on_threads(std::initializer_list<std::pair<const char*, const char*>> loops) {
  std::string steps;
  for (const auto& [loop, coordinate] : loops)
    steps += std::string("  parallelize %y.") + loop + " on " + coordinate + "\n";
  return "  transform_like %y to []\n" + steps + "  parallelize_like %y to []\n  inline_most of []\n";
}

const std::vector<Simple>& simple_programs() {
  static const std::string in_chunks =
      "  merge %y.i0 with %y.i1 -> i\n  split %y.i by 128 -> o, t\n" + on_threads({{"o", "grid.x"}, {"t", "block.x"}});
  static const std::vector<Simple> programs = {
      // One condition guards a split that may have holes.
      {kMatrix, "  %y = exp %x\n", in_chunks, {{5, 7}}, 1, 0},
      // Rows of another layout: a quotient and a remainder.
      {kMatrix, "  %t = permute %x dims [1, 0]\n  %y = exp %t\n", in_chunks, {{5, 7}}, 1, 2},
      // Tiles, split twice: inner loops of constant extents that divide each other.
      {std::string(kMatrix) + "  %b = input f32[%n] contiguous\n",
       "  %r = broadcast %b mask [1, 0]\n  %y = add %x, %r\n",
       "  split %y.i1 by 32 -> o, t\n  split %y.t by 4 -> u, v\n  split %y.i0 by 8 -> p, q\n"
       "  reorder %y to [%y.p, %y.o, %y.q, %y.u, %y.v]\n  merge %y.p with %y.o -> g\n" +
           on_threads({{"g", "grid.x"}, {"q", "block.y"}, {"u", "block.x"}}),
       {{9, 33}, {33}},
       2,
       3},
      // A reshape that merges and splits by constants.
      {"  %n = size\n  %x = input f32[%n, 6, 4] contiguous\n",
       "  %r = reshape %x to [%n, 3, 8]\n  %y = exp %r\n",
       "  split %y.i0 by 16 -> o, t\n" + on_threads({{"o", "grid.x"}, {"t", "block.x"}}),
       {{5, 6, 4}},
       1,
       0},
      // A pad: each side of the operand is checked.
      {"  %n = size\n  %x = input f32[%n, 12] contiguous\n",
       "  %p = pad %x by [2, 2, 0, 0]\n  %y = exp %p\n",
       "  split %y.i1 by 4 -> o, t\n" + on_threads({{"i0", "grid.x"}, {"t", "block.x"}}),
       {{5, 12}},
       2,
       0},
      // A transposed tile in shared memory.
      {kMatrix,
       "  %c = set %x\n  %t = permute %c dims [1, 0]\n  %y = set %t\n",
       "  split %y.i0 by 32 -> a, b\n  split %y.i1 by 32 -> c, d\n  reorder %y to [%y.a, %y.c, %y.b, %y.d]\n"
       "  set_memory_type %c in shared\n" +
           on_threads({{"a", "grid.y"}, {"c", "grid.x"}, {"b", "block.y"}, {"d", "block.x"}}),
       {{33, 40}},
       2,
       0},
  };
  return programs;
}

void judge(OracleRun& run, const Refused& r, size_t number) {
  const std::string which = "call " + std::to_string(number);
  try {
    r.call();
    run.report("known", "accepted", "", which + " is accepted, not refused with " + code_text(r.code));
  } catch (const Error& e) {
    if (e.code != r.code || e.place != r.place || !is_well_formed(e))
      run.report("known", "refusal", "",
                 which + " is refused with " + code_text(e.code) + " at " + e.place + ": " + e.what() + ", not with " +
                     code_text(r.code) + " at " + std::string(r.place));
  }
}

void judge(OracleRun& run, const Simple& s, size_t number) {
  const Module m = parse_module("fusion @f {\n" + s.inputs + s.ops + "  output %y\n}\nsteps @f {\n" + s.steps + "}\n");
  const Graph& g = m.graphs[0];
  std::vector<BoundInput> given;
  for (const auto& shape : s.shapes) given.push_back(contiguous(shape));
  const Compiled c = compile(g, bind_sizes(g, given), {.steps = find_steps(m, g.name)->steps});
  const KernelCounts counts = counts_of(c.kernels[0]);
  if (counts.conditions > s.conditions || counts.quotients > s.quotients)
    run.report("known", "kernel", "",
               "kernel " + std::to_string(number) + " has " + std::to_string(counts.conditions) + " conditions and " +
                   std::to_string(counts.quotients) + " quotients, more than " + std::to_string(s.conditions) +
                   " and " + std::to_string(s.quotients));
}

}  // namespace

void known(OracleRun& run) {
  RandomSource random = run.random(83);
  const bool is_alone = run.options().field_changes >= kFieldChangesAlone;
  const size_t count = std::size(kRefused) + std::size(kAccepted) + std::size(kCalls) + simple_programs().size();
  const size_t drawn = random.below(count);
  for (size_t i = 0; i < count; ++i) {
    if (i != drawn && !is_alone) continue;
    try {
      size_t at = i;
      if (at < std::size(kRefused)) {
        judge(run, kRefused[at], at);
        continue;
      }
      at -= std::size(kRefused);
      if (at < std::size(kAccepted)) {
        with_steps(kAccepted[at]);
        continue;
      }
      at -= std::size(kAccepted);
      if (at < std::size(kCalls))
        kCalls[at]();
      else
        judge(run, simple_programs()[at - std::size(kCalls)], at - std::size(kCalls));
    } catch (const Error& e) {
      run.report("known", e, "answer " + std::to_string(i));
    }
  }
}

}  // namespace fusebox::fuzz
