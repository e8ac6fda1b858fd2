// Judges the output of commands on fixed programs as a campaign does.
#include <gtest/gtest.h>

#include "fuzz/oracle/oracle.h"
#include "ir/text/parse.h"
#include "replay/device/module_loader.h"

namespace fusebox::fuzz {
namespace {

void expect_well_printed(const std::string& text) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Case c;
    c.module = parse_module(text);
    c.seed = seed;
    OracleRun run(c, {.field_changes = kFieldChangesAlone});
    views(run);
    ASSERT_FALSE(run.refusal()) << run.refusal()->what();
    EXPECT_TRUE(run.findings.empty()) << fusebox::fuzz::text(run.findings[0].signature) << ": "
                                      << run.findings[0].message;
  }
}

// The statement that stores the sum is separate from the one that adds, and has checks of its own.
TEST(Views, AReductionThatOneThreadStores) {
  expect_well_printed(R"(fusion @f {
  %x = input f32[8, 4] contiguous
  %s = sum %x over [0, 1]
  %y = exp %x
  output %s
  output %y
}
steps @f {
  parallelize %y.i0 grid.x
}
inputs @f host {
  %x = f32[8, 4] normal seed 1
}
)");
}

TEST(Views, SharedMemoryAndSymbolicSizes) {
  expect_well_printed(R"(fusion @f {
  %n, %m = size
  %x = input f32[%n, %m] contiguous
  %c = set %x
  %y = permute %c dims [1, 0]
  output %y
}
steps @f {
  split %y.i0 by 4 -> o, t
  parallelize %y.t block.x
  parallelize %c.i0 block.x
  set_memory_type %c in shared
}
inputs @f host {
  %x = f32[5, 7] normal seed 1
}
)");
}

}  // namespace
}  // namespace fusebox::fuzz
