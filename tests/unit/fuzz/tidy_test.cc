// Kernels that are less simple than lowering promises are found; lowering makes none.
#include <gtest/gtest.h>

#include "fuzz/oracle/kernel_points.h"
#include "fuzz/oracle/oracle.h"
#include "fuzz/oracle/tidy_kernel.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

namespace fusebox::fuzz {
namespace {

Graph kernel_of(const std::string& body) {
  return parse_graph(
      "kernel @k index 32 {\n  %T0 = input f32[?] global\n  %T1 = input f32[?] global\n"
      "  %s0 = input index\n  %t = thread_index on block.x\n" +
      body + "}\n");
}

// The checks reported for a launch of 4 blocks of 32 threads.
std::vector<std::string> checks_of(const std::string& body, bool is_resized = false) {
  std::vector<std::string> checks;
  for (const Untidy& u : find_untidy(kernel_of(body), {.launch = {{4, 1, 1, 32, 1, 1}}, .is_resized = is_resized}))
    checks.emplace_back(u.check);
  return checks;
}

using Checks = std::vector<std::string>;

TEST(Tidy, WhatIsNeededIsLeft) {
  EXPECT_EQ(checks_of(R"(
  %b = thread_index on grid.x
  %i1 = mul %b, 32 : index
  %i2 = add %i1, %t : index
  %p = lt %i2, 127 : bool
  if %p {
    for 0, 6, 1 { index %k
      %i3 = floor_div %k, 2 nonnegative : index
      %i4 = mul %i3, 128 : index
      %i5 = add %i4, %i2 : index
      %v = load %T0 at %i5 : f32
      store %T1 at %i5, %v
    }
  }
)"),
            Checks());
}

TEST(Tidy, OpsOfConstants) {
  EXPECT_EQ(checks_of("  %i = add 2, 3 : index\n  %v = load %T0 at %i : f32\n  store %T1 at %i, %v\n"),
            (Checks{"constants", "constant"}));
}

TEST(Tidy, TheSameTwice) {
  EXPECT_EQ(checks_of("  %i = mul %t, 3 : index\n  %j = mul %t, 3 : index\n  %v = load %T0 at %i : f32\n"
                      "  store %T1 at %j, %v\n"),
            Checks{"twice"});
}

TEST(Tidy, AConditionTwiceInAConjunction) {
  const auto with = [](const char* last) {
    return std::string("  %p = lt %t, 30 : bool\n  %q = lt %s0, 9 : bool\n  %a = logical_and %p, %q : bool\n") +
           "  %b = logical_and %a, " + last + " : bool\n  if %b {\n    store %T1 at %t, 1.0_f32\n  }\n";
  };
  EXPECT_EQ(checks_of(with("%p")), Checks{"conjunct"});
  EXPECT_EQ(checks_of(with("%q")), Checks{"conjunct"});
  EXPECT_EQ(checks_of(with("true")), Checks{"conjunct"});
}

TEST(Tidy, AnIndexThatIsAnother) {
  const auto stored_at = [](const std::string& body) {
    return body + "  %v = load %T0 at %i : f32\n  store %T1 at %i, %v\n";
  };
  EXPECT_EQ(checks_of(stored_at("  %i = floor_div %t, 32 nonnegative : index\n")), Checks{"constant"});
  EXPECT_EQ(checks_of(stored_at("  %i = floor_mod %t, 33 nonnegative : index\n")), Checks{"operand"});
  EXPECT_EQ(checks_of(stored_at("  %i = floor_div %t, 31 nonnegative : index\n")), Checks());
  EXPECT_EQ(checks_of(stored_at("  %d = floor_div %t, 4 nonnegative : index\n  %m = mul %d, 4 : index\n"
                                "  %r = floor_mod %t, 4 nonnegative : index\n  %i = add %m, %r : index\n")),
            Checks{"known"});
  // Only for some values of a parameter.
  EXPECT_EQ(checks_of(stored_at("  %i = floor_mod %t, %s0 : index\n")), Checks());
}

TEST(Tidy, ALoopOfOneIteration) {
  const auto with = [](const char* bounds) {
    return "  for " + std::string(bounds) + " { index %k\n    store %T1 at %k, 1.0_f32\n  }\n";
  };
  EXPECT_EQ(checks_of(with("0, 16, 16")), Checks{"loop"});
  EXPECT_EQ(checks_of(with("3, 4, 1")), Checks{"loop"});
  EXPECT_EQ(checks_of(with("0, 17, 16")), Checks());
  EXPECT_EQ(checks_of(with("0, 0, 1")), Checks());
}

TEST(Tidy, AConditionThatAlwaysHolds) {
  const char* body = "  %p = lt %t, 32 : bool\n  if %p {\n    store %T1 at %t, 1.0_f32\n  }\n";
  EXPECT_EQ(checks_of(body), Checks{"needless"});
  EXPECT_EQ(checks_of(body, true), Checks());
}

TEST(Tidy, AScalarInMemory) {
  const std::string allocated = "  %a = allocate 1 in local : f32[iter 1] local\n";
  EXPECT_EQ(checks_of(allocated + "  store %a at 0, 1.0_f32\n  %v = load %a at 0 : f32\n  store %T1 at %t, %v\n"),
            Checks{"forward"});
  // Stored twice, or in a branch without the reader.
  EXPECT_EQ(checks_of(allocated + "  store %a at 0, 1.0_f32\n  for 0, 3, 1 { index %k\n    %u = load %a at 0 : f32\n"
                                  "    store %a at 0, %u\n  }\n"),
            Checks());
  EXPECT_EQ(checks_of(allocated + "  %p = lt %t, 9 : bool\n  if %p {\n    store %a at 0, 1.0_f32\n  }\n"
                                  "  %v = load %a at 0 : f32\n  store %T1 at %t, %v\n"),
            Checks());
}

TEST(Tidy, BuffersAreNoLargerThanTheirLoops) {
  const Graph scheduled = parse_graph(R"(scheduled @f {
  %x = input f32[i0 iter 6, i1 iter 8] contiguous
  %c = set %x : f32[i0 iter 6, i1 iter 8] local {
    loop [i0 block.x, i1]
    inline_at i0
  }
  %y = exp %c : f32[i0 iter 6, i1 iter 8] {
    loop [i0 block.x, i1]
  }
  output %y
}
)");
  const auto with = [](const char* size) {
    return kernel_of("  %T1_1 = allocate 8 in local : f32[iter 8] local\n  %T2 = allocate " + std::string(size) +
                     " in local : f32[iter " + size + "] local\n");
  };
  const auto renamed = [&](const char* size) {
    std::string text = print(with(size));
    for (size_t at = text.find("%T1 "); at != text.npos; at = text.find("%T1 ")) text.replace(at, 4, "%T9 ");
    for (size_t at = text.find("%T2 "); at != text.npos; at = text.find("%T2 ")) text.replace(at, 4, "%T1 ");
    return parse_graph(text);
  };
  EXPECT_TRUE(find_large_buffers(renamed("8"), scheduled, {}).empty());
  const auto found = find_large_buffers(renamed("48"), scheduled, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].check, "buffer-size");
}

