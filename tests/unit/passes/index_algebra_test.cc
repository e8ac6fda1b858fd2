// The normal form of index expressions: its simplifications, its proofs, and cases that need care.
#include "passes/algebra/index_algebra.h"

#include <gtest/gtest.h>
#include <limits>

#include "ir/table/error.h"
#include "tests/support/index_algebra_test_base.h"

namespace fusebox {
namespace {

class IndexAlgebraTest : public IndexAlgebraTestBase {};

TEST_F(IndexAlgebraTest, AddsAndMultipliesAsPolynomials) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  const Form i = a.declare_loop(0, "i", n);
  EXPECT_EQ(a.add(i, num(0)), i);
  EXPECT_EQ(a.sub(a.add(i, n), i), n);
  EXPECT_EQ(a.mul(a.add(i, num(1)), a.add(m, num(2))), a.add(a.add(a.mul(i, m), a.mul(i, 2)), a.add(m, num(2))));
  EXPECT_EQ(text(a.add(a.mul(i, m), num(-3))), "i*m - 3");
  EXPECT_EQ(a.mul(i, num(0)), Form{});
}

TEST_F(IndexAlgebraTest, SplitOfASplitIsOneDigit) {
  const Form l = a.declare_loop(0, "l", num(64));
  EXPECT_EQ(text(a.floor_div(l, num(8))), "l / 8");
  EXPECT_EQ(text(a.mod(l, num(8))), "l % 8");
  EXPECT_EQ(text(a.mod(a.floor_div(l, num(4)), num(4))), "l / 4 % 4");
  EXPECT_EQ(a.floor_div(a.floor_div(l, num(4)), num(4)), a.floor_div(l, num(16)));
  // The top digit needs no remainder.
  EXPECT_EQ(text(a.mod(a.floor_div(l, num(8)), num(8))), "l / 8");
  EXPECT_EQ(a.floor_div(l, num(64)), Form{});
  EXPECT_EQ(a.mod(l, num(64)), l);
  // Digits that become neighbours fuse again.
  EXPECT_EQ(a.add(a.mul(a.floor_div(l, num(8)), 8), a.mod(l, num(8))), l);
}

TEST_F(IndexAlgebraTest, TheLeastCoefficientIsDivided) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Form n = a.declare_symbol(0, "n"), j = a.declare_symbol(1, "j");
  const Form value = a.add(a.mul(n, kLeast), j);
  for (const int64_t divisor : {int64_t{3}, int64_t{5}, int64_t{7}, int64_t{1} << 32, -(kLeast + 1)}) {
    const DivMod parts = a.div_mod(value, num(divisor));
    const int64_t dividend = kLeast + 4, remainder = (dividend % divisor + divisor) % divisor;
    const int64_t point[] = {1, 4};
    const auto q = a.evaluate(parts.quotient, {}, point), r = a.evaluate(parts.remainder, {}, point);
    const int64_t quotient = dividend / divisor - (remainder == 0 ? 0 : 1);
    EXPECT_EQ(q.value_or(quotient), quotient) << divisor;
    EXPECT_EQ(r.value_or(remainder), remainder) << divisor;
    EXPECT_TRUE(q || r) << divisor;
  }
}

TEST_F(IndexAlgebraTest, MergeIsTakenApart) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  const Form i = a.declare_loop(0, "i", n);
  const Form j = a.declare_loop(1, "j", m);
  const Form merged = a.add(a.mul(i, m), j);
  EXPECT_EQ(a.floor_div(merged, m), i);
  EXPECT_EQ(a.mod(merged, m), j);
  EXPECT_TRUE(a.prove_less(merged, a.mul(n, m)));
  EXPECT_FALSE(a.prove_less(merged, a.sub(a.mul(n, m), num(1))));
}

TEST_F(IndexAlgebraTest, LoopOverAProductIsTakenApart) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  const Form l = a.declare_loop(0, "l", a.mul(n, m));
  const DivMod parts = a.div_mod(l, m);
  EXPECT_EQ(text(parts.quotient), "l / m");
  EXPECT_EQ(text(parts.remainder), "l % m");
  EXPECT_EQ(a.add(a.mul(parts.quotient, m), parts.remainder), l);
  EXPECT_TRUE(a.prove_less(parts.quotient, n));
  EXPECT_TRUE(a.prove_less(parts.remainder, m));
}

