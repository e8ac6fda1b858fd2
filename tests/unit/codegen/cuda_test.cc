#include "codegen/cuda.h"

#include <gtest/gtest.h>
#include <set>

#include "codegen/cuda_expression.h"
#include "codegen/runtime_sources.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "tests/support/kernel_cases.h"

namespace fusebox {
namespace {

using testing::KernelWriter;

// y[i] = x[i] + 1, in a loop that strides over the grid.
Graph add_one(std::string_view prefix, bool swapped) {
  Graph g;
  KernelWriter k(g);
  const std::string p(prefix);
  const ValueId x = k.tensor_input(Dtype::kFloat, p + "x"), y = k.tensor_input(Dtype::kFloat, p + "y");
  const ValueId n = k.scalar_input(Dtype::kIndex, p + "n");
  if (swapped) {
    constant(g, Dtype::kFloat, from_double(Dtype::kFloat, 1.0));
    k.op(OpKind::kMul, {n, n}, Dtype::kIndex);  // dead
    k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  }
  const ValueId i = k.global_thread();
  k.begin_if(k.op(OpKind::kLt, {i, n}, Dtype::kBool));
  const ValueId one = constant(g, Dtype::kFloat, from_double(Dtype::kFloat, 1.0));
  k.store(y, i, k.op(OpKind::kAdd, {k.load(x, i), one}, Dtype::kFloat));
  return g;
}

TEST(Cuda, WritesOneStatementForEachOp) {
  EXPECT_EQ(emit_cuda(add_one("", false), {.max_threads = 128}).text,
            R"(#include "types.cuh"

using index_t = int64_t;

//   const float* t0: read
//   float*       t1: written
//   index_t      s0
extern "C" __global__ void __launch_bounds__(128) fusebox_kernel(const float* __restrict__ t0, float* t1, index_t s0) {
  const index_t n0 = index_t(blockIdx.x);
  const index_t n1 = index_t(blockDim.x);
  const index_t n2 = n0 * n1;
  const index_t n3 = index_t(threadIdx.x);
  const index_t n4 = n2 + n3;
  const bool p0 = n4 < s0;
  if (p0) {
    const float v0 = t0[n4];
    const float v1 = v0 + 1.0f;
    t1[n4] = v1;
  }
}
)");
}

TEST(Cuda, ReadsThatMayOverlapStoresAreNotRestricted) {
  const std::string text = emit_cuda(add_one("", false), {.reads_apart = false}).text;
  EXPECT_EQ(text.find("__restrict__"), std::string::npos);
}

TEST(Cuda, TextIsIndependentOfNamesDeadNodesAndOrder) {
  EXPECT_EQ(emit_cuda(add_one("", false)).text, emit_cuda(add_one("other_", true)).text);
}

TEST(Cuda, IndexWidthIsTheKernels) {
  Graph g = add_one("", false);
  g.index_bits = 32;
  EXPECT_NE(emit_cuda(g).text.find("using index_t = int32_t;"), std::string::npos);
}

TEST(Cuda, EveryScalarOpHasCodeForEveryDtypeItAccepts) {
  std::set<OpKind> seen;
  for (const Dtype d : testing::arithmetic_dtypes()) {
    for (const auto& ops : {testing::scalar_ops(d), testing::scalar_casts(d), testing::scalar_extras(d)}) {
      const std::string text = emit_cuda(ops.kernel).text;
      // Each output is stored to.
      for (size_t o = 0; o < ops.outputs.size(); ++o) {
        seen.insert(ops.outputs[o].kind);
        EXPECT_NE(text.find("t" + std::to_string(5 + o) + "["), std::string::npos) << row_of(ops.outputs[o].kind).text;
      }
    }
  }
  for (const OpRow& row : op_rows())
    EXPECT_EQ(seen.contains(row.kind), testing::is_scalar_math(row) || row.kind == OpKind::kCast) << row.text;
}

TEST(Cuda, HeadersAreThoseItUses) {
  const std::string text = emit_cuda(testing::scalar_ops(Dtype::kInt32).kernel).text;
  EXPECT_NE(text.find("#include \"integer.cuh\""), std::string::npos);
  EXPECT_EQ(text.find("#include \"complex.cuh\""), std::string::npos);
  std::set<std::string_view> there;
  for (const RuntimeHeader& h : runtime_headers()) there.insert(h.name);
  for (const std::string_view name : kCudaHeaderNames) EXPECT_TRUE(there.contains(name)) << name;
}

TEST(Cuda, LiteralsKeepEveryBit) {
  const auto literal = [](Dtype d, double v) { return cuda_literal(d, from_double(d, v)); };
  EXPECT_EQ(literal(Dtype::kFloat, 1.0), "1.0f");
  EXPECT_EQ(literal(Dtype::kFloat, -0.0), "-0.0f");
  EXPECT_EQ(literal(Dtype::kFloat, 0.1), "0.1f");
  EXPECT_EQ(literal(Dtype::kDouble, 0.1), "0.1");
  EXPECT_EQ(literal(Dtype::kDouble, 1e300), "1e+300");
  EXPECT_EQ(literal(Dtype::kHalf, 1.5), "half_t::from_bits(0x3e00 /* 1.5 */)");
  EXPECT_EQ(cuda_literal(Dtype::kFloat, {0x7fc00001, 0}), "__uint_as_float(0x7fc00001u)");
  EXPECT_EQ(cuda_literal(Dtype::kInt64, from_int64(Dtype::kInt64, INT64_MIN)), "int64_t(-9223372036854775807 - 1)");
  EXPECT_EQ(cuda_literal(Dtype::kInt32, from_int64(Dtype::kInt32, INT32_MIN)), "int32_t(-2147483648)");
  EXPECT_EQ(cuda_literal(Dtype::kUint64, from_uint64(Dtype::kUint64, UINT64_MAX)), "uint64_t(18446744073709551615u)");
  EXPECT_EQ(cuda_literal(Dtype::kIndex, from_int64(Dtype::kIndex, 5), true), "5");
  EXPECT_EQ(cuda_literal(Dtype::kIndex, from_int64(Dtype::kIndex, 5)), "index_t(5)");
}

TEST(Cuda, NarrowFloatsComputeInFloatAndRoundOnce) {
  CudaHeaders headers;
  const CudaTerm a{"a", Dtype::kHalf}, b{"b", Dtype::kHalf};
  EXPECT_EQ(cuda_expression(OpKind::kAdd, {}, std::vector{a, b}, Dtype::kHalf, headers), "half_t(float(a) + float(b))");
  const CudaTerm i{"i", Dtype::kInt64};
  EXPECT_EQ(cuda_expression(OpKind::kExp, {}, std::vector{i}, Dtype::kFloat, headers), "exact::exp(float(i))");
  EXPECT_EQ(cuda_expression(OpKind::kCast, {}, std::vector{i}, Dtype::kBfloat16, headers), "cast<bfloat16_t>(i)");
}

TEST(Cuda, BuffersCopiesAndCollectives) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kHalf, "x"), y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  const ValueId local = k.allocate(Dtype::kHalf, MemoryType::kLocal, k.index(4));
  const ValueId shared = k.allocate(Dtype::kFloat, MemoryType::kShared, k.index(128), k.index(64));
  Attrs copy;
  copy.set(AttrKey::kWidth, int64_t{4});
  copy.set_enum(AttrKey::kCacheOp, CacheOp::kStreaming);
  k.effect(OpKind::kCopy, {local, k.index(0), x, k.op(OpKind::kMul, {t, k.index(4)}, Dtype::kIndex), {}}, copy);
  const ValueId value = k.op(OpKind::kCast, {k.load(local, k.index(3))}, Dtype::kFloat);
  Attrs reduce;
  reduce.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
  reduce.set(AttrKey::kThreads, std::vector<int64_t>{static_cast<int64_t>(ParallelType::kBlockX)});
  const ValueId zero = constant(g, Dtype::kFloat, {});
  const ValueId first = k.op(OpKind::kEq, {t, k.index(0)}, Dtype::kBool);
  const ValueId sum = k.op(OpKind::kBlockReduce, {value, zero, shared, first, {}}, Dtype::kFloat, reduce);
  k.effect(OpKind::kBarrier, {});
  k.store(y, t, sum);
  EXPECT_EQ(emit_cuda(g).text, R"(#include "types.cuh"
#include "memory.cuh"
#include "reduce.cuh"

using index_t = int64_t;

//   const half_t* t0: read
//   float*        t1: written
extern "C" __global__ void fusebox_kernel(const half_t* __restrict__ t0, float* t1) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  alignas(8) half_t local0[4];
  float* const shared0 = reinterpret_cast<float*>(shared_memory + 64);
  const index_t n0 = index_t(threadIdx.x);
  const index_t n1 = n0 * 4;
  copy_vector<4, Cache::kStreaming>(&local0[0], &t0[n1]);
  const half_t v0 = element(local0, 3);
  const float v1 = float(v0);
  const bool p0 = n0 == 0;
  const float v2 = block_reduce<Sum, kBlockX, kFirstThread>(p0 ? v1 : 0.0f, Places<float>{shared0});
  __syncthreads();
  t1[n0] = v2;
}
)");
}

