// The oracle for scalars: compares what the compiler knows of sizes and constants with the reference and with
// arithmetic that does not simplify.
#include <algorithm>
#include <cmath>
#include <span>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/constants.h"
#include "fuzz/oracle/oracle.h"
#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/apply_steps.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

constexpr int kOps = 6, kExpressions = 10, kBindings = 3;

const std::vector<OpKind>& kinds_on_constants() {
  static const std::vector<OpKind> kinds = [] {
    std::vector<OpKind> result;
    for (size_t i = 0; i < op_rows().size(); ++i)
      if (op_rows()[i].at(Level::kMath) && op_rows()[i].at(Level::kHost) &&
          demands(static_cast<OpKind>(i), kPointwise) && static_cast<OpKind>(i) != OpKind::kCast)
        result.push_back(static_cast<OpKind>(i));
    return result;
  }();
  return kinds;
}

Dtype constant_dtype(RandomSource& random) {
  constexpr Dtype kDtypes[] = {Dtype::kBool,  Dtype::kIndex,  Dtype::kInt8,   Dtype::kInt16,   Dtype::kInt32,
                               Dtype::kInt64, Dtype::kUint8,  Dtype::kUint16, Dtype::kUint32,  Dtype::kUint64,
                               Dtype::kFloat, Dtype::kDouble, Dtype::kHalf,   Dtype::kBfloat16};
  return random.pick(kDtypes);
}

// An op on constants; an invalid id if it does not accept operands of these dtypes.
ValueId op_on_constants(RandomSource& random, Graph& g) {
  const OpKind kind = random.pick(kinds_on_constants());
  const Dtype dtype = constant_dtype(random);
  const auto draw = [&](Dtype d) { return constant(g, d, draw_constant(random, d)); };
  try {
    if (row_of(kind).format->slot_count == 1) return unary(g, kind, draw(dtype));
    if (row_of(kind).format->slot_count == 2)
      return binary(g, kind, draw(dtype), draw(random.one_in(3) ? constant_dtype(random) : dtype));
    if (kind == OpKind::kWhere) return ternary(g, kind, draw(Dtype::kBool), draw(dtype), draw(dtype));
  } catch (const Error&) {
    // The op refuses these dtypes or this constant.
  }
  return {};
}

// Lets the reference fill tensors with computed constants and compares them with the compiler's evaluation.
void judge_constants(OracleRun& run, RandomSource& random, const AtenApi& api) {
  Graph g;
  g.name = "scalars";
  std::vector<std::pair<ValueId, ConstantBits>> known;
  for (int i = 0; i < kOps; ++i) {
    const ValueId v = op_on_constants(random, g);
    if (!v || g.is_constant(v)) continue;
    const auto bits = evaluate(g, v);
    if (!bits) continue;
    const Dtype dtype = g[v].dtype == Dtype::kIndex ? Dtype::kInt64 : g[v].dtype;
    output(g, full(g, {1}, v, dtype));
    known.emplace_back(v, *bits);
  }
  if (known.empty()) return;
  const Evaluation expected = api.evaluate(g, {});
  for (size_t i = 0; i < known.size(); ++i) {
    const auto [v, bits] = known[i];
    TensorData actual = allocate_tensor(expected.outputs[i].dtype, {1});
    store_element(actual, 0, bits);
    const Comparison c = compare(actual, expected.outputs[i], 1);
    if (!c.ok)
      run.report("scalars", "evaluation", std::string(row_of(g[g[v].def].kind).text),
                 c.message(g[v].name) + " in\n" + print(g));
  }
}

struct Expressions {
  Graph g;
  std::vector<ValueId> leaves, plain, simplified;
};