// The blocks of 31 rows of n elements, in chunks of 4 with 32 in a block: n / 4 - n / 128 of them. If there is one, n is not
// 0, so a quotient by n and its remainder make the whole again.
TEST_F(IndexAlgebraTest, ALoopOverADifferenceShowsThatASizeIsNotZero) {
  for (const int64_t rows : {30, 31, 33, 62, 63}) {
    a.clear();
    const Form n = a.declare_symbol(0, "n");
    a.assume_divides(num(4), n, "vectors");
    const Form chunks = a.ceil_div(a.mul(n, rows), num(4));
    const Form o = a.declare_loop(0, "o", a.ceil_div(chunks, num(32)));
    const Form t = a.declare_loop(1, "t", num(32));
    const Form v = a.declare_loop(2, "v", num(4));
    const Form i = a.add(a.mul(a.add(a.mul(o, 32), t), 4), v);
    EXPECT_TRUE(a.prove_le(num(1), a.symbol(0))) << rows;
    EXPECT_EQ(a.add(a.mul(a.floor_div(i, n), n), a.mod(i, n)), i) << rows;
  }
}

TEST_F(IndexAlgebraTest, ALoopOverASumOfSizesShowsNothingOfOne) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  a.declare_loop(0, "l", a.add(n, m));
  EXPECT_FALSE(a.prove_le(num(1), a.symbol(0)));
  EXPECT_FALSE(a.prove_le(num(1), a.symbol(1)));
  // At most 2 of at least 3 are of another size.
  const Form k = a.declare_symbol(2, "k");
  const Form few = a.declare_symbol(3, "few", {.lower = 0, .upper = 2});
  a.declare_loop(1, "j", a.sub(a.add(k, few), num(2)));
  EXPECT_TRUE(a.prove_le(num(1), a.symbol(2)));
  EXPECT_FALSE(a.prove_le(num(2), a.symbol(2)));
}

TEST_F(IndexAlgebraTest, ADigitThatIsNotTheTopOneIsNotCutWhereItsRangeDoesNotAllow) {
  const Form l = a.declare_loop(0, "l", num(16));
  const Form q = a.floor_div(a.mod(l, num(4)), num(3));
  for (int64_t point = 0; point < 16; ++point) EXPECT_EQ(a.evaluate(q, {{point}}, {}), point % 4 / 3);
  EXPECT_EQ(a.int_bounds(q).upper, 1);
}

TEST_F(IndexAlgebraTest, ChecksOfHolesStay) {
  // a{64} split by 64 -> b{1}, c{64}, then b by 8 -> f{1}, g{8}: b = 8*f + g reaches 7 in the holes.
  const Form f = a.declare_loop(0, "f", num(1));
  const Form g = a.declare_loop(1, "g", num(8));
  const Form c = a.declare_loop(2, "c", num(64));
  const Form b = a.add(a.mul(f, 8), g);
  EXPECT_EQ(f, Form{});
  EXPECT_EQ(b, g);
  EXPECT_FALSE(a.prove_less(b, num(1)));
  EXPECT_EQ(text(a.add(a.mul(b, 64), c)), "64*g + c");
  EXPECT_FALSE(a.prove_less(a.add(a.mul(b, 64), c), num(64)));
}

TEST_F(IndexAlgebraTest, OuterSplitsOfOneExtentDiffer) {
  // split(5, 2) and then split(outer, 2) has outer extent 2, like split(5, 3), but their indices differ.
  const Form i = a.declare_loop(0, "i", num(5));
  const Form by_4 = a.floor_div(a.floor_div(i, num(2)), num(2));
  const Form by_3 = a.floor_div(i, num(3));
  EXPECT_EQ(text(by_4), "i / 4");
  EXPECT_FALSE(a.equal(by_4, by_3));
}

