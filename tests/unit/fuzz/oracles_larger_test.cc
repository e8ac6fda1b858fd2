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

TEST(Larger, SizesWithWhichTheProgramItselfLeaves64BitsAreLeft) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  Case c;
  c.module = parse_module(kSumOfASize);
  for (c.seed = 1; c.seed <= 60; ++c.seed) {
    OracleRun run(c, {});
    larger(run);
    for (const Finding& f : run.findings) ADD_FAILURE() << c.seed << ": " << text(f.signature) << ": " << f.message;
  }
}

}  // namespace
}  // namespace fusebox::fuzz
