#include "fuzz/focus_situations.h"

#include "fuzz/generate_fusion.h"
#include "ir/type_rule.h"

namespace fusebox::fuzz {
namespace {

// Prime, and no divisor of any list's length.
constexpr uint64_t kStride = 7919;

bool is_pointwise(OpKind kind, size_t least, size_t most) {
  const size_t operands = row_of(kind).format->all().size();
  return demands(kind, kPointwise) && kind != OpKind::kCast && operands >= least && operands <= most;
}

// Ops that round, change signs or leave some of their operands as they are: rewrites look for pairs of these.
const std::vector<UnaryFocus>& unary_list() {
  static const std::vector<UnaryFocus> list = [] {
    constexpr OpKind kKinds[] = {OpKind::kNeg,  OpKind::kAbs,   OpKind::kRelu,       OpKind::kSign,
                                 OpKind::kCeil, OpKind::kFloor, OpKind::kRound,      OpKind::kTrunc,
                                 OpKind::kFrac, OpKind::kReal,  OpKind::kBitwiseNot, OpKind::kLogicalNot,
                                 OpKind::kSqrt, OpKind::kSet,   OpKind::kReciprocal};
    std::vector<UnaryFocus> all;
    for (const DtypeRow& d : dtype_rows())
      for (OpKind outer : kKinds)
        for (OpKind inner : kKinds)
          if (d.dtype != Dtype::kIndex && !is_storage_only(d.dtype) && accepts_dtype(outer, d.dtype) &&
              accepts_dtype(inner, d.dtype))
            all.push_back({outer, inner, d.dtype});
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
          all.push_back({kind, d.dtype});
    return all;
  }();
  return list;
}

// The op on two equal sizes half of the time, on other scalars else.
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

// Groups of threads that are whole warps only together, and such as are none.
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

template <class T>
const T& at(const std::vector<T>& list, uint64_t i) {
  return list[i * kStride % list.size()];
}

}  // namespace

const std::vector<ScalarFocus>& scalar_list() {
  static const std::vector<ScalarFocus> list = [] {
    std::vector<ScalarFocus> all;
    for (OpKind kind : generated_ops())
      for (const DtypeRow& tensor : dtype_rows())
        for (const DtypeRow& scalar : dtype_rows())
          if (is_pointwise(kind, 2, 3) && tensor.dtype != Dtype::kIndex && !is_storage_only(tensor.dtype) &&
              accepts_dtype(kind, tensor.dtype) && !is_storage_only(scalar.dtype))
            all.push_back({kind, tensor.dtype, scalar.dtype});
    return all;
  }();
  return list;
}

void aim_situation(uint64_t number, Focus& focus) {
  constexpr uint64_t kOfACase = 4;
  constexpr ParallelType kLoops[] = {ParallelType::kUnroll, ParallelType::kUnswitch, ParallelType::kSerial};
  const uint64_t turn = number / 8;
  switch (number % 8) {
    case 0:
    case 4:
      for (uint64_t i = 0; i < kOfACase; ++i) focus.scalars.push_back(at(scalar_list(), (number / 4) * kOfACase + i));
      return;
    case 1:
      for (uint64_t i = 0; i < kOfACase; ++i) focus.unaries.push_back(at(unary_list(), turn * kOfACase + i));
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
        for (uint64_t i = 0; i < 2; ++i) focus.integer_pairs.push_back(at(integer_pair_list(), turn / 2 + i));
      else
        focus.segments = 3 + turn / 2 % 3;
  }
}

}  // namespace fusebox::fuzz