TEST_F(IndexAlgebraTest, SymbolicSplitNeedsItsCheckUnlessTheFactorDivides) {
  const Form n = a.declare_symbol(0, "n");
  const Form q = a.ceil_div(n, num(128));
  EXPECT_EQ(text(q), "(n + 127) / 128");
  const Form o = a.declare_loop(0, "o", q);
  const Form t = a.declare_loop(1, "t", num(128));
  const Form i = a.add(a.mul(o, 128), t);
  EXPECT_EQ(text(i), "128*o + t");
  EXPECT_FALSE(a.prove_less(i, n));
  EXPECT_TRUE(a.last_reasons().empty());
  EXPECT_TRUE(a.prove_less(i, a.mul(q, 128)));
  EXPECT_TRUE(a.prove_less(i, a.add(n, num(127))));
  EXPECT_FALSE(a.prove_less(i, a.add(n, num(126))));
  EXPECT_EQ(a.mod(i, num(128)), t);
  EXPECT_EQ(text(a.floor_div(i, num(64))), "2*o + t / 64");
}

TEST_F(IndexAlgebraTest, WhatDividesASymbolIsBuiltIn) {
  const Form raw = a.declare_symbol(0, "n");
  a.assume_divides(num(128), raw, "n is a multiple of 128");
  const Form n = a.symbol(0);
  EXPECT_TRUE(a.equal(raw, n));
  EXPECT_EQ(text(n), "n");
  EXPECT_TRUE(a.divides(64, n));
  EXPECT_FALSE(a.divides(256, n));
  const Form o = a.declare_loop(0, "o", a.ceil_div(n, num(128)));
  const Form t = a.declare_loop(1, "t", num(128));
  EXPECT_TRUE(a.prove_less(a.add(a.mul(o, 128), t), n));
  EXPECT_EQ(a.last_reasons(), std::vector<std::string>{"n is a multiple of 128"});
  EXPECT_EQ(a.mod(n, num(4)), Form{});
  EXPECT_EQ(a.evaluate(a.floor_div(n, num(64)), {}, {{384}}), 6);
  // A second, stronger assumption.
  a.assume_divides(num(512), n, "n is a multiple of 512");
  EXPECT_TRUE(a.divides(512, raw));
  EXPECT_TRUE(a.divides(512, n));
}

TEST_F(IndexAlgebraTest, ADivisorMadeOfItsMultipleIsNotBuiltIn) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  // A factor of the divisor is computed from n itself.
  a.assume_divides(a.symbol_of(a.max(n, num(3))), n, "the larger divides n");
  EXPECT_EQ(text(a.symbol(0)), "n");
  // If m depended on n, then n would depend on m.
  a.assume_divides(a.symbol_of(a.max(n, num(5))), m, "a function of n divides m");
  a.assume_divides(a.symbol_of(a.max(m, num(5))), n, "a function of m divides n");
  EXPECT_EQ(text(a.symbol(0)), "n");
  EXPECT_EQ(text(a.symbol(1)), "max(5, n)*(m / max(5, n))");
  EXPECT_EQ(a.sub(a.symbol(1), m), Form{});
}

TEST_F(IndexAlgebraTest, DivisibilityOfAProductIsUsedAndReported) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  EXPECT_FALSE(a.divides(4, a.mul(n, m)));
  a.assume_divides(num(4), a.mul(n, m), "rows times columns");
  EXPECT_TRUE(a.divides(2, a.mul(a.mul(n, m), 3)));
  EXPECT_EQ(a.last_reasons(), std::vector<std::string>{"rows times columns"});
  EXPECT_FALSE(a.divides(4, n));
  EXPECT_TRUE(a.last_reasons().empty());
}

TEST_F(IndexAlgebraTest, AssumedOrderIsUsedAndReported) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  const Form i = a.declare_loop(0, "i", n);
  EXPECT_FALSE(a.prove_less(i, m));
  a.assume_le(n, m, "n was checked against m");
  EXPECT_TRUE(a.prove_less(i, m));
  EXPECT_EQ(a.last_reasons(), std::vector<std::string>{"n was checked against m"});
  EXPECT_TRUE(a.prove_less(a.add(a.mul(i, 2), num(1)), a.mul(m, 2)));
  EXPECT_TRUE(a.prove_nonneg(i));
  EXPECT_TRUE(a.last_reasons().empty());
  EXPECT_EQ(a.all_reasons().size(), 1u);
}

