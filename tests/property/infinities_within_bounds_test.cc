// Law: where a bound lets an infinity stand in place of a number, the reference lets everything pass that follows from
// the infinity: NaN where it meets another one or a zero. And where no bound reaches infinity, nothing becomes free.
//
// Operands are made that are 0 within an interval that reaches −∞, ∞ or both. Each op is evaluated on them, and again
// on exact numbers and infinities out of these intervals. The values of the second evaluation must lie in the bounds of
// the first, and what is free in the second is free in the first.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <complex>
#include <functional>
#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "ir/text/parse.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "tests/support/random_module.h"

namespace fusebox {
namespace {

using testing::Random;

#define NEED_ATEN() \
  if (find_aten() == nullptr) GTEST_SKIP() << "PyTorch is not there"

constexpr int64_t kRows = 8, kColumns = 4, kElements = kRows * kColumns;

// What an element of the first operand is: a number of its own, or 0 with an interval up to infinities.
// kTop: ∞, or the largest number of f32.
enum class Reach { kNone, kUp, kDown, kBoth, kTop };

struct Elements {
  std::vector<Reach> reach;
  std::vector<double> plain;   // the values where nothing is reached
  std::vector<double> chosen;  // the values themselves, or numbers and infinities out of the intervals
  std::vector<double> other;   // of the second operand

