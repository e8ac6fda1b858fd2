#include "fuzz/planted/plants.h"

#include <vector>

#include "ir/table/families.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

// ROW(name, text, weight): the changes of a kernel.
#define FUSEBOX_CHANGES(ROW)                     \
  ROW(kNoBarrier, "no barrier", 5)               \
  ROW(kBarrierElsewhere, "barrier elsewhere", 2) \
  ROW(kNoStore, "no store", 3)                   \
  ROW(kConditionTrue, "condition true", 3)       \
  ROW(kOtherPlace, "other place", 3)             \
  ROW(kNextPlace, "next place", 2)               \
  ROW(kLongerLoop, "longer loop", 1)
#define FUSEBOX_CHANGE_NAME(name, text, weight) name,
#define FUSEBOX_CHANGE_TEXT(name, text, weight) text,
#define FUSEBOX_CHANGE_WEIGHT(name, text, weight) weight,
enum class Change { FUSEBOX_CHANGES(FUSEBOX_CHANGE_NAME) };
constexpr std::string_view kTexts[] = {FUSEBOX_CHANGES(FUSEBOX_CHANGE_TEXT)};
constexpr uint32_t kWeights[] = {FUSEBOX_CHANGES(FUSEBOX_CHANGE_WEIGHT)};
#undef FUSEBOX_CHANGE_NAME
#undef FUSEBOX_CHANGE_TEXT
#undef FUSEBOX_CHANGE_WEIGHT
#undef FUSEBOX_CHANGES

struct Place {
  RegionId region;
  size_t at = 0;  // in its ops
};

bool is_barrier(const Op& op) { return op.kind == OpKind::kBarrier || op.kind == OpKind::kGridBarrier; }
bool is_store(const Op& op) { return op.kind == OpKind::kStore || op.kind == OpKind::kCopy; }

// The operands that give the place that an op reads, stores or checks.
std::vector<size_t> indices_of(const Op& op) {
  switch (op.kind) {
    case OpKind::kLoad:
    case OpKind::kStore:
      return {1};
    case OpKind::kCopy:
      return {1, 3};
    case OpKind::kWithin:
      return {0};
    case OpKind::kFor:
    case OpKind::kIf:
    case OpKind::kAllocate:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_COORDINATE_OPS:
    case FUSEBOX_BARRIER_OPS:
    case FUSEBOX_EXCHANGE_OPS:
    case OpKind::kWelfordCombine:
    case FUSEBOX_TENSOR_OPS:
    case FUSEBOX_STRUCTURE_OPS:
    case FUSEBOX_HOST_OPS:
    case FUSEBOX_FACT_OPS:
    case OpKind::kPreparedDiv:
    case OpKind::kPhilox:
      break;
  }
  return {};
}

// The operand that is the condition of an `if`, an access or a conjunction; −1 if there is none.
int condition_of(const Graph& g, const Op& op) {
  const auto given = [&](size_t k) { return k < op.operands.size() && op.operands[k] ? static_cast<int>(k) : -1; };
  switch (op.kind) {
    case OpKind::kIf:
      return given(0);
    case OpKind::kLoad:
      return given(2);
    case OpKind::kStore:
      return given(3);
    case OpKind::kCopy:
      return given(4);
    case OpKind::kLogicalAnd:
    case OpKind::kBitwiseAnd:
      return g[op.results[0]].dtype == Dtype::kBool ? 0 : -1;
    default:  // any other: has no condition, or none that may be taken away
      return -1;
  }
}

// Adds a constant to an index, in a new op before the given one.
ValueId added(Graph& g, OpId before, ValueId index, int64_t by) {
  Op add;
  add.kind = OpKind::kAdd;
  add.operands = {index, constant_index(g, by)};
  add.results = {add_scalar(g, Dtype::kIndex, "")};
  const ValueId sum = add.results[0];
  insert_before(g, before, std::move(add));
  return sum;
}