// Builds each expression twice: op by op, and with the functions that simplify.
Expressions draw_expressions(RandomSource& random) {
  constexpr OpKind kKinds[] = {OpKind::kAdd,     OpKind::kAdd,      OpKind::kSub,        OpKind::kMul,
                               OpKind::kMul,     OpKind::kFloorDiv, OpKind::kFloorMod,   OpKind::kCeilDiv,
                               OpKind::kMinimum, OpKind::kMaximum,  OpKind::kDiv,        OpKind::kNeg,
                               OpKind::kEq,      OpKind::kLt,       OpKind::kWhere,      OpKind::kBitwiseXor,
                               OpKind::kLe,      OpKind::kGe,       OpKind::kLogicalAnd, OpKind::kLogicalOr};
  Expressions e;
  for (int i = 0; i < 3; ++i) e.leaves.push_back(size(e.g, "n" + std::to_string(i)));
  e.leaves.push_back(input_scalar(e.g, "k", Dtype::kIndex));
  e.plain = e.simplified = e.leaves;
  for (int64_t c : {int64_t{0}, int64_t{1}, int64_t{-1}, random.between(2, 9)}) {
    e.plain.push_back(constant_index(e.g, c));
    e.simplified.push_back(e.plain.back());
  }
  const scalar::Place place = Graph::body();
  while (e.plain.size() < e.leaves.size() + 4 + kExpressions) {
    const OpKind kind = random.pick(kKinds);
    const size_t count = kind == OpKind::kNeg ? 1 : kind == OpKind::kWhere ? 3 : 2;
    std::vector<ValueId> plain, simplified;
    for (size_t i = 0; i < count; ++i) {
      // Newer values are more likely, so that expressions grow deep. An earlier operand may repeat, so that values meet
      // again.
      const size_t at = i > 0 && random.one_in(6) ? e.plain.size()
                        : random.one_in(2)        ? e.plain.size() - 1 - random.below(3)
                                                  : random.below(e.plain.size());
      plain.push_back(at == e.plain.size() ? plain[0] : e.plain[at]);
      simplified.push_back(at == e.plain.size() ? simplified[0] : e.simplified[at]);
    }
    const bool truth = kind == OpKind::kEq || kind == OpKind::kLt || kind == OpKind::kLe || kind == OpKind::kGe ||
                       kind == OpKind::kLogicalAnd || kind == OpKind::kLogicalOr;
    const Dtype dtype = truth ? Dtype::kBool : Dtype::kIndex;
    ValueId made = add_scalar(e.g, dtype, "e" + std::to_string(e.plain.size()));
    append(e.g, Graph::body(), Op{kind, plain, {made}, {}, {}});
    ValueId other = scalar::make(e.g, place, kind, simplified, dtype);
    if (truth) {
      // Makes a number of a truth value, for the next expressions.
      const ValueId one = constant_index(e.g, 1), none = constant_index(e.g, 0);
      const ValueId number = add_scalar(e.g, Dtype::kIndex, "t" + std::to_string(e.plain.size()));
      append(e.g, Graph::body(), Op{OpKind::kWhere, {made, one, none}, {number}, {}, {}});
      made = number;
      other = scalar::where(e.g, place, other, one, none);
    }
    e.plain.push_back(made);
    e.simplified.push_back(other);
  }
  return e;
}

constexpr int64_t kLargestExact = int64_t{1} << 31;

