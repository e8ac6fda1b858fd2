#include "fuzz/generate/focus_situations.h"

#include <algorithm>
#include <optional>

#include "fuzz/generate/generate_fusion.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

// Prime, and no divisor of any list's length.
constexpr uint64_t kStride = 7919;

bool is_no_tensor(Dtype dtype) { return dtype == Dtype::kIndex || is_storage_only(dtype); }

bool is_pointwise(OpKind kind, size_t least, size_t most) {
  const size_t operands = row_of(kind).format->all().size();
  return demands(kind, kPointwise) && kind != OpKind::kCast && kind != OpKind::kIota && operands >= least &&
         operands <= most;
}

// Ops that round, change signs or sometimes return their operand. Rewrites look for pairs of them.
const std::vector<UnaryFocus>& unary_list() {
  static const std::vector<UnaryFocus> list = [] {
    constexpr OpKind kKinds[] = {OpKind::kNeg,        OpKind::kAbs,       OpKind::kRelu,  OpKind::kSign,
                                 OpKind::kCeil,       OpKind::kFloor,     OpKind::kRound, OpKind::kTrunc,
                                 OpKind::kBitwiseNot, OpKind::kLogicalNot};
    constexpr size_t kOfSigns = 4;
    std::vector<UnaryFocus> all;
    for (const DtypeRow& d : dtype_rows())
      for (size_t outer = 0; outer < std::size(kKinds); ++outer)
        for (size_t inner = 0; inner < std::size(kKinds); ++inner) {
          if (is_no_tensor(d.dtype) || !accepts_dtype(kKinds[outer], d.dtype) || !accepts_dtype(kKinds[inner], d.dtype))
            continue;
          // The least integer has no negative, so these pairs may wrap. They get more turns.
          const bool may_wrap = is_integer(d.dtype) && is_signed(d.dtype) && outer < kOfSigns && inner < kOfSigns;
          for (int times = may_wrap ? 4 : 1; times > 0; --times) all.push_back({kKinds[outer], kKinds[inner], d.dtype});
        }
    return all;
  }();
  return list;
}

const std::vector<OpFocus>& integer_pair_list() {
  static const std::vector<OpFocus> list = [] {
    std::vector<OpFocus> all;
    for (OpKind kind : generated_ops())
      for (const DtypeRow& d : dtype_rows())
        if (d.dtype != Dtype::kIndex && is_integer(d.dtype) && is_pointwise(kind, 2, 2) && accepts_dtype(kind, d.dtype))
          // A power has more branches than other ops, by the signs, parities and sizes of both operands.
          for (int times = kind == OpKind::kPow ? 12 : 1; times > 0; --times) all.push_back({kind, d.dtype});
    return all;
  }();
  return list;
}

// Half of the entries apply the op to two equal sizes, the others to scalars of another dtype.
const std::vector<OpFocus>& equal_scalar_list() {
  static const std::vector<OpFocus> list = [] {
    std::vector<OpFocus> all;
    for (OpKind kind : generated_ops())
      for (const DtypeRow& d : dtype_rows()) {
        if (!is_pointwise(kind, 2, 3) || is_storage_only(d.dtype) || !accepts_dtype(kind, d.dtype)) continue;
        if (d.dtype != Dtype::kIndex) all.push_back({kind, d.dtype});
        all.push_back({kind, Dtype::kIndex});
      }
    return all;
  }();
  return list;
}

// Groups of threads that fill whole warps only together, and groups that do not.
const std::vector<BlockFocus>& block_list() {
  static const std::vector<BlockFocus> list = [] {
    constexpr ParallelType kX = ParallelType::kBlockX, kY = ParallelType::kBlockY, kZ = ParallelType::kBlockZ;
    constexpr std::array<int64_t, 3> kExtents[] = {{8, 2, 4},  {16, 3, 2}, {4, 5, 8}, {2, 4, 16},
                                                   {32, 2, 3}, {5, 3, 7},  {3, 2, 33}};
    constexpr std::array<ParallelType, 3> kTypes[] = {{kX, kY, kZ},
                                                      {kX, kZ, kY},
                                                      {kY, kX, kZ},
                                                      {kY, kZ, kX},
                                                      {kZ, kX, kY},
                                                      {kZ, kY, kX},
                                                      {kX, ParallelType::kGridX, kZ}};
    constexpr std::array<bool, 3> kReduced[] = {{true, false, true},  {true, true, false}, {false, true, true},
                                                {true, false, false}, {true, false, true}, {true, true, true}};
    std::vector<BlockFocus> all;
    for (const auto& extents : kExtents)
      for (const auto& types : kTypes)
        for (const auto& reduced : kReduced) all.push_back({extents, types, reduced});
    return all;
  }();
  return list;
}

