// How a kernel is compiled, and what its parameters may be declared as.
#include <algorithm>

#include "codegen/cuda.h"
#include "codegen/cuda_operands.h"
#include "codegen/same_bits.h"

namespace fusebox {
namespace {

// 177: a value that nothing reads, such as the operand of isnan of an integer.
// 186: comparisons with zero that templates make of unsigned dtypes.
// Nothing reads FUSEBOX_NUMERICS: it makes bundles and keys of binaries differ.
constexpr std::string_view kCompileOptions[] = {"--diag-suppress=186", "--std=c++17",         "--fmad=false",
                                                "--ftz=false",         "--prec-div=true",     "--prec-sqrt=true",
                                                "--diag-suppress=177", "-DFUSEBOX_NUMERICS=4"};
static_assert(kNumericsVersion == 4, "the last option names the version");

}  // namespace

std::span<const std::string_view> cuda_compile_options() { return kCompileOptions; }

std::set<ValueId> stored_buffers(const Graph& kernel) {
  std::set<ValueId> stored;
  for (const OpId id : ops_in_order(kernel)) {
    const Op& op = kernel[id];
    const bool is_store = op.kind == OpKind::kStore || op.kind == OpKind::kCopy;
    if (is_store && !op.operands.empty()) stored.insert(op.operands[0]);
    // A collective stores to its workspaces, and counts blocks in its counters.
    if (!demands(op.kind, kSync)) continue;
    for (const ValueId v : op.operands)
      if (v && kernel.is_tensor(v)) stored.insert(v);
  }
  return stored;
}

bool loads_what_it_stores(const Graph& kernel) {
  std::set<ValueId> stored;
  for (const ValueId v : stored_buffers(kernel))
    if (v && std::ranges::count(inputs(kernel), v) > 0) stored.insert(v);
  const auto is_stored = [&](ValueId v) { return stored.contains(v); };
  return std::ranges::any_of(ops_in_order(kernel), [&](OpId id) {
    const Op& op = kernel[id];
    if (demands(op.kind, kSync)) return std::ranges::any_of(op.operands, is_stored);
    return (op.kind == OpKind::kLoad && is_stored(op.operands[0])) ||
           (op.kind == OpKind::kCopy && is_stored(op.operands[2]));
  });
}

bool is_counters(const Graph& kernel, ValueId parameter) {
  // A barrier leaves another number than arrivals begin with.
  int64_t uses = 0, arrivals = 0, barriers = 0;
  for (const OpId id : ops_in_order(kernel)) {
    const Op& op = kernel[id];
    const int64_t own = std::ranges::count(op.operands, parameter);
    uses += own;
    if (op.kind == OpKind::kGridBarrier) barriers += own;
    if (op.kind != OpKind::kGridReduce || own == 0) continue;
    arrivals += std::ranges::count(Operands(op).of("arrive"), parameter);
    barriers += std::ranges::count(Operands(op).of("sync"), parameter);
  }
  return uses > 0 && (uses == arrivals || uses == barriers);
}

}  // namespace fusebox