TEST_F(IndexAlgebraTest, AGuardOnALoopIsAnAssumption) {
  const Form n = a.declare_symbol(0, "n");
  const Form o = a.declare_loop(0, "o", a.ceil_div(n, num(4)));
  const Form t = a.declare_loop(1, "t", num(4));
  const Form i = a.add(a.mul(o, 4), t);
  a.assume_le(i, a.sub(n, num(1)), "i < n is checked");
  EXPECT_TRUE(a.prove_less(i, n));
  EXPECT_EQ(a.last_reasons().size(), 1u);
  EXPECT_TRUE(a.prove_less(a.mul(o, 4), n));
}

TEST_F(IndexAlgebraTest, ACheckOfAPartOfTheNestIsGivenWithTheQuestion) {
  const Form n = a.declare_symbol(0, "n");
  const Form o = a.declare_loop(0, "o", a.ceil_div(n, num(4)));
  const Form t = a.declare_loop(1, "t", num(4));
  const Form i = a.add(a.mul(o, 4), t);
  const Form room = a.sub(a.sub(n, num(1)), i);
  const Form given[] = {room};
  EXPECT_TRUE(a.prove_nonneg(a.sub(a.sub(n, num(1)), a.mul(o, 4)), given));
  EXPECT_FALSE(a.prove_nonneg(a.sub(room, num(1)), given));
  EXPECT_FALSE(a.prove_nonneg(room));
}

// 3·q + 2 >= i holds where q = i div 3, so i >= 3·c gives q >= c.
TEST_F(IndexAlgebraTest, AMultipleOfAGivenCheckCounts) {
  const Form n = a.declare_symbol(0, "n");
  const Form i = a.declare_loop(0, "i", n);
  const Form m = a.declare_symbol(1, "m");
  const Form given[] = {a.sub(a.mul(m, 4), a.mul(i, 4))};
  EXPECT_TRUE(a.prove_nonneg(a.sub(m, i), given));
  const Form with_rest[] = {a.sub(a.add(a.mul(m, 4), num(3)), a.mul(i, 4))};
  EXPECT_TRUE(a.prove_nonneg(a.sub(m, i), with_rest));
  const Form too_far[] = {a.sub(a.add(a.mul(m, 4), num(4)), a.mul(i, 4))};
  EXPECT_FALSE(a.prove_nonneg(a.sub(m, i), too_far));
}

TEST_F(IndexAlgebraTest, AQuotientVanishesUnderACheckOfItsDividend) {
  const Form n = a.declare_symbol(0, "n", {.lower = 1, .upper = std::nullopt});
  const Form i = a.declare_loop(0, "i", a.mul(n, 4));
  const Form q = a.floor_div(i, n), r = a.mod(i, n);
  const Form index = a.add(a.mul(q, 8), num(3));
  const Form below[] = {a.sub(a.sub(n, i), num(1))};
  EXPECT_EQ(a.under(index, below), num(3));
  EXPECT_EQ(a.under(r, below), i);
  const Form at_most[] = {a.sub(n, i)};
  EXPECT_EQ(a.under(index, at_most), index);
  EXPECT_EQ(a.under(r, at_most), r);
  EXPECT_EQ(a.under(index, {}), index);
}

TEST_F(IndexAlgebraTest, AnExtentThatMayBeZeroIsNotDividedBy) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  const Form i = a.declare_loop(0, "i", n);
  const Form q = a.floor_div(a.mul(i, m), m);
  EXPECT_NE(q, i);
  EXPECT_EQ(a.evaluate(q, {{3}}, {{5, 0}}), 0);
  EXPECT_EQ(a.evaluate(q, {{3}}, {{5, 7}}), 3);
  EXPECT_EQ(a.evaluate(a.mod(a.mul(i, m), m), {{3}}, {{5, 0}}), 0);
  EXPECT_EQ(a.floor_div(i, Form{}), Form{});
  EXPECT_EQ(a.mod(i, Form{}), Form{});
  // A loop over m has a point only if m is not 0.
  a.declare_loop(1, "j", m);
  EXPECT_EQ(a.floor_div(a.mul(i, m), m), i);
}