// Two vectors are loaded under one condition and used after it; `in_loop`: in a loop.
std::string two_loads(bool in_loop, bool one_of_them) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId n = k.scalar_input(Dtype::kIndex, "n");
  const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  const ValueId a = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(4));
  const ValueId b = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(4));
  ValueId i;
  if (in_loop) k.begin_for(k.index(0), n, k.index(1), i);
  const ValueId inside = k.op(OpKind::kLt, {t, n}, Dtype::kBool);
  Attrs copy;
  copy.set(AttrKey::kWidth, int64_t{4});
  const RegionId outer = k.begin_if(inside);
  k.effect(OpKind::kCopy, {a, k.index(0), x, k.op(OpKind::kMul, {t, k.index(4)}, Dtype::kIndex), {}}, copy);
  if (!one_of_them)
    k.effect(OpKind::kCopy, {b, k.index(0), x, k.op(OpKind::kMul, {t, k.index(8)}, Dtype::kIndex), {}}, copy);
  k.region = outer;
  k.begin_if(inside);
  k.store(y, t, k.op(OpKind::kAdd, {k.load(a, k.index(0)), k.load(b, k.index(1))}, Dtype::kFloat));
  return emit_cuda(g).text;
}

TEST(Cuda, LoadsAreIssuedBeforeWhatFollows) {
  const std::string text = two_loads(false, false);
  const size_t at = text.find("  issue_loads();\n");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LT(text.rfind("copy_vector<4>"), at);
  EXPECT_GT(text.find("t1["), at);
  EXPECT_EQ(text.find("issue_loads", at + 12), std::string::npos);
  EXPECT_EQ(two_loads(false, true).find("issue_loads"), std::string::npos);
  EXPECT_EQ(two_loads(true, false).find("issue_loads"), std::string::npos);
}

