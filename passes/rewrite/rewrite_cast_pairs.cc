// cast_pairs: `cast (cast x as M) as D` becomes `cast x as D` if M loses nothing, or x itself if D is the dtype of x.
// Casts of a product that may stay wide are kept where they round it.
#include <algorithm>

#include "ir/table/families.h"
#include "passes/rewrite/rewrite_edit.h"
#include "passes/rewrite/wide_product.h"

namespace fusebox {
namespace {

// The values that a dtype holds exactly: significant bits, and the exponents of the smallest and largest bit.
struct Range {
  int digits, lowest, highest;
};

std::optional<Range> range_of(Dtype d) {
  const FloatFormat& format = format_of(d);
  if (is_floating(d) && !is_storage_only(d))
    return Range{format.digits(), format.lowest_bit(), format.largest_exponent()};
  if (is_boolean(d)) return Range{1, 0, 0};
  // Data of dtype index have a width that lowering chooses.
  if (!is_integer(d) || d == Dtype::kIndex) return std::nullopt;
  const int digits = bits(d) - (is_signed(d) ? 1 : 0);
  return Range{digits, 0, is_signed(d) ? digits : digits - 1};
}

// Whether every value of `d`, infinities included, is a value of `wide`. The smallest signed integer, −2^digits, has
// one bit.
bool holds(Dtype wide, Dtype d) {
  const auto a = range_of(wide), b = range_of(d);
  if (!a || !b || wide == Dtype::kBool) return wide == d;
  if (is_integer(wide)) {
    if (is_floating(d) || (is_signed(d) && !is_signed(wide))) return false;
    return b->digits <= a->digits;
  }
  if (has_infinity(d) && !has_infinity(wide)) return false;
  return b->digits <= a->digits && b->lowest >= a->lowest && b->highest <= a->highest;
}

// Whether a value comes from `x` through `middle` to `to` as it comes straight.
bool is_same_straight(Dtype x, Dtype middle, Dtype to, const Defects& defects) {
  if (!range_of(x) || !range_of(middle) || !range_of(to)) return false;
  // Integers wrap: the low bits of the result are those of x.
  if (is_integer(x) && is_integer(middle) && is_integer(to) && bits(to) <= bits(middle)) return true;
  const bool is_as_wide = is_integer(x) && is_floating(middle) && bits(x) == bits(middle);
  if (x == to && is_as_wide && defects.has(Defect::kCastPairFloat)) return true;
  if (!holds(middle, x) && !(x == to && defects.has(Defect::kCastPairNarrowing))) return false;
  if (x == to) return true;
  // An integer out of range wraps if it comes from an integer, and saturates if it comes from a float.
  if (is_integer(to) && is_integer(x) && !is_integer(middle)) return false;
  // A device may round a narrow float from double or 64-bit integers by way of float.
  return holds(Dtype::kFloat, x) || bits(to) >= 32 || !is_floating(to);
}

bool is_cast(const Graph& g, ValueId v) {
  return g[v].def && g[g[v].def].kind == OpKind::kCast && g.is_tensor(v) == g.is_tensor(g[g[v].def].operands[0]);
}

void skip_casts(Graph& g, Rewriter& r, const RewriteOptions& options) {
  for (OpId id : g[Graph::body()].ops) {
    if (g[id].kind != OpKind::kCast) continue;
    const ValueId v = g[id].results[0];
    // Goes up as far as possible: a chain may be equal to a straight cast only from its far end.
    while (true) {
      const ValueId middle = r.operand(id, 0);
      if (!is_cast(g, middle)) break;
      const ValueId x = r.operand(g[middle].def, 0);
      if (!is_same_straight(g[x].dtype, g[middle].dtype, g[v].dtype, options.defects)) break;
      // A product of 16 bits may stay wide. Then this cast's rounding is the only one, so it stays.
      if (g[x].dtype == g[v].dtype && has_numbers_of_wide_product(g, r, x)) break;
      if (r.fits(v, x)) {
        r.replace(v, x);
        break;
      }
      if (!g.is_tensor(x) || !r.same_axes(middle, x) || !r.take(v)) break;
      r.set_operands(id, {x});
    }
  }
}

}  // namespace

bool cast_pairs(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, skip_casts); }

}  // namespace fusebox