  Elements(Random& random, size_t one_reaches_in) {
    const std::vector<double> numbers = {0.5, 1, -2, 3, -0.25}, others = {0, 1, -2, 0.5, 3};
    for (int64_t i = 0; i < kElements; ++i) {
      const bool reaches = random.one_in(one_reaches_in);
      reach.push_back(reaches ? static_cast<Reach>(1 + random.below(4)) : Reach::kNone);
      plain.push_back(random.pick(numbers));
      other.push_back(random.pick(others));
      const double up = reach.back() == Reach::kDown ? -INFINITY : INFINITY;
      const double infinity = reach.back() == Reach::kBoth && random.one_in(2) ? -INFINITY : up;
      chosen.push_back(!reaches                      ? plain.back()
                       : !random.one_in(4)           ? infinity
                       : reach.back() == Reach::kTop ? FLT_MAX
                                                     : 0.0);
    }
  }
  int64_t rows_that_reach() const {
    int64_t rows = 0;
    for (auto row = reach.begin(); row != reach.end(); row += kColumns)
      rows += std::any_of(row, row + kColumns, [](Reach r) { return r != Reach::kNone; });
    return rows;
  }
};

template <class F>
Argument filled(Dtype d, F&& value) {
  TensorData t = allocate_tensor(d, {kRows, kColumns});
  for (int64_t i = 0; i < kElements; ++i) store_element(t, i, constant_bits(d, value(static_cast<size_t>(i))));
  return Argument::of(t);
}

// A program whose value %x is an input.
std::string exact_program(const std::string& d) {
  return "fusion @f {\n  %x = input " + d + "[8, 4] contiguous\n  %y = input " + d + "[8, 4] contiguous\n";
}
// A program that computes %x: erf(−5) + 1 is 0 within a few 1e-8, and so far from 0 when scaled that no float holds it.
// erf(−3.7) + 1 is so small that, scaled and added to the largest number, it gives ∞ or that number again.
std::string inexact_program(const std::string& d) {
  return "fusion @f {\n"
         "  %at = input f32[8, 4] contiguous\n  %low = input f32[8, 4] contiguous\n"
         "  %high = input f32[8, 4] contiguous\n  %reaches = input bool[8, 4] contiguous\n"
         "  %is_top = input bool[8, 4] contiguous\n  %plain = input " +
         d +
         "[8, 4] contiguous\n"
         "  %y = input " +
         d +
         "[8, 4] contiguous\n"
         "  %erf = erf %at\n  %small = add %erf, 1.0_f32\n  %scaled = mul %small, 7e37_f32\n"
         "  %far = mul %scaled, 1e30_f32\n  %above = maximum %far, %low\n  %between = minimum %above, %high\n"
         "  %top = add %scaled, 3.4028234663852886e38_f32\n  %either = where %is_top, %top, %between\n"
         "  %narrow = cast %either as " +
         d + "\n  %x = where %reaches, %narrow, %plain\n";
}

Evaluation evaluate_exact(const Graph& g, Dtype d, const Elements& x) {
  const std::vector<Argument> arguments = {filled(d, [&](size_t i) { return x.chosen[i]; }),
                                           filled(d, [&](size_t i) { return x.other[i]; })};
  return find_aten()->evaluate(g, arguments);
}
Evaluation evaluate_inexact(const Graph& g, Dtype d, const Elements& x) {
  const auto is_top = [&](size_t i) { return x.reach[i] == Reach::kTop; };
  const auto end = [&](Reach none) {
    return [&x, none](size_t i) { return x.reach[i] == none ? 0.0 : none == Reach::kUp ? -INFINITY : INFINITY; };
  };
  const std::vector<Argument> arguments = {filled(Dtype::kFloat, [&](size_t i) { return is_top(i) ? -3.7 : -5.0; }),
                                           filled(Dtype::kFloat, end(Reach::kUp)),
                                           filled(Dtype::kFloat, end(Reach::kDown)),
                                           filled(Dtype::kBool, [&](size_t i) { return x.reach[i] != Reach::kNone; }),
                                           filled(Dtype::kBool, is_top),
                                           filled(d, [&](size_t i) { return x.plain[i]; }),
                                           filled(d, [&](size_t i) { return x.other[i]; })};
  return find_aten()->evaluate(g, arguments);
}

double bound_at(const Evaluated& e, int64_t i) {
  return e.is_exact() ? 0.0 : to_double(Dtype::kDouble, load_element(contiguous_copy(e.bound), i));
}

// Adds the op to both programs and expects what the law says. Returns the number of free elements.
int64_t expect_law(const std::string& what, Dtype d, const Elements& x, const std::function<void(Graph&)>& add) {
  const std::string name(text(d));
  Graph exact = parse_graph(exact_program(name) + "}"), inexact = parse_graph(inexact_program(name) + "}");
  add(exact);
  add(inexact);
  const Evaluation chosen = evaluate_exact(exact, d, x), all = evaluate_inexact(inexact, d, x);
  int64_t free = 0;
  for (size_t k = 0; k < all.outputs.size(); ++k) {
    const TensorData actual = contiguous_copy(result_of(chosen.outputs[k])),
                     expected = contiguous_copy(result_of(all.outputs[k]));
    for (int64_t i = 0; i < element_count(actual.shape); ++i) {
      if (bound_at(chosen.outputs[k], i) != INFINITY) continue;
      EXPECT_EQ(bound_at(all.outputs[k], i), INFINITY) << what << " " << name << " output " << k << " element " << i;
      store_element(actual, i, load_element(expected, i));
    }
    const Comparison c = compare(actual, all.outputs[k]);
    EXPECT_TRUE(c.ok) << what << " " << name << " output " << k << ": " << c.message("r");
    free += c.unconstrained;
  }
  return free;
}

constexpr Dtype kDtypes[] = {Dtype::kHalf, Dtype::kBfloat16, Dtype::kFloat, Dtype::kDouble};

TEST(InfinitiesWithinBounds, GiveWhatPointwiseOpsGive) {
  NEED_ATEN();
  Random random(1);
  int ops = 0;
  for (const OpRow& row : op_rows()) {
    const std::string_view format = row.format->name;
    const size_t count = format == "kUnary" ? 1 : format == "kBinary" ? 2 : format == "kTernary" ? 3 : 4;
    if (count == 4 && format != "kQuaternary") continue;
    if (!demands(row.kind, kPointwise) || !row.at(Level::kMath) || row.kind == OpKind::kCast ||
        row.kind == OpKind::kWhere || row.kind == OpKind::kComplex)
      continue;
    for (Dtype d : kDtypes) {
      if (!accepts_dtype(row.kind, d)) continue;
      ++ops;
      for (int round = 0; round < (count == 1 ? 4 : 12); ++round) {
        const Elements x(random, 3);
        std::vector<bool> is_first;
        for (size_t k = 0; k < count; ++k) is_first.push_back(random.one_in(2));
        is_first[random.below(count)] = true;
        expect_law(std::string(row.text), d, x, [&](Graph& g) {
          std::vector<ValueId> operands;
          for (bool first : is_first) operands.push_back(*find_value(g, first ? "x" : "y"));
          output(g, pointwise(g, row.kind, operands, "r"));
        });
      }
    }
  }
  EXPECT_GT(ops, 200);
}

// Ops that combine elements, as text behind the line of %y; the results are outputs.
struct Combination {
  std::string text;
  std::vector<std::string> results = {"r"};
  int64_t free_in_row = kElements;  // the most elements that one row of %x may make free
  bool is_complex = false;          // only for dtypes that are parts of complex numbers
};

TEST(InfinitiesWithinBounds, GiveWhatCombinationsGive) {
  NEED_ATEN();
  const std::vector<Combination> combinations = {
      {"%r = sum %x over [1]", {"r"}, 1},
      {"%r = sum %x over [0, 1]"},
      {"%r = prod %x over [1]", {"r"}, 1},
      {"%r = max %x over [1]"},
      {"%r = min %x over [0]"},
      {"%r, %s, %n = welford %x over [1]", {"r", "s"}, 2},
      {"%r = cumsum %x axis 1", {"r"}, kColumns},
      {"%r = cumprod %x axis 0"},
      {"%r = linear %x, %y", {"r"}, kRows},
      {"%r = linear %y, %x"},
      {"%b = sum %y over [1]\n  %r = linear %x, %y bias %b"},
      {"%t0 = permute %x dims [1, 0]\n  %r = matmul %x, %t0"},
      {"%z = reshape %y to [1, 4, 8]\n  %ends = full 8_i32 of [1]\n  %r = grouped_mm %x, %z, %ends", {"r"}, kRows},
      {"%j = full 3_i64 of [8] as i64\n  %r = index_put_accumulate %y, %j, %x"},
      {"%j = iota 8 by 1\n  %r = index_put_accumulate %x, %j, %y"},
      {"%h = lt %y, %y\n  %j = cast %h as i64\n  %r = scatter_add %y, %j, %x axis 1"},
      {"%z = complex %x, %y\n  %r = cast %z as c128", {"r"}, kColumns, true},
      {"%z = complex %y, %x\n  %r = sum %z over [1]", {"r"}, 1, true},
      {"%z = complex %x, %x\n  %r = prod %z over [1]", {"r"}, 1, true},
      {"%z = complex %x, %y\n  %r = cumsum %z axis 1", {"r"}, kColumns, true},
      {"%z = complex %x, %y\n  %w = complex %y, %x\n  %r = mul %z, %w\n  %s = add %z, %w", {"r", "s"}, kElements, true},
      {"%z = complex %x, %y\n  %r = real %z\n  %s = imag %z\n  %t = abs %z", {"r", "s", "t"}, kElements, true},
      {"%z = complex %x, %y\n  %r = linear %z, %z", {"r"}, kElements, true},
  };
  Random random(2);
  for (const Combination& op : combinations)
    for (Dtype d : kDtypes)
      for (int round = 0; round < 16 && !(op.is_complex && is_reduced_float(d)); ++round) {
        const Elements x(random, round % 4 == 0 ? 20 : 3);
        const int64_t free = expect_law(op.text, d, x, [&](Graph& g) {
          const bool is_exact = !find_value(g, "plain");
          std::string program = is_exact ? exact_program(std::string(text(d))) : inexact_program(std::string(text(d)));
          program += "  " + op.text + "\n";
          for (const std::string& r : op.results) program += "  output %" + r + "\n";
          g = parse_graph(program + "}");
        });
        EXPECT_LE(free, x.rows_that_reach() * op.free_in_row) << op.text << " " << text(d);
      }
}

TEST(InfinitiesWithinBounds, GiveWhatAttentionGives) {
  NEED_ATEN();
  Random random(3);
  // The value in each place of the call in turn; the others are %y.
  for (int place = 0; place < 8; ++place)
    for (Dtype d : {Dtype::kHalf, Dtype::kBfloat16, Dtype::kFloat})
      for (int round = 0; round < 8; ++round) {
        const Elements x(random, 3);
        expect_law("attention " + std::to_string(place), d, x, [&](Graph& g) {
          const bool is_exact = !find_value(g, "plain");
          std::string program = is_exact ? exact_program(std::string(text(d))) : inexact_program(std::string(text(d)));
          const auto at = [&](int k) { return std::string(k == place ? "%x4" : "%y4"); };
          program += "  %x4 = reshape %x to [1, 1, 8, 4]\n  %y4 = reshape %y to [1, 1, 8, 4]\n";
          program += "  %o, %l = sdpfa_fwd " + at(0) + ", " + at(1) + ", " + at(2) + " scale 0.5_f32";
          program += round % 2 == 0 ? " causal\n" : "\n";
          if (place < 3) {
            program += "  output %o\n  output %l\n";
          } else {
            program += "  %a, %b, %c = sdpfa_bwd " + at(3) + ", " + at(4) + ", " + at(5) + ", " + at(6) + ", " + at(7) +
                       ", %l scale 0.5_f32" + (round % 2 == 0 ? " causal\n" : "\n");
            program += "  output %a\n  output %b\n  output %c\n";
          }
          g = parse_graph(program + "}");
        });
      }
}

// Parts are added alone: nothing is multiplied, so an infinite part leaves the other as it is.
TEST(InfinitiesWithinBounds, PartsOfComplexNumbersAreAddedAlone) {
  NEED_ATEN();
  for (const char* shape : {"[3]", "[3, 2]"}) {
    const std::string t = std::string("c64") + shape;
    const Graph g =
        parse_graph("fusion @f {\n  %x = input " + t + " contiguous\n  %j = input i64[3] contiguous\n  %y = input " +
                    t + " contiguous\n  %r = index_put_accumulate %x, %j, %y\n  output %r\n}");
    const bool is_row = std::string(shape) == "[3, 2]";
    const std::vector<int64_t> sizes = is_row ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{3};
    TensorData x = allocate_tensor(Dtype::kComplexFloat, sizes), y = allocate_tensor(Dtype::kComplexFloat, sizes),
               places = allocate_tensor(Dtype::kInt64, {3});
    const std::complex<double> added[] = {{-INFINITY, 1}, {2, INFINITY}, {3, 4}};
    for (int64_t i = 0; i < 3; ++i) {
      store_element(places, i, constant_bits(Dtype::kInt64, 2 - i));
      for (int64_t k = 0; k < (is_row ? 2 : 1); ++k) {
        store_element(x, i * (is_row ? 2 : 1) + k, from_complex(Dtype::kComplexFloat, {1, 1}));
        store_element(y, i * (is_row ? 2 : 1) + k, from_complex(Dtype::kComplexFloat, added[i]));
      }
    }
    const std::array<Argument, 3> arguments = {Argument::of(x), Argument::of(places), Argument::of(y)};
    const Evaluation e = find_aten()->evaluate(g, arguments);
    const TensorData r = contiguous_copy(result_of(e.outputs.at(0)));
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(to_complex(r.dtype, load_element(r, (2 - i) * (is_row ? 2 : 1))), added[i] + std::complex<double>(1, 1))
          << shape;
  }
}

}  // namespace
}  // namespace fusebox
