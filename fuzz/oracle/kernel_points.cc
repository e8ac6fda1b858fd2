#include "fuzz/oracle/kernel_points.h"

#include <algorithm>

namespace fusebox::fuzz {
namespace {

// Euclidean, and 0 for a divisor of 0, as in op_table.inc.
int64_t quotient(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return 0;
  const int64_t q = a / b;
  return a % b >= 0 ? q : b > 0 ? q - 1 : q + 1;
}

int64_t remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a - quotient(a, b) * b; }

int64_t wrapped(OpKind kind, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(kind == OpKind::kAdd ? x + y : kind == OpKind::kSub ? x - y : x * y);
}

// Calls `use` with the function that the op computes from up to three integers. False if the op is no function of
// integers here.
template <class Use>
bool with_function(OpKind kind, const Use& use) {
  switch (kind) {
    case OpKind::kAdd:
      return use([](int64_t a, int64_t b, int64_t) { return wrapped(OpKind::kAdd, a, b); }), true;
    case OpKind::kSub:
      return use([](int64_t a, int64_t b, int64_t) { return wrapped(OpKind::kSub, a, b); }), true;
    case OpKind::kMul:
      return use([](int64_t a, int64_t b, int64_t) { return wrapped(OpKind::kMul, a, b); }), true;
    case OpKind::kFloorDiv:
      return use([](int64_t a, int64_t b, int64_t) { return quotient(a, b); }), true;
    case OpKind::kFloorMod:
      return use([](int64_t a, int64_t b, int64_t) { return remainder(a, b); }), true;
    case OpKind::kPreparedDiv:
      return use([](int64_t a, int64_t b, int64_t) { return quotient(a, b); }), true;
    case OpKind::kCeilDiv:
      return use([](int64_t a, int64_t b, int64_t) {
               return b == 0 ? 0 : quotient(wrapped(OpKind::kAdd, a, b - 1), b);
             }),
             true;
    case OpKind::kMinimum:
      return use([](int64_t a, int64_t b, int64_t) { return std::min(a, b); }), true;
    case OpKind::kMaximum:
      return use([](int64_t a, int64_t b, int64_t) { return std::max(a, b); }), true;
    case OpKind::kBitwiseXor:
      return use([](int64_t a, int64_t b, int64_t) { return a ^ b; }), true;
    case OpKind::kLt:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a < b}; }), true;
    case OpKind::kLe:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a <= b}; }), true;
    case OpKind::kGt:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a > b}; }), true;
    case OpKind::kGe:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a >= b}; }), true;
    case OpKind::kEq:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a == b}; }), true;
    case OpKind::kNe:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a != b}; }), true;
    case OpKind::kLogicalAnd:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a != 0 && b != 0}; }), true;
    case OpKind::kLogicalOr:
      return use([](int64_t a, int64_t b, int64_t) { return int64_t{a != 0 || b != 0}; }), true;
    case OpKind::kLogicalNot:
      return use([](int64_t a, int64_t, int64_t) { return int64_t{a == 0}; }), true;
    case OpKind::kWhere:
      return use([](int64_t a, int64_t b, int64_t c) { return a != 0 ? b : c; }), true;
    default:  // any other: its result is not known, and no finding rests on it
      return false;
  }
}

bool is_index(const Graph& g, ValueId v) {
  return !g.is_tensor(v) && (g[v].dtype == Dtype::kIndex || g[v].dtype == Dtype::kBool);
}

}  // namespace

