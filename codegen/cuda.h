// CUDA C++ from a kernel graph: one function, one statement for each op. Names are canonical, so the text depends on
// what the kernel does and not on how it was built or named.
//
// Invariants:
// - The text includes only headers of runtime_sources.h, and only those that it uses.
// - A name's letter says what the value is: t a tensor parameter, s a scalar parameter, i a loop's index, n another
//   index, p a truth value, d a divisor, r a reciprocal, v any other value; buffers are `local` and `shared`. Numbers follow the order of first
//   appearance.
// - Results follow the op table: converted to the computation dtype, computed, rounded once.
// - A kernel that breaks the kernel contract, or that CUDA cannot express, throws kWrongLevel, kWrongKind,
//   kUnsupportedDtype or kInvalidGraph.
//
// Compile the text with cuda_compile_options: no fast math, and multiplications stay apart from additions. Then
// + − × ÷ and sqrt give the host executor's bits.
//
// A parameter that the kernel only reads is `__restrict__`: the compiler may load from it early, and by the read-only
// path. A launch whose arguments do not allow that (overlap.h in replay) runs the text with `reads_apart` false.
//
//   CudaSource source = emit_cuda(kernel);
//   // source.text ends in
//   // extern "C" __global__ void fusebox_kernel(const float* __restrict__ t0, float* t1, index_t s0) {…}
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

struct CudaOptions {
  std::string entry = "fusebox_kernel";  // a C identifier
  bool reads_apart = true;               // no launch stores to memory of a parameter that the kernel only reads
  int64_t max_threads = 0;               // the most threads that a block of any launch has; 0: not known
  bool hoist = true;                     // first moves common scalar arithmetic out of loops (hoist.h)
  Defects defects = {};
};

struct CudaSource {
  std::string text;
  std::string entry;
};

CudaSource emit_cuda(const Graph& kernel, const CudaOptions& options = {});

// The buffers that the kernel stores to, parameters and its own.
std::set<ValueId> stored_buffers(const Graph& kernel);
// Whether the kernel loads from a parameter that it stores to, also in a collective.
bool loads_what_it_stores(const Graph& kernel);

// Whether the kernel uses the parameter to count blocks alone. Such a buffer is ready for the next launch after each one.
bool is_counters(const Graph& kernel, ValueId parameter);

// Several kernels in one text, each in a namespace of its own, so that they share the time that compiling the headers
// takes. A kernel's function is as in a text of its own, but its entry is `options.entry` and a number.
struct CudaModuleSource {
  std::string text;
  std::vector<std::string> entries;
};
CudaModuleSource emit_cuda_module(std::span<const Graph* const> kernels, const CudaOptions& options = {});

// The options that every kernel is compiled with, beside the architecture. The bundle records them.
std::span<const std::string_view> cuda_compile_options();

}  // namespace fusebox