void judge_expressions(OracleRun& run, RandomSource& random) {
  Expressions e = draw_expressions(random);
  const size_t first = e.leaves.size() + 4, count = e.plain.size();
  const scalar::Place place = Graph::body();
  // Checks each expression as a polynomial, and pairs of them combined.
  struct Law {
    const char* what;
    ValueId left, right;
    ValueId unless_zero = {};
  };
  std::vector<Law> laws;
  std::vector<ValueId> size_sums;
  for (size_t i = first; i < count; ++i) {
    laws.push_back({"simplified", e.plain[i], e.simplified[i]});
    const ScalarForm form = form_of(e.g, e.simplified[i]);
    laws.push_back({"form", e.plain[i], emit_form(e.g, place, form)});
    if (is_size_sum(e.g, form)) size_sums.push_back(e.plain[i]);
    const size_t k = random.below(i);
    const ScalarForm other = form_of(e.g, e.simplified[k]);
    const auto op = [&](OpKind kind, ValueId a, ValueId b) {
      const ValueId made = add_scalar(e.g, Dtype::kIndex, "l" + std::to_string(laws.size()));
      append(e.g, Graph::body(), Op{kind, {a, b}, {made}, {}, {}});
      return made;
    };
    if (const auto sum = add(form, other, -1))
      laws.push_back({"difference of forms", op(OpKind::kSub, e.plain[i], e.plain[k]), emit_form(e.g, place, *sum)});
    const auto product = mul(form, other);
    if (product)
      laws.push_back({"product of forms", op(OpKind::kMul, e.plain[i], e.plain[k]), emit_form(e.g, place, *product)});
    if (const auto quotient = product ? divide_exactly(*product, other) : std::nullopt)
      laws.push_back({"quotient of forms", e.plain[i], emit_form(e.g, place, *quotient), e.plain[k]});
    if (const auto quotient = divide_exactly(form, other)) {
      const ValueId back = op(OpKind::kMul, emit_form(e.g, place, *quotient), e.plain[k]);
      laws.push_back({"exact division of forms", e.plain[i], back, e.plain[k]});
    }
  }
  for (int round = 0; round < kBindings; ++round) {
    Bindings bindings(e.g.values.size());
    for (size_t i = 0; i < e.leaves.size(); ++i)
      bindings[e.leaves[i].index] =
          from_int64(Dtype::kIndex, i < 3 ? random.pick(kBoundaryExtents) : random.between(-9, 9));
    // The laws hold only without overflow, so judge only small numbers.
    bool is_small = true;
    for (size_t i = first; i < count && is_small; ++i)
      is_small = std::abs(evaluate_integer(e.g, e.plain[i], bindings).value_or(0)) < kLargestExact;
    if (!is_small) continue;
    for (const Law& law : laws) {
      if (law.unless_zero && evaluate_integer(e.g, law.unless_zero, bindings) == 0) continue;
      const auto left = evaluate_integer(e.g, law.left, bindings), right = evaluate_integer(e.g, law.right, bindings);
      if (left != right)
        run.report("scalars", law.what, "",
                   std::to_string(left.value_or(0)) + " and " + std::to_string(right.value_or(0)) + ": %" +
                       e.g[law.left].name + " and %" + e.g[law.right].name + " in\n" + print(e.g));
    }
    for (ValueId v : size_sums)
      if (evaluate_integer(e.g, v, bindings).value_or(0) < 0)
        run.report("scalars", "negative sum of sizes", "", "%" + e.g[v].name + " in\n" + print(e.g));
  }
}

// -- chains of casts: what the rewrite `cast_pairs` leaves of one gives the same bits

// The dtypes from the input of a fusion with one op a value to the operand of its last op.
std::vector<Dtype> dtypes_of_chain(const Graph& g) {
  std::vector<Dtype> result;
  ValueId v = g[g[outputs(g)[0].value].def].operands[0];
  for (; g[g[v].def].kind == OpKind::kCast; v = g[g[v].def].operands[0]) result.push_back(g[v].dtype);
  result.push_back(g[v].dtype);
  std::ranges::reverse(result);
  return result;
}

ConstantBits along(std::span<const Dtype> dtypes, ConstantBits bits) {
  for (size_t i = 1; i < dtypes.size(); ++i) bits = convert(dtypes[i - 1], bits, dtypes[i]);
  return bits;
}

void judge_casts(OracleRun& run, RandomSource& random) {
  constexpr int kChains = 6, kNumbers = 12;
  for (int i = 0; i < kChains; ++i) {
    Graph g = fusion("f");
    ValueId v = input(g, "x", constant_dtype(random), {Scalar(1)});
    for (int64_t casts = random.between(2, 3); casts > 0; --casts) v = cast(g, v, constant_dtype(random));
    output(g, unary(g, OpKind::kSet, v));
    const std::vector<Dtype> before = dtypes_of_chain(g);
    apply_step(g, rewrite_step("cast_pairs"), run.options().defects);
    const std::vector<Dtype> after = dtypes_of_chain(g);
    if (after == before) continue;
    for (int k = 0; k < kNumbers; ++k) {
      const ConstantBits x = draw_constant(random, before[0]);
      const Argument wanted = Argument::scalar(before.back(), along(before, x)),
                     given = Argument::scalar(after.back(), along(after, x));
      if (!first_difference(as_tensor(wanted), as_tensor(given))) continue;
      std::string chain;
      for (Dtype d : before) chain += " " + std::string(text(d));
      run.report("scalars", "casts", "", print_literal(before[0], x) + " goes another way without a cast:" + chain);
      break;
    }
  }
}

}  // namespace

void scalars(OracleRun& run) {
  RandomSource random = run.random(77);
  judge_expressions(run, random);
  judge_casts(run, random);
  if (const AtenApi* api = find_aten()) judge_constants(run, random, *api);
}

}  // namespace fusebox::fuzz