TEST_F(IndexAlgebraTest, ALoopOverAProductMakesItsFactorsPositive) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  const Form o = a.declare_loop(0, "o", a.ceil_div(a.mul(n, m), num(128)));
  const Form t = a.declare_loop(1, "t", num(128));
  const Form l = a.add(a.mul(o, 128), t);
  EXPECT_TRUE(a.prove_less(num(0), m));
  const DivMod parts = a.div_mod(l, m);
  EXPECT_EQ(text(parts.remainder), "(128*o + t) % m");
  EXPECT_EQ(a.add(a.mul(parts.quotient, m), parts.remainder), l);
  EXPECT_TRUE(a.prove_less(parts.remainder, m));
  EXPECT_FALSE(a.prove_less(parts.quotient, n));
}

TEST_F(IndexAlgebraTest, ExtentsThatAreNoProductAreSymbolsOfTheirOwn) {
  const Form n = a.declare_symbol(0, "n");
  const Form padded = a.symbol_of(a.add(n, num(1)));
  EXPECT_EQ(text(padded), "(n + 1)");
  const Form i = a.declare_loop(0, "i", n);
  const Form j = a.declare_loop(1, "j", padded);
  const Form merged = a.add(a.mul(i, padded), j);
  EXPECT_EQ(a.floor_div(merged, a.add(n, num(1))), i);
  EXPECT_EQ(a.mod(merged, padded), j);
  EXPECT_TRUE(a.prove_le(j, n));
  EXPECT_TRUE(a.equal(padded, a.add(n, num(1))));
  EXPECT_EQ(a.symbol_of(a.add(a.mul(n, 2), num(2))), a.mul(padded, 2));
  EXPECT_EQ(a.symbol_of(a.add(padded, num(2))), a.symbol_of(a.add(n, num(3))));
}

TEST_F(IndexAlgebraTest, CeilDivFoldsWhereItIsExact) {
  const Form n = a.declare_symbol(0, "n");
  EXPECT_EQ(a.ceil_div(a.mul(n, 8), num(8)), n);
  EXPECT_EQ(a.ceil_div(num(17), num(4)), num(5));
  EXPECT_EQ(a.ceil_div(num(0), num(4)), num(0));
  EXPECT_EQ(a.ceil_div(a.ceil_div(n, num(4)), num(32)), a.ceil_div(n, num(128)));
}

TEST_F(IndexAlgebraTest, ResizeMovesConstantsThroughSplits) {
  const Form l = a.declare_loop(0, "l", num(24));
  EXPECT_EQ(text(a.floor_div(a.add(l, num(8)), num(4))), "l / 4 + 2");
  EXPECT_EQ(text(a.mod(a.add(l, num(8)), num(4))), "l % 4");
  EXPECT_EQ(text(a.floor_div(a.sub(l, num(3)), num(4))), "(l + 1) / 4 - 1");
  EXPECT_EQ(text(a.floor_div(a.add(a.mul(l, 4), num(2)), num(12))), "l / 3");
}

TEST_F(IndexAlgebraTest, XorSwizzleIsItsOwnInverse) {
  const Form x = a.declare_loop(0, "x", num(8));
  const Form y = a.declare_loop(1, "y", num(8));
  const Form swizzled = a.bit_xor(x, y);
  EXPECT_EQ(text(swizzled), "(x ^ y)");
  EXPECT_EQ(a.bit_xor(swizzled, x), y);
  EXPECT_EQ(a.bit_xor(y, x), swizzled);
  EXPECT_EQ(a.bit_xor(x, x), Form{});
  EXPECT_TRUE(a.prove_less(swizzled, num(8)));
  EXPECT_EQ(a.add(a.mul(a.floor_div(swizzled, num(2)), 2), a.mod(swizzled, num(2))), swizzled);
}

TEST_F(IndexAlgebraTest, XorLeavesLowBitsThatOnlyOneOperandHas) {
  // A vector of 4 lanes stays contiguous under a swizzle of its rows.
  const Form row = a.declare_loop(0, "r", num(8));
  const Form column = a.declare_loop(1, "c", num(8));
  const Form lane = a.declare_loop(2, "v", num(4));
  const Form value = a.bit_xor(a.add(a.mul(column, 4), lane), a.mul(row, 4));
  const auto linear = a.linear_in(value, 2);
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(linear->coefficient, num(1));
  EXPECT_TRUE(a.divides(4, linear->rest));
  EXPECT_FALSE(a.linear_in(value, 0).has_value());
}

