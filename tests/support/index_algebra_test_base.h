// What tests of the index algebra begin with: an algebra, and short names for constants and texts.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "passes/algebra/index_algebra.h"

namespace fusebox {

class IndexAlgebraTestBase : public testing::Test {
 protected:
  Form num(int64_t value) { return a.constant(value); }
  std::string text(Form value) { return a.to_string(value); }
  IndexAlgebra a;
};

}  // namespace fusebox
