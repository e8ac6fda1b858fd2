// The oracle of known answers: calls that are refused with a code at a place, schedules that are legal, and programs
// whose kernels have at most so many conditions and quotients. The case only chooses among them.
#include <iterator>

#include "fuzz/base/error_form.h"
#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"
#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/verify/verify.h"
#include "passes/pipeline/pipeline.h"

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

void with_steps(const std::string& steps) {
  const Module m = parse_module(std::string(kRows) + "steps @f {\n" + steps + "}\n");
  const BoundInput input{.is_scalar = false, .bits = {}, .shape = {5, 7}, .strides = {7, 1}};
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
       const BoundInput input{.is_scalar = false, .bits = {}, .shape = {5, 7}, .strides = {7, 1}};
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

// A program with its schedule and inputs, and the most conditions and quotients that its kernel has.
struct Simple {
  const char* text;
  int conditions, quotients;
};

constexpr Simple kSimple[] = {
    // One condition guards a split that may have holes.
    {R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = exp %x
  output %y
}
steps @f {
  merge %y.i0 with %y.i1 -> i
  split %y.i by 128 -> o, t
  parallelize %y.o on grid.x
  parallelize %y.t on block.x
}
inputs @f host {
  %x = f32[5, 7] normal seed 1
}
)",
     1, 0},
    // Rows of another layout: a quotient and a remainder.
    {R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %t = permute %x dims [1, 0]
  %y = exp %t
  output %y
}
steps @f {
  merge %y.i0 with %y.i1 -> i
  split %y.i by 128 -> o, t
  transform_like %y to []
  parallelize %y.o on grid.x
  parallelize %y.t on block.x
  parallelize_like %y to []
  inline_most of []
}
inputs @f host {
  %x = f32[5, 7] normal seed 1
}
)",
     1, 2},
    // Tiles, split twice: inner loops of constant extents that divide each other.
    {R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %b = input f32[%n] contiguous
  %r = broadcast %b mask [1, 0]
  %y = add %x, %r
  output %y
}
steps @f {
  split %y.i1 by 32 -> o, t
  split %y.t by 4 -> u, v
  split %y.i0 by 8 -> p, q
  reorder %y to [%y.p, %y.o, %y.q, %y.u, %y.v]
  merge %y.p with %y.o -> g
  transform_like %y to []
  parallelize %y.g on grid.x
  parallelize %y.q on block.y
  parallelize %y.u on block.x
  parallelize_like %y to []
  inline_most of []
}
inputs @f host {
  %x = f32[9, 33] normal seed 1
  %b = f32[33] normal seed 2
}
)",
     2, 3},
    // A reshape that merges and splits by constants.
    {R"(fusion @f {
  %n = size
  %x = input f32[%n, 6, 4] contiguous
  %r = reshape %x to [%n, 3, 8]
  %y = exp %r
  output %y
}
steps @f {
  split %y.i0 by 16 -> o, t
  transform_like %y to []
  parallelize %y.o on grid.x
  parallelize %y.t on block.x
  parallelize_like %y to []
  inline_most of []
}
inputs @f host {
  %x = f32[5, 6, 4] normal seed 1
}
)",
     1, 0},
    // A pad: each side of the operand is checked.
    {R"(fusion @f {
  %n = size
  %x = input f32[%n, 12] contiguous
  %p = pad %x by [2, 2, 0, 0]
  %y = exp %p
  output %y
}
steps @f {
  split %y.i1 by 4 -> o, t
  transform_like %y to []
  parallelize %y.i0 on grid.x
  parallelize %y.t on block.x
  parallelize_like %y to []
  inline_most of []
}
inputs @f host {
  %x = f32[5, 12] normal seed 1
}
)",
     2, 0},
    // A transposed tile in shared memory.
    {R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %c = set %x
  %t = permute %c dims [1, 0]
  %y = set %t
  output %y
}
steps @f {
  split %y.i0 by 32 -> a, b
  split %y.i1 by 32 -> c, d
  reorder %y to [%y.a, %y.c, %y.b, %y.d]
  transform_like %y to []
  set_memory_type %c in shared
  parallelize %y.a on grid.y
  parallelize %y.c on grid.x
  parallelize %y.b on block.y
  parallelize %y.d on block.x
  parallelize_like %y to []
  inline_most of []
}
inputs @f host {
  %x = f32[33, 40] normal seed 1
}
)",
     2, 0},
};

struct Counts {
  int conditions = 0, quotients = 0;
};

Counts counts_of(const Graph& kernel) {
  Counts counts;
  for (OpId id : ops_in_order(kernel)) {
    const Op& op = kernel[id];
    counts.quotients += op.kind == OpKind::kFloorDiv || op.kind == OpKind::kFloorMod;
    const bool compares =
        op.kind == OpKind::kLt || op.kind == OpKind::kLe || op.kind == OpKind::kGe || op.kind == OpKind::kGt;
    counts.conditions += compares && kernel[op.operands[0]].dtype == Dtype::kIndex;
  }
  return counts;
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
  const Module m = parse_module(s.text);
  const Graph& g = m.graphs[0];
  std::vector<BoundInput> given;
  for (const InputSpec& spec : find_input_specs(m, g.name, "host")->specs) {
    BoundInput input{
        .is_scalar = false, .bits = {}, .shape = spec.shape, .strides = std::vector<int64_t>(spec.shape.size(), 1)};
    for (size_t i = spec.shape.size(); i-- > 1;) input.strides[i - 1] = input.strides[i] * spec.shape[i];
    given.push_back(std::move(input));
  }
  const Compiled c = compile(g, bind_sizes(g, given), {.steps = find_steps(m, g.name)->steps});
  const Counts counts = counts_of(c.kernels[0]);
  if (counts.conditions > s.conditions || counts.quotients > s.quotients)
    run.report("known", "kernel", "",
               "kernel " + std::to_string(number) + " has " + std::to_string(counts.conditions) + " conditions and " +
                   std::to_string(counts.quotients) + " quotients, more than " + std::to_string(s.conditions) +
                   " and " + std::to_string(s.quotients));
}

}  // namespace

void known(OracleRun& run) {
  RandomSource random(run.subject().seed + 83 * run.subject().lineage.size());
  const bool is_alone = run.options().field_changes >= kFieldChangesAlone;
  constexpr size_t kCount = std::size(kRefused) + std::size(kAccepted) + std::size(kSimple);
  const size_t drawn = random.below(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    if (i != drawn && !is_alone) continue;
    try {
      size_t at = i;
      if (at < std::size(kRefused)) {
        judge(run, kRefused[at], at);
        continue;
      }
      at -= std::size(kRefused);
      if (at < std::size(kAccepted))
        with_steps(kAccepted[at]);
      else
        judge(run, kSimple[at - std::size(kAccepted)], at - std::size(kAccepted));
    } catch (const Error& e) {
      run.report("known", e, "answer " + std::to_string(i));
    }
  }
}

}  // namespace fusebox::fuzz
