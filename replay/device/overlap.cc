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

}  // namespace

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
