#include "fuzz/focus.h"

#include "fuzz/generate_fusion.h"
#include "ir/type_rule.h"

namespace fusebox::fuzz {
namespace {

constexpr uint64_t kOpsOfACase = 2;
// Ops that stand beside each other in the table are not made in one case. Prime, and no divisor of the table's length.
constexpr uint64_t kStride = 7919;

const std::vector<OpFocus>& op_list() {
  static const std::vector<OpFocus> list = [] {
    std::vector<OpFocus> all;
    for (OpKind kind : generated_ops())
      for (const DtypeRow& d : dtype_rows())
        if (d.dtype != Dtype::kIndex && accepts_dtype(kind, d.dtype)) all.push_back({kind, d.dtype});
    return all;
  }();
  return list;
}

// Casts that round or cut off on the way: each integer through each float, and back to each integer.
const std::vector<CastFocus>& cast_list() {
  static const std::vector<CastFocus> list = [] {
    std::vector<Dtype> integers, floats;
    for (const DtypeRow& d : dtype_rows()) {
      if (d.dtype == Dtype::kIndex || is_storage_only(d.dtype)) continue;
      if (is_integer(d.dtype)) integers.push_back(d.dtype);
      if (is_floating(d.dtype)) floats.push_back(d.dtype);
    }
    std::vector<CastFocus> all;
    for (Dtype through : floats)
      for (Dtype from : integers)
        for (Dtype to : integers) all.push_back({from, through, to});
    return all;
  }();
  return list;
}

// An xor permutes its domains where the second is a power of two, and no shorter than the first.
constexpr SwizzleFocus kSwizzles[] = {
    {SwizzleType::kXor, 2, 4},    {SwizzleType::kXor, 3, 4},    {SwizzleType::kXor, 2, 8},
    {SwizzleType::kXor, 5, 8},    {SwizzleType::kXor, 4, 4},    {SwizzleType::kCyclic, 2, 3},
    {SwizzleType::kCyclic, 3, 2}, {SwizzleType::kCyclic, 4, 3}, {SwizzleType::kCyclic, 3, 3}};

constexpr InPlaceFocus kInPlace[] = {
    {.in_vectors = true, .width = 2, .offset = 0}, {.in_vectors = true, .width = 2, .offset = 1},
    {.in_vectors = true, .width = 4, .offset = 2}, {.in_segments = true},
    {.in_vectors = true, .width = 4, .offset = 1}, {.offset = 3, .in_segments = true},
    {.in_vectors = true, .width = 8, .offset = 4}, {.in_vectors = true, .width = 4, .offset = 0, .in_segments = true}};

void aim_schedule(uint64_t round, Focus& focus) {
  const size_t kinds = enum_texts<TransformKind>().size();
  const uint64_t turn = round / 3;
  switch (round % 3) {
    case 0:
      focus.swizzle = kSwizzles[turn % std::size(kSwizzles)];
      return;
    case 1:
      focus.transforms =
          TransformFocus{static_cast<TransformKind>(turn % kinds), static_cast<TransformKind>(turn / kinds % kinds)};
      return;
    default:
      focus.in_place = kInPlace[turn % std::size(kInPlace)];
  }
}

}  // namespace

Focus focus_of(uint64_t seed) {
  Focus focus;
  const uint64_t round = seed / 4;
  if (seed % 4 == 1) {
    const auto& ops = op_list();
    for (uint64_t i = 0; i < kOpsOfACase; ++i)
      focus.ops.push_back(ops[(round * kOpsOfACase + i) * kStride % ops.size()]);
    focus.casts = cast_list()[round * kStride % cast_list().size()];
  } else if (seed % 4 == 3) {
    aim_schedule(round, focus);
  }
  return focus;
}

}  // namespace fusebox::fuzz