int rank_of_class(Dtype dtype) { return is_boolean(dtype) ? 0 : is_integer(dtype) ? 1 : is_floating(dtype) ? 2 : 3; }

// The result's dtype for each pair of dtypes; empty if the op refuses the pair.
std::vector<std::optional<Dtype>> results_of(OpKind kind) {
  std::vector<std::optional<Dtype>> all;
  for (const DtypeRow& tensor : dtype_rows())
    for (const DtypeRow& scalar : dtype_rows()) {
      std::vector<OperandType> operands(row_of(kind).format->all().size(), {tensor.dtype});
      operands.back() = {scalar.dtype, true};
      if (kind == OpKind::kWhere) operands[0] = {Dtype::kBool};
      try {
        all.push_back(result_dtype(kind, operands));
      } catch (const Error&) {
        all.emplace_back();
      }
    }
  return all;
}

// Ops of two and three operands, grouped by their rule for the result's dtype.
std::vector<std::vector<OpKind>> op_categories() {
  std::vector<std::vector<OpKind>> categories;
  std::vector<std::vector<std::optional<Dtype>>> rules;
  for (OpKind kind : generated_ops()) {
    if (!is_pointwise(kind, 2, 3)) continue;
    const auto rule = results_of(kind);
    const auto found = std::find(rules.begin(), rules.end(), rule);
    if (found != rules.end()) {
      categories[static_cast<size_t>(found - rules.begin())].push_back(kind);
      continue;
    }
    rules.push_back(rule);
    categories.push_back({kind});
  }
  return categories;
}

template <class T>
const T& at(const std::vector<T>& list, uint64_t i) {
  return list[i * kStride % list.size()];
}

}  // namespace

// Ops with the same dtype rule take turns, so that one stands for all.
const std::vector<ScalarFocus>& scalar_list() {
  static const std::vector<ScalarFocus> list = [] {
    std::vector<ScalarFocus> all;
    for (const std::vector<OpKind>& kinds : op_categories()) {
      const auto results = results_of(kinds[0]);
      size_t next = 0, pair = 0;
      for (const DtypeRow& tensor : dtype_rows())
        for (const DtypeRow& scalar : dtype_rows()) {
          const bool is_refused = !results[pair++];
          if (is_refused || is_no_tensor(tensor.dtype) || is_storage_only(scalar.dtype)) continue;
          // A scalar of a higher class changes the dtype of the computation.
          const int times = rank_of_class(scalar.dtype) > rank_of_class(tensor.dtype) ? 8 : 1;
          for (int i = 0; i < times; ++i) all.push_back({kinds[next++ % kinds.size()], tensor.dtype, scalar.dtype});
        }
    }
    return all;
  }();
  return list;
}

void aim_situation(uint64_t number, Focus& focus) {
  constexpr uint64_t kOfACase = 4, kPairs = 8;
  constexpr ParallelType kLoops[] = {ParallelType::kUnroll, ParallelType::kUnswitch, ParallelType::kSerial};
  const uint64_t turn = number / 8;
  switch (number % 8) {
    case 0:
    case 4:
      for (uint64_t i = 0; i < kPairs; ++i) focus.scalars.push_back(at(scalar_list(), (number / 4) * kPairs + i));
      return;
    case 1:
      for (uint64_t i = 0; i < kPairs; ++i) focus.unaries.push_back(at(unary_list(), turn * kPairs + i));
      focus.rewrite = "identity_ops";
      return;
    case 2:
      for (uint64_t i = 0; i < kOfACase; ++i)
        focus.equal_scalars.push_back(at(equal_scalar_list(), turn * kOfACase + i));
      focus.rewrite = "fold_constants";
      return;
    case 3:
      focus.computed_sizes = true;
      return;
    case 5:
      focus.block = at(block_list(), turn);
      return;
    case 6:
      focus.shared_in = kLoops[turn % std::size(kLoops)];
      return;
    default:
      if (turn % 4 == 0)
        focus.near_constants = true;
      else if (turn % 4 == 2)
        for (uint64_t i = 0; i < kOfACase; ++i)
          focus.integer_pairs.push_back(at(integer_pair_list(), turn / 4 * kOfACase + i));
      else
        focus.segments = 3 + turn / 2 % 3;
  }
}

}  // namespace fusebox::fuzz
