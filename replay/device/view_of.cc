#include <algorithm>
#include <optional>

#include "ir/table/error.h"
#include "replay/device/device.h"

namespace fusebox {
namespace {

// The elements from the first one to behind the last one; nothing for a negative number, or if they leave 64 bits.
std::optional<int64_t> elements_between(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t last = 0;
  bool is_empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach = 0;
    if (shape[i] < 0 || strides[i] < 0) return std::nullopt;
    is_empty |= shape[i] == 0;
    if (shape[i] > 0 &&
        (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last)))
      return std::nullopt;
  }
  if (is_empty) return 0;
  return __builtin_add_overflow(last, int64_t{1}, &last) ? std::nullopt : std::optional(last);
}

}  // namespace

bool lies_within(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t first,
                 const TensorLayout& base) {
  const auto wanted = elements_between(shape, strides), given = elements_between(base.shape, base.strides);
  return wanted && given && first >= 0 && first <= *given && *wanted <= *given - first;
}

RunTensor view_of(const RunTensor& base, std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t first,
                  const std::string& place) {
  if (std::ranges::count(shape, 0) > 0) first = 0;
  if (!lies_within(shape, strides, first, {base.layout.shape, base.layout.strides}))
    throw Error(ErrorCode::kInvalidGraph, "a view reaches beyond the tensor in whose memory it lies", place);
  RunTensor t = base;
  const int64_t count = span_elems(shape, strides);
  t.layout.shape = std::move(shape);
  t.layout.strides = std::move(strides);
  if (t.layout.storage) t.layout.offset += first;
  t.layout.storage_elems = t.layout.offset + count;
  t.before += first * size_bytes(t.layout.dtype);
  if (t.pointer != 0) t.pointer += static_cast<CudaPointer>(first * size_bytes(t.layout.dtype));
  return t;
}

}  // namespace fusebox
