// Constants: every class of every dtype occurs, bits are canonical, and half are small.
#include "fuzz/generate/constants.h"

#include <gtest/gtest.h>
#include <set>

#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

namespace fusebox::fuzz {
namespace {

std::vector<Dtype> arithmetic_dtypes() {
  std::vector<Dtype> list;
  for (const DtypeRow& row : dtype_rows())
    if (!is_storage_only(row.dtype) && row.dtype != Dtype::kIndex) list.push_back(row.dtype);
  return list;
}

TEST(Constants, EachDtypeHasEachClass) {
  for (Dtype d : arithmetic_dtypes()) {
    RandomSource random(7);
    std::set<ConstantClass> classes;
    size_t small = 0;
    constexpr size_t kDraws = 4000;
    for (size_t i = 0; i < kDraws; ++i) {
      const ConstantBits b = draw_constant(random, d);
      ASSERT_TRUE(is_canonical(d, b)) << text(d) << " " << b.low << " " << b.high;
      const ConstantClass c = constant_class(d, b);
      classes.insert(c);
      small += c == ConstantClass::kSmall;
    }
    using enum ConstantClass;
    std::set<ConstantClass> wanted = {kSmall};
    if (is_integer(d)) wanted.insert(kLargest);
    if (is_integer(d) && is_signed(d)) wanted.insert(kLeast);
    if (is_integer(d) && bits(d) >= 32) wanted.insert(kNearPower);
    if (is_floating(d)) wanted.insert({kLargest, kLeast, kNan, kSubnormal});
    if (is_floating(d) && has_infinity(d)) wanted.insert({kInfinite, kNanWithBits});
    if (d == Dtype::kFloat || d == Dtype::kDouble) wanted.insert({kManyDigits, kNearPower});
    if (is_complex(d)) wanted.insert({kImaginary, kInfinite, kNan});
    for (ConstantClass c : wanted)
      EXPECT_TRUE(classes.contains(c)) << text(d) << " " << kConstantClasses[static_cast<size_t>(c)];
    if (!is_boolean(d) && !is_complex(d)) {
      EXPECT_GT(small * 5, kDraws * 2) << text(d);
    }
  }
}

TEST(Constants, AnyOfThemIsReadAsItIsPrinted) {
  RandomSource random(11);
  for (Dtype d : arithmetic_dtypes())
    for (int i = 0; i < 300; ++i) {
      InputSpec spec;
      spec.name = "x";
      spec.is_scalar = true;
      spec.dtype = d;
      spec.value = draw_constant(random, d);
      const std::string line = print(spec);
      const InputSpec again = parse_input_spec("x", line.substr(line.find("= ") + 2));
      EXPECT_EQ(again.value, spec.value) << line;
    }
}

}  // namespace
}  // namespace fusebox::fuzz
