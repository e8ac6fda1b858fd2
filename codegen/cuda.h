// CUDA C++ from a kernel graph: one function, one statement for each op, canonical names, so that the text depends on
// what the kernel does and not on how it was built or named.
//
// Invariants:
// - the text includes only headers of runtime_sources.h, and of those what it uses;
// - names say what a value is: t a tensor parameter, s a scalar parameter, i a loop's index, n another index, p a truth
// value,
//   v any other value, `local` and `shared` buffers; each is numbered in the order of its first appearance;
// - results hold to the rules of the op table: converted to the computation dtype, computed, rounded once;
// - what a kernel may not contain, or CUDA cannot do, throws kWrongLevel, kWrongKind, kUnsupportedDtype or
// kInvalidGraph.
//
// Compile it without fast math and with multiply-adds left apart (cuda_compile_options): then + − × ÷ and sqrt give the
// host executor's bits.
//
//   CudaSource source = emit_cuda(kernel, {.restrict_parameters = true});
//   // … extern "C" __global__ void fusebox_kernel(const float* __restrict__ t0, float* __restrict__ t1, index_t s0) {
//   …
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

struct CudaOptions {
  std::string entry = "fusebox_kernel";  // a C identifier
  bool restrict_parameters = false;      // no two parameters of a launch overlap
  int64_t max_threads = 0;               // threads of a block in every launch at most; 0: not known
  bool hoist = true;                     // moves common scalar arithmetic out of loops first (hoist.h)
};

struct CudaSource {
  std::string text;
  std::string entry;
};

CudaSource emit_cuda(const Graph& kernel, const CudaOptions& options = {});

// Several kernels in one text, each in a namespace of its own: what is compiled together shares the time that the
// headers take. A kernel's function is the same as in a text of its own but for its entry, `options.entry` and its
// number.
struct CudaModuleSource {
  std::string text;
  std::vector<std::string> entries;
};
CudaModuleSource emit_cuda_module(std::span<const Graph* const> kernels, const CudaOptions& options = {});

// What every kernel is compiled with, beside the architecture. The bundle records them.
std::span<const std::string_view> cuda_compile_options();

}  // namespace fusebox
