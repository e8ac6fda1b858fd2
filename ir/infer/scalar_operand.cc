#include "ir/infer/scalar_operand.h"

#include <array>
#include <cmath>
#include <limits>

#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "ir/token/literal.h"

namespace fusebox {
namespace {

constexpr size_t kMostOperands = 6;

bool is_real_pointwise(OpKind kind) { return demands(kind, kPointwise) && row_of(kind).at(Level::kMath); }

// The smallest number of an integer dtype, and the largest number plus 1.
std::pair<double, double> range_of(Dtype d) {
  const int digits = bits(d) - (is_signed(d) ? 1 : 0);
  const double above = std::ldexp(1.0, digits);
  return {is_signed(d) ? -above : 0.0, above};
}

bool integer_holds(Dtype to, Dtype from, ConstantBits b) {
  if (is_boolean(from)) return true;
  if (is_integer(from)) {
    const auto number = [](Dtype d, ConstantBits n) {
      return is_signed(d) ? __int128{to_int64(d, n)} : __int128{static_cast<uint64_t>(to_int64(d, n))};
    };
    return number(to, convert(from, b, to)) == number(from, b);
  }
  const auto z = to_complex(from, b);
  const auto [low, above] = range_of(to);
  return z.imag() == 0 && std::trunc(z.real()) >= low && std::trunc(z.real()) < above;
}

// The dtype that an op converts operand `i` to, also for full, iota, pad and random ops. Nothing if it is not converted.
std::optional<Dtype> kept_dtype(const Graph& g, OpKind kind, const Attrs& attrs, std::span<const ValueId> operands,
                                size_t i) {
  const auto named = [&](Dtype otherwise) {
    const AttrValue* as = attrs.find(AttrKey::kDtypeAttr);
    return as && std::holds_alternative<Dtype>(*as) ? std::get<Dtype>(*as) : otherwise;
  };
  if (kind == OpKind::kFull) return i == 0 ? std::optional(named(g[operands[0]].dtype)) : std::nullopt;
  if (kind == OpKind::kIota) return i > 0 ? std::optional(named(Dtype::kInt64)) : std::nullopt;
  if (is_random(kind)) return i < 2 ? std::optional(random_dtype(attrs)) : std::nullopt;
  if (kind == OpKind::kPad) return i == 1 ? std::optional(g[operands[0]].dtype) : std::nullopt;
  return scalar_dtype(g, kind, operands, i);
}

}  // namespace

std::optional<Dtype> scalar_dtype(const Graph& g, OpKind kind, std::span<const ValueId> operands, size_t i) {
  if (!is_real_pointwise(kind) || operands.size() < 2 || operands.size() > kMostOperands || !operands[i] ||
      g.is_tensor(operands[i]))
    return std::nullopt;
  std::array<OperandType, kMostOperands> types;
  size_t count = 0;
  for (ValueId v : operands)
    if (v) types[count++] = {g[v].dtype, !g.is_tensor(v)};
  if (count != operands.size()) return std::nullopt;
  return scalar_dtype(kind, {types.data(), count}, i);
}

bool holds(Dtype to, Dtype from, ConstantBits b) {
  if (to == from || is_boolean(to) || is_storage_only(to) || is_storage_only(from)) return true;
  if (is_integer(to)) return integer_holds(to, from, b);
  const auto z = to_complex(from, b);
  if (!is_complex(to) && z.imag() != 0) return false;
  const auto stays = [&](double x) {
    return !std::isfinite(x) || std::isfinite(to_double(real_of(to), from_double(real_of(to), x)));
  };
  return stays(z.real()) && stays(z.imag());
}

std::optional<IotaObjection> iota_objection(const Graph& g, const Attrs& attrs, std::span<const ValueId> operands,
                                            const Bindings& bindings) {
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    const auto given = evaluate(g, operands[i], bindings);
    const Dtype from = g[operands[i]].dtype, to = *kept_dtype(g, OpKind::kIota, attrs, operands, i);
    if (!given || is_storage_only(to) || is_storage_only(from)) continue;
    const double value = to_double(to, convert(from, *given, to));
    if (!std::isfinite(value) || !std::isfinite(to_double(from, *given)))
      return IotaObjection{
          i, "iota counts from a finite start by a finite step; give numbers that " + std::string(text(to)) + " holds"};
    if (i == 2 && value == 0)
      return IotaObjection{i, "iota has the step 0 in " + std::string(text(to)) + "; give another, or use full"};
  }
  return std::nullopt;
}

std::optional<size_t> unheld_constant(const Graph& g, OpKind kind, const Attrs& attrs,
                                      std::span<const ValueId> operands) {
  if (g.level != Level::kMath && g.level != Level::kScheduled) return std::nullopt;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || g[operands[i]].kind != ValueKind::kScalar) continue;
    const auto to = kept_dtype(g, kind, attrs, operands, i);
    if (!to || *to == g[operands[i]].dtype) continue;
    const auto known = evaluate(g, operands[i]);
    if (known && !holds(*to, g[operands[i]].dtype, *known)) return i;
  }
  if (kind == OpKind::kIota)
    if (const auto objection = iota_objection(g, attrs, operands)) return objection->operand;
  return std::nullopt;
}

void check_constants(const Graph& g, OpKind kind, const Attrs& attrs, std::span<const ValueId> operands) {
  const auto i = unheld_constant(g, kind, attrs, operands);
  if (!i) return;
  const ValueId v = operands[*i];
  if (kind == OpKind::kIota)
    if (const auto objection = iota_objection(g, attrs, operands))
      throw Error(ErrorCode::kBadAttribute, objection->message, g[v].name.empty() ? std::string() : "%" + g[v].name);
  const std::string to(text(*kept_dtype(g, kind, attrs, operands, *i)));
  std::string place = g[v].name;
  for (ValueId o : operands)
    if (place.empty() && o && g.is_tensor(o)) place = g[o].name;
  throw Error(ErrorCode::kConstantRange,
              std::string(row_of(kind).text) + " converts a constant to " + to + ", which cannot hold " +
                  print_literal(g[v].dtype, *evaluate(g, v)) +
                  "; cast the tensor to a wider dtype, or the constant to " + to,
              place.empty() ? place : "%" + place);
}

}  // namespace fusebox
