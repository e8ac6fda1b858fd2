// The bytes that any run of a program must move: each input that it needs is read once, and each output written once.
//
// Rules: a tensor counts the places of its elements, so an axis of stride 0 counts once. An input that no output depends
// on counts nothing, nor does one that only gives its sizes; an input that is read in part (a slice, rows by index)
// counts whole. An overwritten input counts as an output too. An output that is an input moves nothing. Scalars count
// nothing. Tensors between kernels count nothing: another schedule need not move them.
//
//   x: f32[4, 8], b: f32[8] expanded to [4, 8], y = x + b   →   read 128 + 32, written 128
#pragma once

#include <cstdint>
#include <span>

#include "ir/graph/graph.h"
#include "replay/data/tensor_data.h"

namespace fusebox {

struct MovedBytes {
  int64_t read = 0;
  int64_t written = 0;
  int64_t total() const { return read + written; }
};

// `outputs` are the layouts of the fusion's outputs, in order; a scalar's is not looked at.
MovedBytes moved_bytes(const Graph& fusion, std::span<const Argument> inputs, std::span<const TensorData> outputs);

}  // namespace fusebox