template <class Wanted>
std::vector<Place> places(const Graph& g, Wanted&& is_wanted) {
  std::vector<Place> result;
  for (size_t r = 0; r < g.regions.size(); ++r)
    for (size_t k = 0; k < g.regions[r].ops.size(); ++k)
      if (is_wanted(g[g.regions[r].ops[k]])) result.push_back({RegionId(r), k});
  return result;
}

// Returns false if the kernel has no place for the change.
bool apply_change(RandomSource& random, Graph& g, Change change) {
  const auto draw = [&](auto&& is_wanted) -> std::optional<Place> {
    const auto all = places(g, is_wanted);
    return all.empty() ? std::nullopt : std::optional(random.pick(all));
  };
  const auto erase = [&](const Place& p) {
    auto& ops = g[p.region].ops;
    const OpId id = ops[p.at];
    ops.erase(ops.begin() + static_cast<ptrdiff_t>(p.at));
    return id;
  };
  const auto has_index = [](const Op& op) { return !indices_of(op).empty(); };
  switch (change) {
    case Change::kNoBarrier:
      if (const auto p = draw(is_barrier)) return erase(*p), true;
      return false;
    case Change::kBarrierElsewhere: {
      const auto p = draw(is_barrier);
      if (!p) return false;
      const OpId id = erase(*p);
      const auto to = draw([](const Op& op) { return op.kind != OpKind::kInput; });
      if (!to) return false;
      auto& ops = g[to->region].ops;
      ops.insert(ops.begin() + static_cast<ptrdiff_t>(to->at + random.below(2)), id);
      return true;
    }
    case Change::kNoStore:
      if (const auto p = draw(is_store)) return erase(*p), true;
      return false;
    case Change::kConditionTrue: {
      const auto p = draw([&](const Op& op) { return condition_of(g, op) >= 0; });
      if (!p) return false;
      const ValueId always = constant(g, Dtype::kBool, {1, 0});
      Op& op = g[g[p->region].ops[p->at]];
      size_t operand = static_cast<size_t>(condition_of(g, op));
      if (op.kind == OpKind::kLogicalAnd || op.kind == OpKind::kBitwiseAnd) operand = random.below(2);
      op.operands[operand] = always;
      return true;
    }
    case Change::kOtherPlace: {
      const auto p = draw(has_index), from = draw(has_index);
      if (!p || !from) return false;
      const Op& other = g[g[from->region].ops[from->at]];
      ValueId index = other.operands[random.pick(indices_of(other))];
      if (random.one_in(4)) index = constant_index(g, 0);
      Op& op = g[g[p->region].ops[p->at]];
      op.operands[random.pick(indices_of(op))] = index;
      return true;
    }
    case Change::kNextPlace: {
      const auto p = draw(has_index);
      if (!p) return false;
      const OpId id = g[p->region].ops[p->at];
      const size_t operand = random.pick(indices_of(g[id]));
      const ValueId index = g[id].operands[operand];
      if (g[index].dtype != Dtype::kIndex) return false;
      const ValueId next = added(g, id, index, random.one_in(2) ? 1 : -1);
      g[id].operands[operand] = next;
      return true;
    }
    case Change::kLongerLoop: {
      const auto p = draw([](const Op& op) { return op.kind == OpKind::kFor; });
      if (!p) return false;
      const OpId id = g[p->region].ops[p->at];
      const ValueId stop = added(g, id, g[id].operands[1], 1);
      g[id].operands[1] = stop;
      return true;
    }
  }
  return false;
}

std::string_view name_of(Change change) { return kTexts[static_cast<size_t>(change)]; }

}  // namespace

std::string_view plant(RandomSource& random, Graph& kernel) {
  constexpr int kTries = 6;
  for (int i = 0; i < kTries; ++i) {
    Graph changed = kernel;
    const auto change = static_cast<Change>(random.weighted(kWeights));
    if (!apply_change(random, changed, change) || find_error(changed) || changed == kernel) continue;
    kernel = std::move(changed);
    return name_of(change);
  }
  return {};
}

}  // namespace fusebox::fuzz
