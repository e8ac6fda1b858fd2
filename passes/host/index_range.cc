#include "passes/host/index_range.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "ir/scalar/numeric.h"

namespace fusebox {
namespace {

using Wide = __int128;

struct Range {
  Wide low = 0, high = 0;
};

Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

// The facts that the host knows about a launch.
struct Launch {
  std::array<std::optional<int64_t>, 6> dimensions;               // grid x, y, z, block x, y, z
  std::map<ValueId, std::vector<std::optional<int64_t>>> shapes;  // by the kernel's tensor parameter
};

// What has to fit: every index in 32 bits, or the end of every loop in 64.
enum class Limit { kIndices32, kLoops64 };

class KernelRanges {
 public:
  KernelRanges(const Graph& kernel, const Launch& launch, Limit limit, const Defects& defects)
      : g_(kernel), launch_(launch), limit_(limit), defects_(defects) {
    ranges_.resize(kernel.values.size());
    for (size_t i = 0; i < kernel.values.size(); ++i)
      if (const auto constant = constant_integer(kernel, ValueId(i))) ranges_[i] = Range{*constant, *constant};
  }

  void set(ValueId v, int64_t value) { ranges_[v.index] = Range{value, value}; }

  // False at the first index that leaves 32 bits or whose range is unknown, or at the first loop that ends beyond 64 bits.
  bool walk(RegionId region) {
    for (OpId id : g_[region].ops) {
      const Op& op = g_[id];
      if (op.kind == OpKind::kInput) {
        // Parameters have the launch's values.
        for (ValueId v : op.results) {
          if (g_[v].dtype == Dtype::kIndex && !g_.is_tensor(v) && !fits(of(v))) return false;
          if (defects_.has(Defect::kIndexRangeUnknown)) ranges_[v.index].reset();
        }
        continue;
      }
      if (op.kind == OpKind::kFor && !loop(op)) return false;
      if (op.kind == OpKind::kWithin) within(op);
      for (ValueId v : op.results) {
        if (g_.is_tensor(v)) continue;
        ranges_[v.index] = limited(range(op));
        if (g_[v].dtype == Dtype::kIndex && !fits(ranges_[v.index])) return false;
      }
      for (RegionId inner : op.regions)
        if (!walk(inner)) return false;
    }
    return true;
  }

 private:
  bool fits(const std::optional<Range>& r) const {
    if (limit_ == Limit::kLoops64) return true;
    if (!r) return defects_.has(Defect::kIndexRangeUnknown);
    return r->low >= INT32_MIN && r->high <= INT32_MAX;
  }

  // Numbers just beyond 64 bits stand for all numbers further out, so that products of them stay within 128.
  std::optional<Range> limited(std::optional<Range> r) const {
    constexpr Wide kBeyond = Wide{1} << 63;
    if (limit_ == Limit::kLoops64 && r) r = Range{std::max(r->low, -kBeyond - 1), std::min(r->high, kBeyond)};
    return r;
  }

  // A loop adds the step to its index until the index reaches or passes the end.
  bool loop(const Op& op) {
    const auto start = of(op.operands[0]), stop = of(op.operands[1]), step = of(op.operands[2]);
    if (limit_ == Limit::kLoops64 && stop && stop->high > INT64_MAX) return false;
    if (!start || !stop || !step || step->low < 1) return fits(std::nullopt);
    const Wide last = stop->high - (defects_.has(Defect::kIndexRangeLoop) ? 2 : 1);
    ranges_[g_[op.regions[0]].index.index] = Range{start->low, std::max(start->low, last)};
    return fits(Range{start->low, std::max(start->low, stop->high - 1 + step->high)});
  }

  // An index from data. Outside of its axis it is an error, whatever its width.
  void within(const Op& op) {
    std::optional<Range> extent = of(op.operands[1]);
    if (op.operands[2])
      if (const auto it = launch_.shapes.find(op.operands[2]); it != launch_.shapes.end())
        if (const auto axis = static_cast<size_t>(op.attrs.integer(AttrKey::kAxis)); axis < it->second.size())
          if (const auto e = it->second[axis]) extent = Range{*e, *e};
    if (!extent || ranges_[op.operands[0].index]) return;
    const Wide most = std::max<Wide>(extent->high, 1);
    ranges_[op.operands[0].index] = Range{op.attrs.flag(AttrKey::kFromEnd) ? -most : 0, most - 1};
  }

