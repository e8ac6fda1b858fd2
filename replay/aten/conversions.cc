// Conversions between dtypes in the reference: each rounds once, and carries the bound on.
#include <ATen/ATen.h>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/in_sums.h"
#include "replay/data/overflow.h"

namespace fusebox::aten {

namespace {

// The bound of complex numbers whose parts are rounded to a dtype. Parts that moved may round to another number, at least the
// smallest one away, or to an infinity.
at::Tensor bound_of_parts(const Carried& c, Dtype part) {
  const at::Tensor largest = at::amax(at::abs(at::view_as_real(c.value.contiguous())), -1);
  const at::Tensor reach = at::nan_to_num(largest, 0.0, kInfinity) + c.bound;
  const at::Tensor near = c.bound * (1 + 0x1p-20) + reach.clamp_min(least_normal(part)) * (2 * ulp_of(part, 1.0));
  return at::where(c.bound > 0, at::where(reach < overflow_of(part), near, kInfinity), 0.0);
}

}  // namespace

Carried Evaluator::cast(Carried c, Dtype to) {
  if (c.dtype == to) return c;
  const Carrier from = carrier_of(c.dtype), into_carrier = carrier_of(to);
  check_internal(from != Carrier::kBytes && into_carrier != Carrier::kBytes, "a dtype without arithmetic is cast");
  std::atomic<bool> unsure_zero = false;
  Loop loop{OpKind::kCast, c.dtype, to, {{c.dtype, c.zero_sign}}, &ambiguous_};
  loop.unsure_zero = &unsure_zero;
  const std::span<const Carried> one(&c, 1);
  if (into_carrier == Carrier::kComplex) {
    if (from == Carrier::kComplex) {
      // A part that may be infinite is no bounded step away in a wider dtype.
      if (to == Dtype::kComplexDouble) c = in_sums(std::move(c));
      Carried r = to == Dtype::kComplexDouble ? c : rounded(c.value.clone(), to);
      if (!c.exact()) r.bound = bound_of_parts(c, real_of(to));
      r.zero_sign = c.zero_sign;
      r.dtype = to;
      return r;
    }
    Carried parts = cast(std::move(c), real_of(to));
    parts.value = parts.value.to(at::kComplexDouble);
    parts.dtype = to;
    return parts;
  }
  switch (from) {
    case Carrier::kReal:
      if (into_carrier == Carrier::kInteger) return into(real_to_integer_loop, loop, one, at::kLong);
      {
        // A wider dtype holds the same number.
        const bool wider = to == Dtype::kDouble || (to == Dtype::kFloat && is_reduced_float(c.dtype));
        if (wider) {
          // An infinity that may be a number of the narrow dtype may be that number here, and a number that may be
          // infinite there is far from infinity here. An infinity that may have either sign is twice as far.
          const double overflow = overflow_of(c.dtype), gap = overflow_of(to) - overflow;
          if (!c.exact() && gap > 0) {
            const at::Tensor either = c.value.isinf().logical_and(c.bound >= 2 * overflow);
            c.bound = at::where((c.value.abs() + c.bound >= overflow).logical_and(c.bound > 0),
                                (c.bound + (either.to(at::kDouble) + 1) * gap) * (1 + 0x1p-50), c.bound);
          }
          c.dtype = to;
          return c;
        }
        const bool zero_sign = c.zero_sign;
        Carried r;
        if (c.exact() || !options_.bounds) {
          r = rounded(c.value.clone(), to);
        } else {
          r.dtype = to;
          r.value = c.value.clone();
          r.bound = at::empty(r.value.sizes(), at::kDouble);
          const at::Tensor outputs[] = {r.value, r.bound};
          const at::Tensor inputs[] = {c.value, c.bound};
          run_loop(outputs, inputs, [&](const Row& row) { real_loop(loop, row); });
        }
        r.zero_sign = zero_sign && !unsure_zero;
        return r;
      }
    case Carrier::kInteger:
      if (into_carrier == Carrier::kReal) return into(integer_to_real_loop, loop, one, at::kDouble);
      return into(integer_loop, loop, one, at::kLong);
    case Carrier::kComplex:
      if (into_carrier == Carrier::kReal) {
        Carried r = into(complex_to_real_loop, loop, one, at::kDouble);
        r.zero_sign = c.zero_sign && !unsure_zero;
        return r;
      }
      if (is_boolean(to)) return into(complex_to_integer_loop, loop, one, at::kLong);
      return cast(cast(std::move(c), Dtype::kDouble), to);
    case Carrier::kBytes:
      break;
  }
  return c;
}

}  // namespace fusebox::aten
