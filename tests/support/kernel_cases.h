// Kernels for tests of code that executes kernels, built op by op through the Graph API.
//
//   ScalarOps ops = scalar_ops(Dtype::kFloat);   // t[i] = op(a[i], b[i], …) for every scalar op that takes f32
//   ops.outputs[0].kind, ops.outputs[0].dtype    // the op and dtype of each output tensor
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/type_rule.h"

namespace fusebox::testing {

// Appends ops to a region of a kernel.
class KernelWriter {
 public:
  explicit KernelWriter(Graph& graph) : g(graph) { g.level = Level::kKernel; }

  ValueId buffer(Dtype dtype, std::string_view name, MemoryType memory = MemoryType::kGlobal) {
    const ValueId v = add_tensor(g, dtype, name);
    Tensor& t = g.tensor_of(v);
    t.memory = memory;
    const TensorId id = g[v].tensor;
    IterDomain domain;
    domain.tensor = id;
    const DomainId d = add_domain(g, id, domain);
    g[id].logical = {d};
    return v;
  }
  ValueId tensor_input(Dtype dtype, std::string_view name) {
    const ValueId v = buffer(dtype, name);
    append(g, Graph::body(), Op{OpKind::kInput, {}, {v}, {}, {}});
    return v;
  }
  ValueId scalar_input(Dtype dtype, std::string_view name) {
    const ValueId v = add_scalar(g, dtype, name);
    append(g, Graph::body(), Op{OpKind::kInput, {}, {v}, {}, {}});
    return v;
  }
  ValueId op(OpKind kind, std::vector<ValueId> operands, Dtype dtype, Attrs attrs = {}) {
    const ValueId v = add_scalar(g, dtype, "");
    append(g, region, Op{kind, std::move(operands), {v}, std::move(attrs), {}});
    return v;
  }
  std::vector<ValueId> many(OpKind kind, std::vector<ValueId> operands, std::vector<Dtype> dtypes, Attrs attrs = {}) {
    std::vector<ValueId> results;
    for (Dtype d : dtypes) results.push_back(add_scalar(g, d, ""));
    append(g, region, Op{kind, std::move(operands), results, std::move(attrs), {}});
    return results;
  }
  void effect(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {}) {
    append(g, region, Op{kind, std::move(operands), {}, std::move(attrs), {}});
  }
  ValueId index(int64_t value) { return constant_index(g, value); }
  ValueId thread(OpKind kind, ParallelType on) {
    Attrs attrs;
    attrs.set_enum(AttrKey::kParallel, on);
    return op(kind, {}, Dtype::kIndex, attrs);
  }
  // grid.x · threads of block.x + block.x
  ValueId global_thread() {
    const ValueId block = thread(OpKind::kThreadIndex, ParallelType::kGridX);
    const ValueId size = thread(OpKind::kThreadCount, ParallelType::kBlockX);
    const ValueId base = op(OpKind::kMul, {block, size}, Dtype::kIndex);
    return op(OpKind::kAdd, {base, thread(OpKind::kThreadIndex, ParallelType::kBlockX)}, Dtype::kIndex);
  }
  ValueId load(ValueId from, ValueId at) { return op(OpKind::kLoad, {from, at, {}, {}}, g[from].dtype); }
  void store(ValueId to, ValueId at, ValueId value) { effect(OpKind::kStore, {to, at, value, {}}); }
  ValueId allocate(Dtype dtype, MemoryType memory, ValueId size, ValueId offset = {}) {
    const ValueId v = buffer(dtype, "", memory);
    Attrs attrs;
    attrs.set_enum(AttrKey::kMemory, memory);
    append(g, region, Op{OpKind::kAllocate, {size, offset}, {v}, attrs, {}});
    return v;
  }
  // Continues inside. Returns the outer region.
  RegionId begin_if(ValueId predicate) {
    const RegionId outer = region, inner = add_region(g);
    append(g, region, Op{OpKind::kIf, {predicate}, {}, {}, {inner}});
    region = inner;
    return outer;
  }
  RegionId begin_for(ValueId start, ValueId stop, ValueId step, ValueId& i) {
    const RegionId outer = region, inner = add_region(g);
    i = add_scalar(g, Dtype::kIndex, "");
    g[i].index_of = inner;
    g[inner].index = i;
    append(g, region, Op{OpKind::kFor, {start, stop, step}, {}, {}, {inner}});
    region = inner;
    return outer;
  }

