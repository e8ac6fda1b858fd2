#include "ir/scalar/constant_number.h"

#include <cmath>

#include "ir/scalar/numeric.h"

namespace fusebox {

bool is_real(Dtype d) { return is_boolean(d) || is_integer(d) || (is_floating(d) && !is_storage_only(d)); }

bool is_number(const Graph& g, ValueId v, double wanted) {
  if (!g.is_constant(v) || !is_real(g[v].dtype)) return false;
  const ConstantBits bits = *g[v].constant;
  if (is_floating(g[v].dtype)) {
    const double value = to_double(g[v].dtype, bits);
    return value == wanted && std::signbit(value) == std::signbit(wanted);
  }
  return !std::signbit(wanted) && bits == from_double(g[v].dtype, wanted) && to_double(g[v].dtype, bits) == wanted;
}

}  // namespace fusebox
