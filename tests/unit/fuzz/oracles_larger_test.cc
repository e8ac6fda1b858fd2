// The oracle that plans for larger sizes reports nothing of a program that no plan can run with these sizes.
#include <gtest/gtest.h>

#include "fuzz/oracle/oracle.h"
#include "ir/text/parse.h"
#include "replay/device/module_loader.h"

namespace fusebox::fuzz {
namespace {

// A size over 57344 is infinite as f8e5m2, and the largest number as an index again. The sum then leaves 64 bits.
constexpr const char* kSumOfASize = R"(fusion @f {
  %n = size
  %x = input f32[1, %n] contiguous
  %p = input index
  %a = cast %n as f8e5m2
  %b = cast %a as index
  %end = add %b, %p
  %y = slice %x from [0, 0] to [%end, %n] by [1, 1]
  output %y
}
inputs @f host {
  %x = f32[1, 3] constant 1.0 1.0
  %p = 1
}
)";

// For some sizes the slice has one element, so its axis is expanded, and the output cannot overwrite the input.
constexpr const char* kExpandedForSomeSizes = R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %t = input f32[1] contiguous
  %k = floor_mod %n, 3 : index
  %a = slice %x from [0] to [%k] by [1]
  %b = expand %a to [2]
  %c = slice %b from [0] to [1] by [1]
  %y = neg %c
  output %y alias %t
}
inputs @f host {
  %x = f32[2] constant 1.0 1.0
  %t = f32[1] constant 1.0 1.0
}
)";

void expect_nothing_found(const char* program, uint64_t seeds) {
  Case c;
  c.module = parse_module(program);
  for (c.seed = 1; c.seed <= seeds; ++c.seed) {
    OracleRun run(c, {});
    larger(run);
    for (const Finding& f : run.findings) ADD_FAILURE() << c.seed << ": " << text(f.signature) << ": " << f.message;
  }
}

TEST(Larger, SizesWithWhichTheProgramItselfLeaves64BitsAreLeft) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  expect_nothing_found(kSumOfASize, 60);
}

TEST(Larger, SizesForWhichAnOutputLiesOverAnExpandedAxisAreLeft) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  expect_nothing_found(kExpandedForSomeSizes, 40);
}

}  // namespace
}  // namespace fusebox::fuzz
