// The oracles of known answers and of plans find nothing on fixed programs; the form of errors is judged.
#include <gtest/gtest.h>

#include "fuzz/base/error_form.h"
#include "fuzz/oracle/oracle.h"
#include "ir/text/parse.h"

namespace fusebox::fuzz {
namespace {

constexpr const char* kTiles = R"(fusion @f {
  %n, %m = size
  %x = input f32[%n, %m] contiguous
  %c = set %x
  %t = permute %c dims [1, 0]
  %y = sum %t over [1]
  output %y
}
steps @f {
  split %y.i0 by 4 -> o, t
  transform_like %y to []
  set_memory_type %c in shared
  parallelize %y.t on block.x
  parallelize_like %y to []
}
inputs @f host {
  %x = f32[5, 7] normal seed 1
}
)";

// The extent of %t is a product of so many terms that the index algebra leaves it as it is.
constexpr const char* kLongProduct = R"(fusion @f {
  %a, %b, %c, %d, %e = size
  %x = input f32[%a, %b, %c, %d, %e] contiguous
  %l = input i64
  %left = cast %l as index
  %r = input i64
  %right = cast %r as index
  %take = sub %c, 2 : index
  %p = pad %x by [1, %left, 0, 1, 0, %b, %take, %right, 0, 1]
  %a1 = add %a, 1 : index
  %bc = add %b, %c : index
  %bcr = add %bc, %right : index
  %b1 = sub %bcr, 2 : index
  %d1 = add %d, 1 : index
  %el = add %e, %left : index
  %e1 = add %el, 1 : index
  %n1 = mul %a1, %b1 : index
  %n2 = mul %n1, %bc : index
  %n3 = mul %n2, %d1 : index
  %n = mul %n3, %e1 : index
  %t = reshape %p to [%n]
  %y = neg %t
  output %y
}
steps @f {
  split %y.i0 by 2 -> o, i
  set_memory_type %p in shared
  set_memory_type %t in shared
}
inputs @f host {
  %x = f32[1, 1, 1, 1, 1] normal seed 1
  %l = 0_i64
  %r = 1_i64
}
)";

// The size of %o is 0 and so is that of the output, which no form of its extent shows.
constexpr const char* kNothingOverAnInput = R"(fusion @f {
  %n = size
  %x = input f32[%n, %n] contiguous
  %m = sub %n, 1 : index
  %k = maximum %m, 0 : index
  %s = slice %x from [0, 0] to [-1, %n] by [1, 1]
  %b = broadcast %s mask [1, 0, 0]
  %r = reshape %b to [1, 1, %k, %n]
  %o = size
  %y = input f32[1, 1, %o, 1] contiguous
  %p = pow %r, %y
  %t = stride_order %r order [1, 3, 2, 0]
  output %t alias %y
  output %p
}
inputs @f host {
  %x = f32[1, 1] normal seed 1
  %y = f32[1, 1, 0, 1] normal seed 2
}
)";

// %x is expanded to nothing, so both kernels that read it read no bytes.
constexpr const char* kExpandedToNothing = R"(fusion @f {
  %n, %m = size
  %x = input f32[1*%n, 1*0] contiguous
  %y = input f32[%n, %m] contiguous
  %e = expand %y to [%n, 0]
  %a = add %e, %x
  %b = slice %a from [3, 0] to [-1, 0] by [1, 1]
  %c = neg %b
  %d = isnan %a
  output %c
  output %d
}
inputs @f host {
  %x = f32[7, 0] strides [0, 0] normal seed 1
  %y = f32[7, 0] normal seed 2
}
)";

// Vectors of %y need sizes %c that are multiples of 32.
constexpr const char* kQuotient = R"(fusion @f {
  %n, %c = size
  %g = floor_div %c, 8
  %x = input f32[%n, %c] contiguous
  %r = reshape %x to [%n, 8, %g]
  %y = neg %r
  output %y
}
steps @f {
  cache_before %y -> m
  split %y.i2 by 4 -> o, v
  transform_like %y to []
  parallelize %y.i0 on grid.x
  parallelize_like %y to []
  parallelize %y.v on vectorize
  inline_most of []
}
inputs @f host {
  %x = f32[3, 256] normal seed 1
}
)";

std::vector<Finding> findings_of(const char* program, void (*oracle)(OracleRun&), uint64_t seed,
                                 const JudgeOptions& options) {
  Case c;
  c.module = parse_module(program);
  c.seed = seed;
  OracleRun run(c, options);
  oracle(run);
  return run.findings;
}

void expect_silence(const char* program, void (*oracle)(OracleRun&), uint64_t seeds, int field_changes) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto findings = findings_of(program, oracle, seed, {.field_changes = field_changes});
    for (const Finding& f : findings) ADD_FAILURE() << text(f.signature) << ": " << f.message;
    ASSERT_TRUE(findings.empty()) << seed;
  }
}

TEST(KnownAnswers, AreGiven) { expect_silence(kTiles, known, 1, kFieldChangesAlone); }

TEST(PlanOracle, IsSilentOnARightPlan) { expect_silence(kTiles, plans, 64, 2); }

TEST(IdGraphsOracle, EvaluatesAProductOfManyTerms) { expect_silence(kLongProduct, id_graphs, 1, 2); }

TEST(DecisionsOracle, IsSilentOnARefusedPlaceInMemory) { expect_silence(kNothingOverAnInput, decisions, 1, 2); }

TEST(DecisionsOracle, CountsNoBytesOfAnEmptyTensor) { expect_silence(kExpandedToNothing, decisions, 1, 2); }

// The axis of %g is symbolic and gets concretized. Such a program serves other sizes too, if they lead to the same axes.
TEST(OtherSizesOracle, RunsAConcretizedProgramWithWhatItServes) {
  expect_silence(kQuotient, other_sizes, 64, 2);
  Defects unchecked;
  unchecked.add(Defect::kQuotientUnchecked);
  int found = 0;
  for (uint64_t seed = 1; seed <= 64; ++seed)
    found += !findings_of(kQuotient, other_sizes, seed, {.defects = unchecked}).empty();
  EXPECT_GE(found, 4);
}

TEST(ErrorForm, AMessageIsASentenceAndAPlaceIsNone) {
  const std::string message = "the width of a vector is 3; give a power of two";
  EXPECT_TRUE(is_well_formed(Error(ErrorCode::kIllegalVectorize, message, "%y.v")));
  EXPECT_TRUE(is_well_formed(Error(ErrorCode::kIllegalVectorize, message)));
  EXPECT_TRUE(is_well_formed(Error(ErrorCode::kSyntax, "expected `]`", "line 7")));
  EXPECT_TRUE(is_well_formed(Error(ErrorCode::kSyntax, "expected `]`", "%two words; no more.i0")));
  EXPECT_FALSE(is_well_formed(Error(ErrorCode::kIllegalVectorize, "%y.v", message)));
  EXPECT_THROW(expect_refusal(Error(ErrorCode::kIllegalVectorize, "%y.v", message)), Error);
  EXPECT_THROW(expect_refusal(Error(ErrorCode::kInternal, "it does not hold")), Error);
  EXPECT_NO_THROW(expect_refusal(Error(ErrorCode::kIllegalVectorize, message, "%y.v")));
}

}  // namespace
}  // namespace fusebox::fuzz
