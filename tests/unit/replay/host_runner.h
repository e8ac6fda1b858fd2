// Builds a kernel op by op together with its arguments, and runs it on the host executor.
//
//   HostKernel k;
//   ValueId x = k.input<float>("x", {1, 2, 3}), y = k.output<float>("y", 3);
//   k.store(y, i, k.op(OpKind::kExp, {k.load(x, i)}, Dtype::kFloat));
//   HostResult r = k.run({.block = {3, 1, 1}});  k.values<float>("y")
#pragma once

#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <map>

#include "codegen/bytecode.h"
#include "ir/scalar/numeric.h"
#include "replay/host/host_executor.h"
#include "tests/support/kernel_cases.h"

namespace fusebox::testing {

// The dtype of a buffer's elements. A uint16_t is the bits of a bfloat16.
template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 8 ? Dtype::kDouble : Dtype::kFloat;
  if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1 ? Dtype::kInt8 : sizeof(T) == 4 ? Dtype::kInt32 : Dtype::kInt64;
  return sizeof(T) == 1 ? Dtype::kUint8 : sizeof(T) == 2 ? Dtype::kBfloat16 : Dtype::kUint32;
}

// A separate base, so that it exists before the writer's constructor runs.
struct HostGraph {
  Graph graph;
};

class HostKernel : public HostGraph, public KernelWriter {
 public:
  struct Buffer {
    std::vector<uint64_t> storage;  // aligned to 16 by the allocator
    std::vector<uint8_t> written;
    Dtype dtype = Dtype::kFloat;
    int64_t elements = 0;
    std::byte* data() { return reinterpret_cast<std::byte*>(storage.data()); }
  };

  HostKernel() : KernelWriter(graph) { graph.name = "k"; }

  ValueId memory(Dtype dtype, const std::string& name, int64_t elements, bool is_written) {
    Buffer& b = buffers[name];
    b.dtype = dtype;
    b.elements = elements;
    b.storage.assign(static_cast<size_t>(elements * size_bytes(dtype) + 15) / 16 * 2 + 2, 0);
    b.written.assign(static_cast<size_t>(elements), is_written);
    args.push_back({});
    names.push_back(name);
    return tensor_input(dtype, name);
  }
  template <class T>
  ValueId input(const std::string& name, const std::vector<T>& values, Dtype dtype = dtype_of<T>()) {
    const ValueId v = memory(dtype, name, static_cast<int64_t>(values.size()), true);
    std::memcpy(buffers[name].data(), values.data(), values.size() * sizeof(T));
    return v;
  }
  template <class T>
  ValueId output(const std::string& name, int64_t elements, Dtype dtype = dtype_of<T>()) {
    return memory(dtype, name, elements, false);
  }
  ValueId scalar(const std::string& name, int64_t value, Dtype dtype = Dtype::kIndex) {
    args.push_back(HostArgument::scalar(dtype, from_int64(dtype, value)));
    names.push_back("");
    return scalar_input(dtype, name);
  }
  ValueId thread_x() { return thread(OpKind::kThreadIndex, ParallelType::kBlockX); }
  ValueId block_x() { return thread(OpKind::kThreadIndex, ParallelType::kGridX); }
  ValueId shared(Dtype dtype, int64_t elements, int64_t offset = 0) {
    return allocate(dtype, MemoryType::kShared, index(elements), index(offset));
  }
  void barrier() { effect(OpKind::kBarrier, {}); }
  // An op without a given name gets a fresh one; indices and predicates need no names.
  ValueId add(ValueId a, ValueId b) { return op(OpKind::kAdd, {a, b}, Dtype::kIndex); }
  ValueId mul(ValueId a, ValueId b) { return op(OpKind::kMul, {a, b}, Dtype::kIndex); }
  ValueId less(ValueId a, ValueId b) { return op(OpKind::kLt, {a, b}, Dtype::kBool); }

  HostResult run(const LaunchDims& dims, const HostOptions& options = {}) {
    for (size_t p = 0; p < args.size(); ++p) {
      if (names[p].empty()) continue;
      Buffer& b = buffers[names[p]];
      args[p] = HostArgument::memory(b.dtype, b.data(), b.elements, b.written);
      if (const auto it = extents.find(names[p]); it != extents.end()) args[p].extents = it->second;
    }
    return run_kernel(compile_bytecode(graph), dims, args, options);
  }
  template <class T>
  std::vector<T> values(const std::string& name) {
    Buffer& b = buffers[name];
    std::vector<T> result(static_cast<size_t>(b.elements));
    std::memcpy(result.data(), b.data(), result.size() * sizeof(T));
    return result;
  }

  // A constant, and a value converted to f32.
  ValueId number(double x, Dtype d = Dtype::kFloat) { return constant(graph, d, from_double(d, x)); }
  ValueId to_float(ValueId v) { return op(OpKind::kCast, {v}, Dtype::kFloat); }

  std::map<std::string, Buffer> buffers;
  std::map<std::string, std::vector<int64_t>> extents;  // by axis, for buffers whose kernel asks for them
  std::vector<HostArgument> args;
  std::vector<std::string> names;
};

// The numbers from 1 to n.
inline std::vector<float> ramp(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) + 1;
  return values;
}

constexpr LaunchDims kOneBlock = {.grid = {1, 1, 1}, .block = {8, 1, 1}, .shared_bytes = 1024};
constexpr LaunchDims kTwoBlocks = {.grid = {2, 1, 1}, .block = {8, 1, 1}, .shared_bytes = 1024};

// Matches code and place of a finding; an empty place matches any.
inline void expect_finding(const HostResult& r, ErrorCode code, const std::string& place) {
  ASSERT_TRUE(r.finding.has_value()) << "no finding";
  EXPECT_EQ(r.finding->code, code) << r.finding->message();
  EXPECT_EQ(r.finding->place(), place) << r.finding->message();
}
inline void expect_clean(const HostResult& r) {
  EXPECT_FALSE(r.finding.has_value()) << r.finding->place() << ": " << r.finding->message();
}

}  // namespace fusebox::testing