TEST_F(IndexAlgebraTest, CyclicSwizzleAndItsInverse) {
  const Form n = a.declare_symbol(0, "n");
  const Form x = a.declare_loop(0, "x", n);
  const Form y = a.declare_loop(1, "y", n);
  EXPECT_EQ(a.cyclic(a.cyclic(y, a.neg(x), n), x, n), y);
  EXPECT_EQ(a.cyclic(a.cyclic(y, x, n), a.neg(x), n), y);
  EXPECT_TRUE(a.prove_less(a.cyclic(x, y, n), n));
}

TEST_F(IndexAlgebraTest, DependenceIsOfTheNormalForm) {
  const Form i = a.declare_loop(0, "i", num(8));
  const Form j = a.declare_loop(1, "j", num(8));
  const Form merged = a.add(a.mul(i, 8), j);
  EXPECT_TRUE(a.depends_on(merged, 1));
  EXPECT_FALSE(a.depends_on(a.floor_div(merged, num(8)), 1));
  EXPECT_TRUE(a.depends_on(a.bit_xor(i, j), 0));
  const auto linear = a.linear_in(a.mul(merged, 3), 0);
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(linear->coefficient, num(24));
  EXPECT_EQ(linear->rest, a.mul(j, 3));
}

TEST_F(IndexAlgebraTest, DependenceIsExactBeyond64Loops) {
  std::vector<Form> loops;
  for (int id = 0; id < 80; ++id) loops.push_back(a.declare_loop(id, "l" + std::to_string(id), num(4)));
  const Form value = a.add(loops[70], a.floor_div(a.add(loops[75], loops[3]), num(3)));
  for (int id = 0; id < 80; ++id) EXPECT_EQ(a.depends_on(value, id), id == 70 || id == 75 || id == 3) << id;
}

TEST_F(IndexAlgebraTest, BoundsAreFormsOfTheSymbols) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m", {.lower = 1, .upper = 64});
  const Form i = a.declare_loop(0, "i", n);
  const Form j = a.declare_loop(1, "j", m);
  const FormBounds bounds = a.bounds(a.sub(a.mul(i, 3), j));
  EXPECT_EQ(*bounds.lower, a.sub(num(1), m));
  EXPECT_EQ(*bounds.upper, a.sub(a.mul(n, 3), num(3)));
  EXPECT_EQ(a.int_bounds(j).upper, 63);
  EXPECT_TRUE(a.prove_less(j, num(64)));
  EXPECT_TRUE(a.prove_less(j, m));
  EXPECT_FALSE(a.int_bounds(i).upper.has_value());
}

TEST_F(IndexAlgebraTest, SubstitutesLoopsAndSymbols) {
  const Form n = a.declare_symbol(0, "n");
  const Form o = a.declare_loop(0, "o", n);
  const Form t = a.declare_loop(1, "t", num(8));
  const Form value = a.floor_div(a.add(a.mul(o, 8), t), num(4));
  EXPECT_EQ(text(value), "2*o + t / 4");
  EXPECT_EQ(a.substitute(value, {.loops = {{1, num(5)}}, .symbols = {}}), a.add(a.mul(o, 2), num(1)));
  EXPECT_EQ(a.substitute(a.ceil_div(n, num(128)), {.loops = {}, .symbols = {{0, num(300)}}}), num(3));
}

TEST_F(IndexAlgebraTest, MinAndMaxFoldWhereTheOrderIsKnown) {
  const Form n = a.declare_symbol(0, "n");
  const Form m = a.declare_symbol(1, "m");
  EXPECT_EQ(a.min(n, a.add(n, num(1))), n);
  EXPECT_EQ(a.max(n, num(0)), n);
  const Form least = a.min(n, m);
  EXPECT_EQ(text(least), "min(n, m)");
  EXPECT_EQ(a.min(m, n), least);
  EXPECT_TRUE(a.prove_le(least, m));
  const Form i = a.declare_loop(0, "i", least);
  EXPECT_TRUE(a.prove_less(i, n));
  EXPECT_TRUE(a.prove_less(i, m));
}

