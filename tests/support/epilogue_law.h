// The law of epilogues: one call gives what its ops give one by one, within the reference's bounds, in the layout that was
// inferred. The tests for the CPU and for a GPU share it.
#pragma once

#include "tests/support/aten_law.h"
#include "tests/support/epilogue_cases.h"

namespace fusebox::test {

inline void check_epilogues(Device& device, int count, uint64_t seed) {
  AtenLaw law(device);
  for (const bool by_boundaries : {false, true})
    for (const OpCase& c : epilogue_cases(count, seed, by_boundaries)) {
      ASSERT_TRUE(product_call(c.fusion)) << c.name << "\n" << print(c.fusion);
      for (const Lying way : kLyings) law.check(c, way);
    }
  EXPECT_EQ(law.called, law.ran);
  EXPECT_GT(law.ran, count * 10);
  std::printf("  %d runs as one call\n", law.called);
}

}  // namespace fusebox::test