ErrorCode code_of(const Graph& g) {
  try {
    emit_cuda(g);
  } catch (const Error& e) {
    return e.code;
  }
  return ErrorCode::kInternal;
}

TEST(Cuda, RefusesWhatItCannotWrite) {
  Graph math;
  EXPECT_EQ(code_of(math), ErrorCode::kWrongLevel);
  {
    Graph g;
    KernelWriter k(g);
    const ValueId n = k.scalar_input(Dtype::kIndex, "n");
    k.allocate(Dtype::kFloat, MemoryType::kLocal, n);
    EXPECT_EQ(code_of(g), ErrorCode::kIllegalAllocation);
  }
  {
    Graph g;
    KernelWriter k(g);
    const ValueId z = k.scalar_input(Dtype::kComplexFloat, "z"), y = k.tensor_input(Dtype::kBool, "y");
    k.store(y, k.index(0), k.op(OpKind::kLt, {z, z}, Dtype::kBool));
    EXPECT_EQ(code_of(g), ErrorCode::kUnsupportedDtype);
  }
  {
    Graph g;
    KernelWriter k(g);
    const ValueId x = k.tensor_input(Dtype::kFloat, "x");
    k.store(x, k.index(0), k.op(OpKind::kExp, {x}, Dtype::kFloat));
    EXPECT_EQ(code_of(g), ErrorCode::kWrongKind);
  }
  {
    Graph g;
    KernelWriter k(g);
    const ValueId x = k.tensor_input(Dtype::kFloat, "x");
    Attrs copy;
    copy.set(AttrKey::kWidth, int64_t{3});
    k.effect(OpKind::kCopy, {x, k.index(0), x, k.index(4), {}}, copy);
    EXPECT_EQ(code_of(g), ErrorCode::kIllegalVectorize);
  }
  {
    Graph g;
    KernelWriter k(g);
    k.effect(OpKind::kSynchronize, {k.tensor_input(Dtype::kFloat, "x")});
    EXPECT_EQ(code_of(g), ErrorCode::kWrongLevel);
  }
}

}  // namespace
}  // namespace fusebox