KernelPoints::KernelPoints(const Graph& kernel, std::array<int64_t, 6> launch, uint64_t seed)
    : g_(kernel),
      launch_(launch),
      seed_(seed),
      random_(seed),
      rows_(kernel.values.size()),
      is_known_(kernel.values.size()),
      support_(kernel.values.size()),
      live_(kernel.regions.size()),
      opener_(kernel.regions.size()),
      outside_(kernel.regions.size()) {
  for (size_t i = 0; i < g_.values.size(); ++i)
    if (const auto n = constant_integer(g_, ValueId(i)); n && is_index(g_, ValueId(i))) {
      is_known_[i] = true;
      rows_[i].fill(*n);
    }
  for (int p = 0; p < 6; ++p) variables_.push_back({{}, p, {}});
  live_[0] = std::all_of(launch.begin(), launch.end(), [](int64_t n) { return n > 0; }) ? ~uint64_t{0} : 0;
  // All ops that ask for a dimension's index get the same one.
  std::array<Row, 6> threads;
  for (size_t p = 0; p < 6; ++p)
    for (int64_t& at : threads[p]) {
      const auto last = std::max<int64_t>(launch[p], 1) - 1;
      at = random_.one_in(4) ? (random_.one_in(2) ? 0 : last) : random_.between(0, last);
    }
  for (const Op& op : g_.ops) {
    if (op.kind != OpKind::kThreadIndex) continue;
    const auto p = static_cast<size_t>(op.attrs.enumerator<ParallelType>(AttrKey::kParallel)) -
                   static_cast<size_t>(ParallelType::kGridX);
    const ValueId v = op.results[0];
    if (p >= 6) continue;
    is_known_[v.index] = true;
    rows_[v.index] = threads[p];
    support_[v.index] = uint64_t{1} << p;
    variables_[p].values.push_back(v);
  }
  has_parts_ = std::any_of(g_.ops.begin(), g_.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kFor && constant_integer(g_, op.operands[0]) != 0;
  });
  if (live_[0] != 0) walk(Graph::body());
}

int64_t KernelPoints::parameter(ValueId v, int turn) const {
  RandomSource random(seed_ + 977 * v.index + static_cast<uint64_t>(turn));
  return turn % 3 == 0 ? random.between(0, 3) : random.between(2, 5000);
}

void KernelPoints::walk(RegionId region) {
  for (OpId id : g_[region].ops) {
    const Op& op = g_[id];
    if (op.kind == OpKind::kInput && is_index(g_, op.results[0]) && g_[op.results[0]].dtype == Dtype::kIndex) {
      const ValueId v = op.results[0];
      is_known_[v.index] = true;
      support_[v.index] = kOpen;
      for (int i = 0; i < kPoints; ++i) rows_[v.index][static_cast<size_t>(i)] = parameter(v, i);
    }
    sample_op(id);
    for (RegionId inside : op.regions) {
      opener_[inside.index] = id;
      outside_[inside.index] = region;
      live_[inside.index] = live_[region.index];
      if (op.kind == OpKind::kFor) enter_loop(op, inside, region);
      walk(inside);
    }
  }
}

void KernelPoints::enter_loop(const Op& op, RegionId inside, RegionId outside) {
  const ValueId index = g_[inside].index;
  uint64_t support = 0;
  for (ValueId bound : op.operands) {
    if (!is_known_[bound.index]) {
      is_whole_ = false;
      return;
    }
    support |= support_[bound.index];
  }
  if (variables_.size() == kMostVariables) {
    is_whole_ = false;
    return;
  }
  const uint64_t me = uint64_t{1} << variables_.size();
  order_.push_back({true, static_cast<uint32_t>(variables_.size())});
  variables_.push_back({inside, 0, {index}});
  is_known_[index.index] = true;
  support_[index.index] = support | me | (has_parts_ && op.attrs.flag(AttrKey::kUnroll) ? kPart : 0);
  for (size_t i = 0; i < kPoints; ++i) {
    if ((live_[outside.index] >> i & 1) == 0) continue;
    const int64_t start = rows_[op.operands[0].index][i], stop = rows_[op.operands[1].index][i],
                  step = rows_[op.operands[2].index][i];
    if (step <= 0 || start >= stop) {
      live_[inside.index] &= ~(uint64_t{1} << i);
      continue;
    }
    const int64_t last = (stop - start - 1) / step;
    const int64_t k = random_.one_in(4) ? (random_.one_in(2) ? 0 : last) : random_.between(0, last);
    rows_[index.index][i] = start + k * step;
  }
}

