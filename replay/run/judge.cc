#include "replay/run/judge.h"

#include <algorithm>

#include "ir/infer/is_library.h"
#include "ir/scalar/numeric.h"
#include "ir/table/op.h"

namespace fusebox {

bool is_size_refusal(ErrorCode code) { return code == ErrorCode::kSizeMismatch || code == ErrorCode::kBadAlias; }

bool is_launch_refusal(ErrorCode code) {
  switch (code) {
    case ErrorCode::kLaunchLimit:
    case ErrorCode::kStepLimit:
    case ErrorCode::kUnalignedVector:
    case ErrorCode::kModuleMissing:
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kIndexOutOfRange:
    case ErrorCode::kScalarOverflow:
    case ErrorCode::kAssumptionFailed:
      return true;
    default:  // any other: a fault of the program or of ours, which no launch may hide
      return false;
  }
}

bool is_order_free(const Graph& g) {
  return std::none_of(g.ops.begin(), g.ops.end(), [&](const Op& op) {
    // ATen may add in another order if its operands lie otherwise in memory.
    if (!demands(op.kind, kReduction) && !is_library(g, op)) return false;
    const Dtype d = g[op.results[0]].dtype;
    return !is_integer(d) && !is_boolean(d);
  });
}

TensorData as_tensor(const Argument& a) {
  if (!a.is_scalar) return a.tensor;
  TensorData t = allocate_tensor(a.dtype, {});
  store_element(t, 0, a.bits);
  return t;
}

bool has_same_layout(const TensorData& x, const TensorData& y) {
  if (x.shape != y.shape) return false;
  if (element_count(x.shape) == 0) return true;
  for (size_t axis = 0; axis < x.shape.size(); ++axis)
    if (x.shape[axis] > 1 && x.strides[axis] != y.strides[axis]) return false;
  return true;
}

std::optional<int64_t> first_difference(const TensorData& a, const TensorData& b) {
  const TensorData x = contiguous_copy(a), y = contiguous_copy(b);
  if (x.dtype != y.dtype || x.shape != y.shape) return -1;
  if (is_complex(x.dtype) || digest(x) == digest(y)) return std::nullopt;
  const auto is_nan = [&](ConstantBits bits) {
    return is_floating(x.dtype) && to_double(x.dtype, bits) != to_double(x.dtype, bits);
  };
  for (int64_t i = 0; i < element_count(x.shape); ++i) {
    const ConstantBits m = load_element(x, x.offset + i), n = load_element(y, y.offset + i);
    if (m != n && !(is_nan(m) && is_nan(n))) return i;
  }
  return std::nullopt;
}

std::string place_class(const Graph& g, std::string_view place) {
  if (!place.empty() && place[0] == '%') {
    const size_t end = place.find_first_of(".[ ");
    if (const auto v = find_value(g, place.substr(1, end == std::string_view::npos ? end : end - 1)))
      return g[*v].def ? std::string(row_of(g[g[*v].def].kind).text) : "size";
  }
  std::string result;
  for (char c : place)
    if (c < '0' || c > '9') result += c;
  return result;
}

}  // namespace fusebox
