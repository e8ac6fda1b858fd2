#include "replay/device/overlap.h"

#include <vector>

#include "codegen/cuda.h"

namespace fusebox {
namespace {

// The bytes from the first element to the last. None for a tensor without elements.
ByteRange bytes_of(const RunTensor& t) {
  const uint64_t first = t.pointer ? t.pointer : reinterpret_cast<uintptr_t>(t.layout.data());
  return {first,
          first + static_cast<uint64_t>(span_elems(t.layout.shape, t.layout.strides) * size_bytes(t.layout.dtype))};
}

// The elements of a tensor as windows: each has the span of all axes but the outermost, whose stride is the distance of two.
struct Windows {
  int64_t step = 0, span = 1;
};
Windows windows_of(const TensorData& t) {
  size_t outer = t.shape.size();
  for (size_t i = 0; i < t.shape.size(); ++i)
    if (t.shape[i] > 1 && (outer == t.shape.size() || t.strides[i] > t.strides[outer])) outer = i;
  Windows result;
  for (size_t i = 0; i < t.shape.size(); ++i)
    if (i != outer) result.span += (t.shape[i] - 1) * t.strides[i];
  if (outer < t.shape.size()) result.step = t.strides[outer];
  return result;
}

// Whether a tensor has an element at each place of its span.
bool is_dense(const TensorData& t) {
  return !overlaps(t.shape, t.strides) && span_elems(t.shape, t.strides) == element_count(t.shape);
}

}  // namespace

bool may_meet(const RunTensor& a, const RunTensor& b) {
  const ByteRange x = bytes_of(a), y = bytes_of(b);
  if (x.begin == x.end || y.begin == y.end || !share_bytes(x, y)) return false;
  const auto bytes = static_cast<int64_t>(size_bytes(a.layout.dtype));
  const auto ahead = static_cast<int64_t>(y.begin) - static_cast<int64_t>(x.begin);
  const Windows v = windows_of(a.layout), w = windows_of(b.layout);
  if (bytes != static_cast<int64_t>(size_bytes(b.layout.dtype)) || ahead % bytes != 0) return true;
  if (v.step == 0 || v.step != w.step || v.span > v.step || w.span > w.step) return true;
  const int64_t at = ((ahead / bytes) % v.step + v.step) % v.step;
  return at < v.span || at + w.span > v.step;
}

bool surely_meet(const RunTensor& a, const RunTensor& b) {
  const ByteRange x = bytes_of(a), y = bytes_of(b);
  if (x.begin == x.end || y.begin == y.end || !share_bytes(x, y)) return false;
  return x.begin == y.begin || (is_dense(a.layout) && is_dense(b.layout));
}

bool reads_apart(const Graph& kernel, std::span<const RunArgument> arguments) {
  const std::set<ValueId> stored = stored_buffers(kernel);
  const std::vector<ValueId> parameters = inputs(kernel);
  std::vector<ByteRange> read_only, written;
  for (size_t i = 0; i < parameters.size() && i < arguments.size(); ++i)
    if (!arguments[i].is_scalar)
      (stored.contains(parameters[i]) ? written : read_only).push_back(bytes_of(arguments[i].tensor));
  for (const ByteRange& w : written)
    for (const ByteRange& r : read_only)
      if (share_bytes(w, r)) return false;
  return true;
}

}  // namespace fusebox