TEST_F(IndexAlgebraTest, ConstantsThatLeave64BitsAreNeverWrong) {
  constexpr int64_t kBig = std::numeric_limits<int64_t>::max();
  const Form n = a.declare_symbol(0, "n");
  const Form i = a.declare_loop(0, "i", num(kBig));
  const Form sum = a.add(num(kBig), num(1));
  EXPECT_FALSE(a.is_constant(sum));
  EXPECT_EQ(a.evaluate(sum, {}, {}), std::nullopt);
  EXPECT_FALSE(a.prove_nonneg(sum));
  EXPECT_EQ(a.sub(sum, sum), Form{});
  const Form product = a.mul(a.mul(n, kBig), 2);
  EXPECT_EQ(a.evaluate(product, {}, {{0}}), 0);
  EXPECT_EQ(a.evaluate(product, {}, {{1}}), std::nullopt);
  EXPECT_TRUE(a.prove_less(i, num(kBig)));
  const Form difference = a.sub(num(std::numeric_limits<int64_t>::min()), i);
  EXPECT_EQ(a.evaluate(difference, {{0}}, {}), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(a.evaluate(difference, {{1}}, {}), std::nullopt);
  EXPECT_FALSE(a.prove_less(num(0), difference));
}

TEST_F(IndexAlgebraTest, TermsAndAtomsSpellTheFormOut) {
  const Form n = a.declare_symbol(3, "n");
  const Form o = a.declare_loop(7, "o", n);
  const Form l = a.declare_loop(9, "l", num(64));
  const Form value = a.add(a.add(a.mul(a.mod(l, num(8)), n), a.mul(o, 128)), num(5));
  EXPECT_EQ(text(value), "128*o + (l % 8)*n + 5");
  EXPECT_EQ(a.constant_part(value), 5);
  const auto terms = a.terms(value);
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0].coefficient, 128);
  ASSERT_EQ(terms[0].factors.size(), 1u);
  EXPECT_EQ(a.atom(terms[0].factors[0]).kind, AtomKind::kLoop);
  EXPECT_EQ(a.atom(terms[0].factors[0]).id, 7);
  ASSERT_EQ(terms[1].factors.size(), 2u);
  const AtomView digit = a.atom(terms[1].factors[0]);
  EXPECT_EQ(digit.kind, AtomKind::kDigit);
  EXPECT_EQ(digit.whole, l);
  EXPECT_EQ(digit.divisor, num(1));
  EXPECT_EQ(digit.range, num(8));
  EXPECT_EQ(a.atom(terms[1].factors[1]).id, 3);
  EXPECT_EQ(a.form_of(terms[0].factors[0]), o);
}

TEST_F(IndexAlgebraTest, TheOrderOfTermsDoesNotDependOnTheOrderOfCreation) {
  const auto build = [](IndexAlgebra& algebra, bool backwards) {
    Form n;
    Form m;
    if (backwards) {
      m = algebra.declare_symbol(1, "m");
      n = algebra.declare_symbol(0, "n");
    } else {
      n = algebra.declare_symbol(0, "n");
      m = algebra.declare_symbol(1, "m");
    }
    Form i;
    Form j;
    if (backwards) {
      j = algebra.declare_loop(1, "j", m);
      i = algebra.declare_loop(0, "i", n);
    } else {
      i = algebra.declare_loop(0, "i", n);
      j = algebra.declare_loop(1, "j", m);
    }
    const Form opaque = algebra.floor_div(backwards ? algebra.add(j, i) : algebra.add(i, j), algebra.constant(7));
    const Form bits = algebra.bit_xor(backwards ? i : j, backwards ? j : i);
    const Form least = algebra.min(backwards ? n : m, backwards ? m : n);
    const Form sum = algebra.add(algebra.add(opaque, algebra.mul(i, m)), algebra.mul(n, m));
    return algebra.to_string(algebra.add(sum, algebra.add(algebra.mul(bits, 3), least)));
  };
  IndexAlgebra forwards;
  IndexAlgebra backwards;
  EXPECT_EQ(build(forwards, false), build(backwards, true));
}

