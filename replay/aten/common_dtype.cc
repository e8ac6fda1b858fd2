#include "replay/aten/common_dtype.h"

#include <ATen/ATen.h>
#include <ATen/native/TypeProperties.h>
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/table/dtype.h"
#include "ir/table/type_rule.h"

namespace fusebox::aten {
namespace {

struct AtenDtype {
  at::ScalarType type;
  Dtype dtype;
};
// The dtypes that ATen promotes. ATen only stores unsigned integers of more than 8 bits.
constexpr AtenDtype kPromoted[] = {
    {at::kBool, Dtype::kBool},
    {at::kChar, Dtype::kInt8},
    {at::kShort, Dtype::kInt16},
    {at::kInt, Dtype::kInt32},
    {at::kLong, Dtype::kInt64},
    {at::kByte, Dtype::kUint8},
    {at::kHalf, Dtype::kHalf},
    {at::kBFloat16, Dtype::kBfloat16},
    {at::kFloat, Dtype::kFloat},
    {at::kDouble, Dtype::kDouble},
    {at::kComplexFloat, Dtype::kComplexFloat},
    {at::kComplexDouble, Dtype::kComplexDouble},
};

const AtenDtype* promoted_by_aten(Dtype dtype) {
  const Dtype wanted = dtype == Dtype::kIndex ? Dtype::kInt64 : dtype;
  const auto* row =
      std::find_if(std::begin(kPromoted), std::end(kPromoted), [&](const AtenDtype& r) { return r.dtype == wanted; });
  return row == std::end(kPromoted) ? nullptr : row;
}

// The common dtype if ATen has no rule: the widest of the highest class; u64 wins over signed integers.
Dtype widest(Dtype a, Dtype b) {
  const bool mixed = (a == Dtype::kUint64 && is_signed(b)) || (b == Dtype::kUint64 && is_signed(a));
  return mixed && is_integer(a) && is_integer(b) ? Dtype::kUint64 : promote(a, b);
}

}  // namespace

Dtype common_dtype_by_aten(std::span<const Dtype> dtypes, std::span<const bool> is_tensor) {
  static const std::vector<at::Tensor> asked = [] {
    std::vector<at::Tensor> all;
    for (const AtenDtype& row : kPromoted) {
      all.push_back(at::empty({1}, row.type));
      all.push_back(at::empty({}, row.type));
    }
    return all;
  }();
  at::native::ResultTypeState state;
  bool all_promoted = true;
  for (size_t i = 0; i < dtypes.size() && all_promoted; ++i) {
    const AtenDtype* row = promoted_by_aten(dtypes[i]);
    all_promoted = row != nullptr;
    if (row)
      state = at::native::update_result_type_state(
          asked[static_cast<size_t>(row - kPromoted) * 2 + (is_tensor[i] ? 0 : 1)], state);
  }
  if (all_promoted) {
    const at::ScalarType met = at::native::result_type(state);
    // Fusebox has no complex dtype of f16 parts.
    if (met == at::kComplexHalf) return Dtype::kComplexFloat;
    for (const AtenDtype& row : kPromoted)
      if (row.type == met) return row.dtype;
  }
  std::optional<Dtype> tensors, scalars;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    std::optional<Dtype>& side = is_tensor[i] ? tensors : scalars;
    side = side ? widest(*side, dtypes[i]) : dtypes[i];
  }
  if (!tensors || !scalars) return tensors ? *tensors : *scalars;
  const auto rank = [](Dtype d) { return is_boolean(d) ? 0 : is_integer(d) ? 1 : is_floating(d) ? 2 : 3; };
  if (rank(*scalars) <= rank(*tensors)) return *tensors;
  // A complex scalar takes the width of the floats that it meets.
  if (is_complex(*scalars) && is_floating(*tensors)) return widest(*tensors, Dtype::kComplexFloat);
  return widest(*tensors, *scalars);
}

}  // namespace fusebox::aten
