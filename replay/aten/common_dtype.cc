#include "replay/aten/common_dtype.h"

#include <ATen/ATen.h>
#include <ATen/native/TypeProperties.h>
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/table/dtype.h"
#include "ir/table/type_rule.h"
#include "replay/aten/scalar_type.h"

namespace fusebox::aten {
namespace {

// The dtypes that ATen promotes. ATen only stores unsigned integers of more than 8 bits.
constexpr Dtype kPromoted[] = {Dtype::kBool,  Dtype::kInt8,   Dtype::kInt16,        Dtype::kInt32,
                               Dtype::kInt64, Dtype::kUint8,  Dtype::kHalf,         Dtype::kBfloat16,
                               Dtype::kFloat, Dtype::kDouble, Dtype::kComplexFloat, Dtype::kComplexDouble};

// Null if ATen does not promote the dtype.
const Dtype* promoted_by_aten(Dtype dtype) {
  const Dtype wanted = dtype == Dtype::kIndex ? Dtype::kInt64 : dtype;
  const auto* found = std::ranges::find(kPromoted, wanted);
  return found == std::end(kPromoted) ? nullptr : found;
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
    for (const Dtype d : kPromoted) {
      all.push_back(at::empty({1}, scalar_type(d)));
      all.push_back(at::empty({}, scalar_type(d)));
    }
    return all;
  }();
  at::native::ResultTypeState state;
  bool all_promoted = true;
  for (size_t i = 0; i < dtypes.size() && all_promoted; ++i) {
    const Dtype* row = promoted_by_aten(dtypes[i]);
    all_promoted = row != nullptr;
    if (row)
      state = at::native::update_result_type_state(
          asked[static_cast<size_t>(row - kPromoted) * 2 + (is_tensor[i] ? 0 : 1)], state);
  }
  if (all_promoted) {
    const at::ScalarType met = at::native::result_type(state);
    // Fusebox has no complex dtype of f16 parts.
    if (met == at::kComplexHalf) return Dtype::kComplexFloat;
    for (const Dtype d : kPromoted)
      if (scalar_type(d) == met) return d;
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