  std::optional<Range> of(ValueId v) const { return v ? ranges_[v.index] : std::nullopt; }

  std::optional<Range> range(const Op& op) const {
    if (op.kind == OpKind::kThreadIndex || op.kind == OpKind::kThreadCount) {
      const auto p = op.attrs.enumerator<ParallelType>(AttrKey::kParallel);
      const auto count = launch_.dimensions[static_cast<size_t>(p) - static_cast<size_t>(ParallelType::kGridX)];
      if (!count) return std::nullopt;
      return op.kind == OpKind::kThreadCount ? Range{*count, *count} : Range{0, std::max<int64_t>(*count - 1, 0)};
    }
    if (op.kind == OpKind::kPreparedDiv) return prepared_quotient(of(op.operands[0]), of(op.operands[1]));
    if (!demands(op.kind, kPointwise) || op.operands.empty() || op.operands.size() > 3) return std::nullopt;
    if (g_[op.results[0]].dtype != Dtype::kIndex) return exact(op);
    if (op.kind == OpKind::kWhere) return chosen(op);
    const auto a = of(op.operands[0]), b = op.operands.size() > 1 ? of(op.operands[1]) : Range{};
    if (!a || !b) return std::nullopt;
    if (is_division(op.kind))
      if (const auto quotient = exact(op)) return quotient;
    const Wide largest = std::max(a->high, -a->low);
    switch (op.kind) {
      case OpKind::kCast:
        return a;
      case OpKind::kNeg:
        return Range{-a->high, -a->low};
      case OpKind::kAdd:
        return Range{a->low + b->low, a->high + b->high};
      case OpKind::kSub:
        if (const auto divisor = remainder_by(op))
          return Range{0, std::max<Wide>(std::min(a->high, divisor->high - 1), 0)};
        return Range{a->low - b->high, a->high - b->low};
      case OpKind::kMul: {
        const auto [low, high] = std::minmax({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
        return Range{low, high};
      }
      case OpKind::kFloorDiv:
        if (b->low > 0)
          return Range{a->low < 0 ? floor_div(a->low, b->low) : a->low / b->high,
                       a->high < 0 ? floor_div(a->high, b->high) : a->high / b->low};
        return Range{-largest - 1, largest + 1};
      case OpKind::kCeilDiv:
        return Range{-largest - 1, largest + 1};
      case OpKind::kFloorMod:
        if (a->low >= 0 && a->high < b->low) return a;
        return Range{0, std::max({b->high - 1, -b->low - 1, Wide{0}})};
      case OpKind::kMinimum:
        return Range{std::min(a->low, b->low), std::min(a->high, b->high)};
      case OpKind::kMaximum:
        return Range{std::max(a->low, b->low), std::max(a->high, b->high)};
      case OpKind::kBitwiseXor: {
        if (a->low < 0 || b->low < 0) return std::nullopt;
        Wide power = 1;
        while (power <= a->high || power <= b->high) power *= 2;
        return Range{0, power - 1};
      }
      default:  // any other: known if all its operands are, and then evaluated
        return exact(op);
    }
  }

  // Lowering has proved that the dividend is not negative. Its interval may begin below 0 all the same.
  static std::optional<Range> prepared_quotient(const std::optional<Range>& a, const std::optional<Range>& b) {
    if (!a || a->high > INT32_MAX) return std::nullopt;
    const Wide low = std::max<Wide>(a->low, 0), high = std::max<Wide>(a->high, 0);
    if (b && b->low > 0) return Range{low / b->high, high / b->low};
    return Range{0, high};
  }

  // The divisor, if the difference is a remainder: a - prepared_div(a, b)·b.
  std::optional<Range> remainder_by(const Op& difference) const {
    const auto made_by = [&](ValueId v, OpKind kind) -> const Op* {
      return v && g_[v].def && g_[g_[v].def].kind == kind ? &g_[g_[v].def] : nullptr;
    };
    const Op* product = made_by(difference.operands[1], OpKind::kMul);
    const Op* quotient = product ? made_by(product->operands[0], OpKind::kPreparedDiv) : nullptr;
    if (!quotient || quotient->operands[0] != difference.operands[0] || quotient->operands[1] != product->operands[1])
      return std::nullopt;
    const auto divisor = of(quotient->operands[1]);
    return divisor && divisor->low > 0 ? divisor : std::nullopt;
  }

  // Evaluates an op whose operands are known exactly.
  std::optional<Range> exact(const Op& op) const {
    TypedBits operands[3];
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const auto r = of(op.operands[i]);
      if (!r || r->low != r->high || r->low < INT64_MIN || r->low > INT64_MAX) return std::nullopt;
      const Dtype d = g_[op.operands[i]].dtype;
      operands[i] = {d, from_int64(d, static_cast<int64_t>(r->low))};
    }
    const Dtype d = g_[op.results[0]].dtype;
    if (!is_integer(d) && !is_boolean(d)) return std::nullopt;
    const auto bits = evaluate_op(op.kind, d, {operands, op.operands.size()});
    if (!bits) return std::nullopt;
    const int64_t value = to_int64(d, *bits);
    return Range{value, value};
  }

  // Of a "where": the operand that its condition selects, or both where the condition is not known.
  std::optional<Range> chosen(const Op& where) const {
    const auto condition = of(where.operands[0]), taken = of(where.operands[1]), left = of(where.operands[2]);
    if (!condition || condition->low != condition->high) return join(taken, left);
    return condition->low != 0 ? taken : left;
  }

  static bool is_division(OpKind kind) {
    return kind == OpKind::kFloorDiv || kind == OpKind::kCeilDiv || kind == OpKind::kFloorMod;
  }

  static std::optional<Range> join(const std::optional<Range>& a, const std::optional<Range>& b) {
    if (!a || !b) return std::nullopt;
    return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
  }

  const Graph& g_;
  const Launch& launch_;
  Limit limit_;
  const Defects& defects_;
  std::vector<std::optional<Range>> ranges_;
};

bool fits(const Graph& kernel, const Graph& launch, const Bindings& bindings, const InputStrides& strides, Limit limit,
          const Defects& defects) {
  Bindings known = bindings;
  const Op* call = nullptr;
  for (OpId id : launch[Graph::body()].ops) {
    const Op& op = launch[id];
    if (op.kind == OpKind::kLaunch) call = &op;
    if (op.kind != OpKind::kTensorStride) continue;
    const auto it = strides.find(launch[op.operands[0]].name);
    const auto axis = static_cast<size_t>(op.attrs.integer(AttrKey::kAxis));
    if (it == strides.end() || axis >= it->second.size()) {
      if (limit == Limit::kLoops64) continue;
      return false;
    }
    known[op.results[0].index] = ConstantBits{static_cast<uint64_t>(it->second[axis]), 0};
  }
  if (call == nullptr) return true;
  constexpr size_t kFirstArgument = 7;  // after the dimensions and the bytes of shared memory
  Launch host;
  for (size_t i = 0; i < host.dimensions.size(); ++i)
    host.dimensions[i] = evaluate_integer(launch, call->operands[i], known);
  const auto parameters = inputs(kernel);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ValueId argument = call->operands[kFirstArgument + i];
    if (!kernel.is_tensor(parameters[i])) continue;
    for (DomainId d : launch.tensor_of(argument).logical)
      host.shapes[parameters[i]].push_back(evaluate_size(launch, d, known));
  }
  KernelRanges ranges(kernel, host, limit, defects);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (kernel.is_tensor(parameters[i])) continue;
    if (const auto value = evaluate_integer(launch, call->operands[kFirstArgument + i], known))
      ranges.set(parameters[i], *value);
  }
  return ranges.walk(Graph::body());
}

}  // namespace

bool fits_in_32_bits(const Graph& kernel, const Graph& launch, const Bindings& bindings, const InputStrides& strides,
                     const Defects& defects) {
  return fits(kernel, launch, bindings, strides, Limit::kIndices32, defects);
}

bool loops_fit_in_64_bits(const Graph& kernel, const Graph& launch, const Bindings& bindings,
                          const InputStrides& strides, const Defects& defects) {
  return fits(kernel, launch, bindings, strides, Limit::kLoops64, defects);
}

}  // namespace fusebox