  Graph& g;
  RegionId region = Graph::body();
};

struct ScalarOutput {
  OpKind kind;
  Dtype dtype;
  int operands;
};
// One kernel for all scalar ops of a dtype. Parameters: operands a, b, c, d of the dtype, p bool, one output for each
// of `outputs`, and n, the number of elements.
struct ScalarOps {
  Graph kernel;
  std::vector<ScalarOutput> outputs;
};

inline int operand_count(OpKind kind) { return row_of(kind).format->slot_count; }

inline bool is_scalar_math(const OpRow& row) {
  if (!row.at(Level::kKernel) || (row.demands & kPointwise) == 0) return false;
  return row.kind != OpKind::kWelfordCombine && row.kind != OpKind::kCast && row.kind != OpKind::kSegmentSet;
}

// `wanted`: the results that the kernel computes, as (op, dtype).
inline ScalarOps scalar_kernel(Dtype dtype, const std::vector<ScalarOutput>& wanted) {
  ScalarOps result;
  result.outputs = wanted;
  KernelWriter k(result.kernel);
  result.kernel.name = "scalar_" + std::string(text(dtype));
  std::vector<ValueId> operands, outputs;
  for (const char* name : {"a", "b", "c", "d"}) operands.push_back(k.tensor_input(dtype, name));
  const ValueId p = k.tensor_input(Dtype::kBool, "p");
  for (const ScalarOutput& o : wanted)
    outputs.push_back(k.tensor_input(o.dtype, std::string("out_") + std::string(row_of(o.kind).text)));
  const ValueId n = k.scalar_input(Dtype::kIndex, "n");
  const ValueId i = k.global_thread();
  k.begin_if(k.op(OpKind::kLt, {i, n}, Dtype::kBool));
  std::vector<ValueId> values;
  ValueId truth;
  for (size_t o = 0; o < wanted.size(); ++o) {
    const auto count = static_cast<size_t>(wanted[o].kind == OpKind::kWhere ? 2 : wanted[o].operands);
    while (values.size() < count) values.push_back(k.load(operands[values.size()], i));
    std::vector<ValueId> used(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
    if (wanted[o].kind == OpKind::kWhere) {
      if (!truth) truth = k.load(p, i);
      used = {truth, values[0], values[1]};
    }
    Attrs attrs;
    if (wanted[o].kind == OpKind::kCast) attrs.set(AttrKey::kDtypeAttr, wanted[o].dtype);
    k.store(outputs[o], i, k.op(wanted[o].kind, used, wanted[o].dtype, attrs));
  }
  return result;
}

inline ScalarOps scalar_ops(Dtype dtype) {
  std::vector<ScalarOutput> wanted;
  for (const OpRow& row : op_rows()) {
    if (!is_scalar_math(row) || !accepts_dtype(row.kind, dtype) || is_library(row.kind, dtype)) continue;
    const int count = operand_count(row.kind);
    std::vector<OperandType> types(static_cast<size_t>(count), OperandType{dtype});
    if (row.kind == OpKind::kWhere) types[0].dtype = Dtype::kBool;
    wanted.push_back({row.kind, result_dtype(row.kind, types), count});
  }
  return scalar_kernel(dtype, wanted);
}

// Casts of the dtype to every other one.
inline ScalarOps scalar_casts(Dtype dtype) {
  std::vector<ScalarOutput> wanted;
  for (const DtypeRow& to : dtype_rows())
    if (!is_storage_only(to.dtype)) wanted.push_back({OpKind::kCast, to.dtype, 1});
  return scalar_kernel(dtype, wanted);
}

// Functions that only CUDA has: on complex numbers, and the neighbours of narrow floats.
inline ScalarOps scalar_extras(Dtype dtype) {
  std::vector<ScalarOutput> wanted;
  if (is_reduced_float(dtype)) wanted.push_back({OpKind::kNextafter, dtype, 2});
  if (is_complex(dtype)) {
    for (const OpKind kind : {OpKind::kAcos,  OpKind::kAcosh,   OpKind::kAsin,  OpKind::kAsinh, OpKind::kAtan,
                              OpKind::kAtanh, OpKind::kCos,     OpKind::kCosh,  OpKind::kExp,   OpKind::kExp2,
                              OpKind::kExpm1, OpKind::kLog,     OpKind::kLog10, OpKind::kLog1p, OpKind::kLog2,
                              OpKind::kRsqrt, OpKind::kSigmoid, OpKind::kSilu,  OpKind::kSin,   OpKind::kSinh,
                              OpKind::kSqrt,  OpKind::kTan,     OpKind::kTanh,  OpKind::kPow,   OpKind::kLerp})
      wanted.push_back({kind, dtype, operand_count(kind)});
  }
  return scalar_kernel(dtype, wanted);
}

inline std::vector<Dtype> arithmetic_dtypes() {
  std::vector<Dtype> result;
  for (const DtypeRow& row : dtype_rows())
    if (!is_storage_only(row.dtype)) result.push_back(row.dtype);
  return result;
}

}  // namespace fusebox::testing
