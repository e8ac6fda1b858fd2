// Which index expressions the algebra finds equal, though their normal forms differ.
#include "tests/support/index_algebra_test_base.h"

namespace fusebox {
namespace {

class IndexEqualityTest : public IndexAlgebraTestBase {};

TEST_F(IndexEqualityTest, LooksThroughOverlappingDigits) {
  const Form l = a.declare_loop(0, "l", num(36));
  const Form six = a.mod(l, num(6));
  const Form four = a.mod(l, num(4));
  // Both contain l % 2, written differently.
  const Form left = a.add(six, a.mul(a.floor_div(four, num(2)), 2));
  const Form right = a.add(four, a.mul(a.floor_div(six, num(2)), 2));
  EXPECT_TRUE(a.equal(left, right));
  EXPECT_FALSE(a.equal(six, four));
}

TEST_F(IndexEqualityTest, OpaqueDivisionsStayShortAndAreStillCompared) {
  const Form l = a.declare_loop(0, "l", num(16));
  const Form k = a.declare_loop(1, "k", num(3));
  const Form direct = a.mod(a.add(l, k), num(4));
  const Form nested = a.mod(a.add(a.mod(l, num(4)), k), num(4));
  EXPECT_EQ(text(direct), "(l + k) % 4");
  EXPECT_EQ(text(nested), "(l % 4 + k) % 4");
  EXPECT_TRUE(a.equal(direct, nested));
  const Form quotient = a.add(a.floor_div(l, num(4)), a.floor_div(a.add(a.mod(l, num(4)), k), num(4)));
  EXPECT_TRUE(a.equal(quotient, a.floor_div(a.add(l, k), num(4))));
  EXPECT_FALSE(a.equal(quotient, a.floor_div(a.add(l, k), num(5))));
}

TEST_F(IndexEqualityTest, TriesThePointsOfASmallNest) {
  // Found by the fuzzer: the same digit, divided at once and in two steps.
  const Form x = a.mul(a.declare_loop(0, "l", num(6)), 65);
  const Form rest = a.mod(x, num(128));
  const Form twice = a.floor_div(a.floor_div(rest, num(5)), num(4)), once = a.floor_div(rest, num(20));
  EXPECT_EQ(text(twice), "((65*l) % 128) / 20");
  EXPECT_EQ(text(once), "((65*l) / 4 % 32) / 5");
  EXPECT_TRUE(a.equal(twice, once));
  EXPECT_FALSE(a.equal(twice, a.floor_div(rest, num(22))));
  // 3·i + 3 is below 4 or has the remainder 1 or 2, and no law of digits says so.
  const Form three = a.add(a.mul(a.declare_loop(1, "i", num(3)), 3), num(3));
  EXPECT_TRUE(a.equal(a.floor_div(a.floor_div(a.mod(three, num(4)), num(3)), num(2)), num(0)));
  // It differs at the last point alone, and is not tried where it has symbols or too many points.
  const Form k = a.declare_loop(2, "k", num(16384));
  EXPECT_FALSE(a.equal(a.floor_div(a.add(k, num(1)), num(16384)), num(0)));
  const Form n = a.declare_loop(3, "n", a.declare_symbol(0, "size", {.lower = 1, .upper = {}}));
  EXPECT_FALSE(a.equal(a.mod(n, num(3)), a.mod(n, num(2))));
}

TEST_F(IndexEqualityTest, AsksWhereACutQuotientReachesItsSecondValue) {
  const Form l = a.declare_loop(0, "l", a.declare_symbol(0, "n", {.lower = 1, .upper = {}}));
  // Two plus l divided by 48, in one step and by halves.
  const Form once = a.floor_div(a.floor_div(a.add(l, num(2)), num(3)), num(16));
  EXPECT_TRUE(a.equal(once, a.floor_div(a.add(a.floor_div(l, num(2)), num(1)), num(24))));
}

}  // namespace
}  // namespace fusebox
