// Lane functions: one typed loop each, over the threads (lanes) of a group. The interpreter looks them up once for a
// launch.
//
// Invariants: registers hold values in `register_dtype` (bytecode.h), those of reduced floats rounded to their dtype. A
// lane's result depends only on that lane's operands. No function traps or has undefined behaviour on any operand bits,
// so inactive lanes may be computed too. A NaN that arithmetic makes is the positive quiet one.
//
//   LaneCall c{to, {a, b}, {1, 0}, 0, 128};   // b is uniform
//   find_math(OpKind::kAdd, Dtype::kFloat, 64)(c);
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/table/dtype.h"
#include "ir/table/op.h"

namespace fusebox::host {

struct LaneCall {
  void* to = nullptr;
  const void* from[4] = {};
  uint8_t stride[4] = {};  // 1: an element for each lane; 0: one for all
  int32_t begin = 0, end = 0;
  uint64_t bad = 0;  // arithmetic on index: not zero if a lane of the range left the index type
};

using LaneFunction = void (*)(LaneCall&);

// Null if the op has no arithmetic for that computation dtype. Index add, sub and mul set `bad`.
LaneFunction find_math(OpKind kind, Dtype compute, int index_bits);
bool sets_bad(OpKind kind, Dtype compute);
// From one dtype's register to another's, as `cast` does. It works in place if both have the same register dtype. Null:
// there is no such conversion.
LaneFunction find_conversion(Dtype from, Dtype to);
// Three results, six operands: to[k] and from[k].
struct WelfordCall {
  void* to[3];
  const void* from[6];
  uint8_t stride[6];
  int32_t begin = 0, end = 0;
};
using WelfordFunction = void (*)(WelfordCall&);
// `count` is kInt64 or `compute`.
WelfordFunction find_welford(Dtype compute, Dtype count);

// Parts of find_math, by the kind of the computation dtype.
LaneFunction find_integer_math(OpKind kind, Dtype compute, int index_bits);
LaneFunction find_floating_math(OpKind kind, Dtype compute);
LaneFunction find_elementary_math(OpKind kind, Dtype compute);
LaneFunction find_complex_math(OpKind kind, Dtype compute);
// The functions of codegen/runtime/exact_*.cuh: the bits are the same for every processor and on a GPU. Null: there is none.
enum class ExactLanes { kFastest, kPlain };
LaneFunction find_exact_math(OpKind kind, Dtype compute, ExactLanes lanes = ExactLanes::kFastest);

// Between memory and registers, for one dtype. Indices count elements.
struct MemoryFunctions {
  void (*load)(void* to, const std::byte* from, int64_t count);  // consecutive elements to consecutive lanes
  void (*store)(std::byte* to, const void* from, int64_t count);
  void (*gather)(void* to, const std::byte* from, const int64_t* index, const uint8_t* mask, int32_t begin,
                 int32_t end);
  void (*scatter)(std::byte* to, const int64_t* index, uint8_t index_stride, const void* from, uint8_t from_stride,
                  const uint8_t* mask, int32_t begin, int32_t end);
  void (*fill)(void* to, const void* value, int64_t count);  // one register element to `count` lanes
  // to[l] = from[l * stride] where keep[l] is zero
  void (*merge)(void* to, const void* from, uint8_t stride, const uint8_t* keep, int32_t begin, int32_t end);
  int64_t register_bytes;  // of an element
};
const MemoryFunctions& memory_functions(Dtype dtype);

}  // namespace fusebox::host