// Each slice clamps its bounds to the axis that the one before left: a form whose parts are named once and used several times. With
// all uses written out it is 2^48 parts long.
TEST_F(IndexAlgebraTest, AFormOfManySharedPartsIsComparedInATimeThatGrowsWithItsParts) {
  const Form x = a.declare_symbol(0, "x", {0, {}}), n = a.declare_symbol(1, "n", {1, {}});
  const auto clamped = [&](Form at, int64_t by) {
    for (int i = 0; i < 48; ++i) at = a.max(a.min(at, a.sub(n, num(i))), a.sub(num(by + i), at));
    return at;
  };
  const Form one = clamped(x, 3);
  EXPECT_TRUE(a.equal(one, clamped(x, 3)));
  EXPECT_FALSE(a.equal(one, clamped(x, 4)));
  EXPECT_EQ(a.substitute(one, {.loops = {}, .symbols = {{0, n}}}), clamped(n, 3));
}

TEST_F(IndexAlgebraTest, ClearForgetsEverything) {
  const Form n = a.declare_symbol(0, "n");
  a.declare_loop(0, "i", n);
  a.assume_divides(num(4), n, "four");
  a.clear();
  EXPECT_FALSE(a.has_symbol(0));
  EXPECT_FALSE(a.has_loop(0));
  EXPECT_TRUE(a.all_reasons().empty());
  EXPECT_FALSE(a.divides(4, a.declare_symbol(0, "k")));
}

// Runs `use`, which gives an algebra a form of another one.
template <typename Use>
ErrorCode code_of(Use use) {
  try {
    use();
  } catch (const Error& e) {
    return e.code;
  }
  ADD_FAILURE() << "a form of another algebra was taken";
  return ErrorCode::kSyntax;
}

TEST_F(IndexAlgebraTest, FormsOfAnotherAlgebraAreRefused) {
  // Both algebras give their first forms the same ids.
  IndexAlgebra other;
  const Form own = a.declare_symbol(0, "n"), foreign = other.declare_symbol(0, "n");
  EXPECT_EQ(own.id, foreign.id);
  EXPECT_NE(own, foreign);
  const auto refused = [&](auto use) { EXPECT_EQ(code_of(use), ErrorCode::kInternal); };
  refused([&] { a.add(own, foreign); });
  refused([&] { a.sub(own, foreign); });
  refused([&] { a.mul(foreign, own); });
  refused([&] { a.floor_div(foreign, num(2)); });
  refused([&] { a.mod(own, foreign); });
  refused([&] { a.bit_xor(own, foreign); });
  refused([&] { a.min(own, foreign); });
  refused([&] { a.symbol_of(foreign); });
  refused([&] { a.declare_loop(0, "i", foreign); });
  refused([&] { a.equal(own, foreign); });
  refused([&] { a.prove_nonneg(foreign); });
  refused([&] { a.divides(2, foreign); });
  refused([&] { a.bounds(foreign); });
  refused([&] { a.int_bounds(foreign); });
  refused([&] { a.has_loops(foreign); });
  refused([&] { a.terms(foreign); });
  refused([&] { a.to_string(foreign); });
  refused([&] { a.evaluate(foreign, {}, {}); });
  refused([&] { a.substitute(own, {.loops = {}, .symbols = {{0, foreign}}}); });
  refused([&] { a.assume_le(foreign, own, ""); });
}

TEST_F(IndexAlgebraTest, FormsOfBeforeClearAreRefused) {
  const Form before = a.declare_symbol(0, "n");
  a.clear();
  EXPECT_EQ(code_of([&] { a.to_string(before); }), ErrorCode::kInternal);
  EXPECT_EQ(a.to_string(Form{}), "0");
  EXPECT_EQ(num(0), Form{});
}

TEST_F(IndexAlgebraTest, ACopyTakesFormsOfTheOriginal) {
  const Form n = a.declare_symbol(0, "n");
  IndexAlgebra copy = a;
  EXPECT_EQ(copy.to_string(copy.add(n, copy.constant(1))), "n + 1");
}

}  // namespace
}  // namespace fusebox