// -- kernels made by lowering

std::vector<Finding> judged(const std::string& text) {
  Case c;
  c.module = parse_module(text);
  OracleRun run(c, {});
  tidy(run);
  EXPECT_FALSE(run.refusal()) << run.refusal()->what();
  return run.findings;
}

void expect_tidy(const std::string& text) {
  const auto found = judged(text);
  EXPECT_TRUE(found.empty()) << found[0].signature.check << ": " << found[0].message;
}

TEST(TidyLowering, AConditionThatTwoOpsShareSharesTheirScalars) {
  expect_tidy(R"(fusion @f {
  %n, %m = size
  %x = input f32[%n, %m] contiguous
  %c = set %x
  %y = exp %c
  output %y
}
steps @f {
  split %y.i0 by 4 -> o, t
  transform_like %y to []
  parallelize %y.t block.x
  inline_most of []
}
inputs @f host {
  %x = f32[7, 5] normal seed 1
}
)");
}

TEST(TidyLowering, TheLastOfACatNeedsNoUpperBound) {
  expect_tidy(R"(fusion @f {
  %x = input f32[1] contiguous
  %z = input f32[2] contiguous
  %y = cat [%x, %z] axis 0
  output %y
}
steps @f {
  parallelize %y.i0 grid.x
}
inputs @f host {
  %x = f32[1] normal seed 1
  %z = f32[2] normal seed 2
}
)");
}

TEST(TidyLowering, AConstantIndexIsChosenByNoCondition) {
  expect_tidy(R"(fusion @f {
  %x = input f32[4, 9] contiguous
  %y = select %x, -2 axis 0
  output %y
}
inputs @f host {
  %x = f32[4, 9] normal seed 1
}
)");
}

TEST(TidyLowering, AScatterChecksWhatMayBeOutsideAlone) {
  expect_tidy(R"(fusion @f {
  %x = input f32[3, 17] contiguous
  %i = input i64[2, 17] contiguous
  %s = input f32[2, 17] contiguous
  %y = scatter %x, %i, %s axis 0
  output %y
}
inputs @f host {
  %x = f32[3, 17] normal seed 1
  %i = i64[2, 17] integers 0.0 3.0 seed 2
  %s = f32[2, 17] normal seed 3
}
)");
}

TEST(TidyLowering, AnIndexOfConstantsIsFolded) {
  expect_tidy(R"(fusion @f {
  %x = input f32[9, 40] contiguous
  %k = input i64
  %a = mul 2, 3
  %c = cast %k as index
  %e = minimum %c, %a
  %y = slice %x from [0, %e] to [9, 40] by [1, 1]
  output %y
}
inputs @f host {
  %x = f32[9, 40] normal seed 1
  %k = 4_i64
}
)");
}

TEST(TidyLowering, OneStripIsNoLoop) {
  for (const char* n : {"2", "16", "17", "33"})
    expect_tidy("fusion @f {\n  %x = input f32[4, " + std::string(n) +
                "] contiguous\n  %y = sum %x over [1]\n  output %y\n}\nsteps @f {\n  parallelize %y.i1 unroll\n"
                "}\ninputs @f host {\n  %x = f32[4, " +
                n + "] normal seed 1\n}\n");
}

}  // namespace
}  // namespace fusebox::fuzz