void KernelPoints::sample_op(OpId id) {
  const Op& op = g_[id];
  if (op.results.size() != 1 || !demands(op.kind, kPointwise) || !is_index(g_, op.results[0])) return;
  const size_t count = op.operands.size();
  if (count == 0 || count > 3) return;
  uint64_t support = op.kind == OpKind::kBitwiseXor ? kXor : 0;
  for (ValueId v : op.operands) {
    if (!v || !is_known_[v.index]) return;
    support |= support_[v.index];
  }
  const Row& a = rows_[op.operands[0].index];
  const Row& b = rows_[op.operands[count > 1 ? 1 : 0].index];
  const Row& c = rows_[op.operands[count > 2 ? 2 : 0].index];
  Row& to = rows_[op.results[0].index];
  const bool is_function = with_function(op.kind, [&](auto f) {
    for (size_t i = 0; i < kPoints; ++i) to[i] = f(a[i], b[i], c[i]);
  });
  if (!is_function) return;
  // A cyclic swizzle: the algebra does not simplify a difference under a modulo.
  if (op.kind == OpKind::kFloorMod && std::any_of(a.begin(), a.end(), [](int64_t n) { return n < 0; })) support |= kXor;
  is_known_[op.results[0].index] = true;
  support_[op.results[0].index] = support;
  order_.push_back({false, id.index});
}

std::optional<bool> KernelPoints::holds(std::span<const ValueId> values, RegionId region,
                                        const std::function<bool(std::span<const int64_t>)>& law) const {
  if (!is_whole_) return std::nullopt;
  uint64_t support = 0;
  for (ValueId v : values) support |= support_[v.index];
  // A loop that does not run for some threads removes their points.
  for (RegionId r = region; r != Graph::body(); r = outside_[r.index])
    if (const ValueId index = g_[r].index; index && (support_[index.index] & (support_[index.index] - 1)) != 0)
      support |= support_[index.index];
  // Everything that the values are computed from, in the order of the kernel.
  std::vector<bool> is_needed(g_.values.size());
  const auto need = [&](ValueId v) { is_needed[v.index] = true; };
  for (ValueId v : values) need(v);
  std::vector<Item> items;
  for (size_t i = order_.size(); i-- > 0;) {
    const Item item = order_[i];
    if (item.is_variable) {
      if ((support >> item.index & 1) == 0) continue;
      for (ValueId bound : g_[opener_[variables_[item.index].loop.index]].operands) need(bound);
    } else {
      if (!is_needed[g_.ops[item.index].results[0].index]) continue;
      for (ValueId v : g_.ops[item.index].operands) need(v);
    }
    items.push_back(item);
  }
  for (uint32_t p = 6; p-- > 0;)
    if (support >> p & 1) items.push_back({true, p});
  std::reverse(items.begin(), items.end());

  std::vector<int64_t> at(g_.values.size());
  for (size_t i = 0; i < at.size(); ++i)
    if (is_known_[i]) at[i] = rows_[i][0];
  int64_t steps = 0;
  std::vector<int64_t> asked(values.size());
  const std::function<bool(size_t)> run = [&](size_t k) {
    if (++steps > kMostSteps) return true;
    if (k == items.size()) {
      for (size_t i = 0; i < values.size(); ++i) asked[i] = at[values[i].index];
      return law(asked);
    }
    if (!items[k].is_variable) {
      const Op& op = g_.ops[items[k].index];
      const size_t count = op.operands.size();
      const auto operand = [&](size_t i) { return at[op.operands[i < count ? i : 0].index]; };
      with_function(op.kind, [&](auto f) { at[op.results[0].index] = f(operand(0), operand(1), operand(2)); });
      return run(k + 1);
    }
    const Variable& variable = variables_[items[k].index];
    int64_t start = 0, stop = launch_[static_cast<size_t>(variable.dimension)], step = 1;
    if (variable.loop) {
      const auto& bounds = g_[opener_[variable.loop.index]].operands;
      start = at[bounds[0].index], stop = at[bounds[1].index], step = at[bounds[2].index];
    }
    for (int64_t n = start; n < stop && step > 0 && steps <= kMostSteps; n += step) {
      for (ValueId v : variable.values) at[v.index] = n;
      if (!run(k + 1)) return false;
    }
    return true;
  };
  const int turns = (support & kOpen) != 0 ? 12 : 1;
  for (int turn = 0; turn < turns; ++turn) {
    for (OpId id : g_[Graph::body()].ops)
      if (const Op& op = g_[id]; op.kind == OpKind::kInput && is_known_[op.results[0].index])
        at[op.results[0].index] = parameter(op.results[0], turn);
    if (!run(0)) return false;
  }
  return steps > kMostSteps ? std::nullopt : std::optional(true);
}

}  // namespace fusebox::fuzz
