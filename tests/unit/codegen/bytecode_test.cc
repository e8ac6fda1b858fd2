// The bytecode of a kernel: which instructions run once, which registers share a place, where jumps lead, what is
// refused.
#include "codegen/bytecode.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "codegen/bytecode_math.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "tests/support/kernel_cases.h"

namespace fusebox {
namespace {

using testing::KernelWriter;

const Instruction* find_math(const Bytecode& code, OpKind kind, size_t nth = 0) {
  for (const Instruction& i : code.code)
    if (i.opcode == Opcode::kMath && i.math == kind && nth-- == 0) return &i;
  return nullptr;
}
const Instruction* find_opcode(const Bytecode& code, Opcode opcode) {
  for (const Instruction& i : code.code)
    if (i.opcode == opcode) return &i;
  return nullptr;
}
ErrorCode code_of(const Graph& g) {
  try {
    compile_bytecode(g);
  } catch (const Error& e) {
    return e.code;
  }
  return ErrorCode::kInternal;
}

TEST(Bytecode, UniformWhereNoThreadIndexGoesIn) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x");
  const ValueId n = k.scalar_input(Dtype::kIndex, "n");
  const ValueId block = k.thread(OpKind::kThreadIndex, ParallelType::kGridX);
  const ValueId thread = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  ValueId j;
  k.begin_for(k.index(0), n, k.index(1), j);
  const ValueId a = k.op(OpKind::kMul, {block, j}, Dtype::kIndex);   // uniform
  const ValueId b = k.op(OpKind::kAdd, {a, thread}, Dtype::kIndex);  // not
  const ValueId u = k.load(x, a), v = k.load(x, b);
  k.op(OpKind::kExp, {u}, Dtype::kFloat);
  k.op(OpKind::kLog, {v}, Dtype::kFloat);
  const Bytecode code = compile_bytecode(g);
  EXPECT_TRUE(find_math(code, OpKind::kMul)->uniform);
  EXPECT_FALSE(find_math(code, OpKind::kAdd)->uniform);
  EXPECT_TRUE(find_math(code, OpKind::kExp)->uniform);
  EXPECT_FALSE(find_math(code, OpKind::kLog)->uniform);
  EXPECT_TRUE(find_opcode(code, Opcode::kFor)->uniform);
  EXPECT_EQ(code.mask_depth, 0u);
}

TEST(Bytecode, LocalMemoryIsOfEachThread) {
  Graph g;
  KernelWriter k(g);
  const ValueId r = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(2));
  k.op(OpKind::kExp, {k.load(r, k.index(0))}, Dtype::kFloat);
  EXPECT_FALSE(find_math(compile_bytecode(g), OpKind::kExp)->uniform);
}

TEST(Bytecode, DivergentControlTakesMasksUniformControlJumps) {
  for (const bool is_divergent : {false, true}) {
    Graph g;
    KernelWriter k(g);
    const ValueId n = k.scalar_input(Dtype::kIndex, "n");
    const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
    const ValueId p = k.op(OpKind::kLt, {is_divergent ? t : n, k.index(3)}, Dtype::kBool);
    const RegionId outer = k.begin_if(p);
    append(g, outer, Op{OpKind::kBarrier, {}, {}, {}, {}});
    const Bytecode code = compile_bytecode(g);
    EXPECT_EQ(code.mask_depth, is_divergent ? 1u : 0u);
    EXPECT_EQ(find_opcode(code, Opcode::kEndIf) != nullptr, is_divergent);
    const Instruction* i = find_opcode(code, Opcode::kIf);
    EXPECT_EQ(code.code[i->target].opcode, is_divergent ? Opcode::kEndIf : Opcode::kBarrier);
  }
}

TEST(Bytecode, ReducedFloatsComputeInFloatAndAreRounded) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kBfloat16, "x");
  const ValueId v = k.load(x, k.thread(OpKind::kThreadIndex, ParallelType::kBlockX));
  k.op(OpKind::kAdd, {v, v}, Dtype::kBfloat16);
  k.op(OpKind::kMaximum, {v, v}, Dtype::kBfloat16);
  const Bytecode code = compile_bytecode(g);
  const Instruction* add = find_math(code, OpKind::kAdd);
  EXPECT_EQ(add->dtype, Dtype::kFloat);
  EXPECT_EQ((add + 1)->opcode, Opcode::kConvert);
  EXPECT_EQ((add + 1)->to, Dtype::kBfloat16);
  EXPECT_EQ((add + 1)->dst, add->dst);  // in place
  EXPECT_FALSE((add + 1)->counts);
  EXPECT_NE((find_math(code, OpKind::kMaximum) + 1)->opcode,
            Opcode::kConvert);  // one of its operands is already rounded
}

TEST(Bytecode, ConstantsAreConvertedOnceAndParametersInFront) {
  Graph g;
  KernelWriter k(g);
  const ValueId s = k.scalar_input(Dtype::kFloat, "s");
  const ValueId x = k.tensor_input(Dtype::kDouble, "x");
  const ValueId one = constant(g, Dtype::kFloat, from_double(Dtype::kFloat, 1));
  ValueId j;
  k.begin_for(k.index(0), k.index(4), k.index(1), j);
  const ValueId v = k.load(x, k.thread(OpKind::kThreadIndex, ParallelType::kBlockX));
  k.op(OpKind::kAdd, {k.op(OpKind::kMul, {v, s}, Dtype::kDouble), one}, Dtype::kDouble);
  k.op(OpKind::kSub, {v, s}, Dtype::kDouble);
  const Bytecode code = compile_bytecode(g);
  EXPECT_EQ(code.code[0].opcode, Opcode::kConvert);
  EXPECT_EQ(std::count_if(code.code.begin(), code.code.end(),
                          [](const Instruction& i) { return i.opcode == Opcode::kConvert; }),
            1);
  const Instruction* loop = find_opcode(code, Opcode::kEndFor);
  EXPECT_EQ(code.code[loop->target - 1].opcode, Opcode::kFor);  // moved along
  EXPECT_TRUE(std::any_of(code.constants.begin(), code.constants.end(), [](const BytecodeConstant& c) {
    return c.dtype == Dtype::kDouble && c.bits == from_double(Dtype::kDouble, 1);
  }));
}

// Only registers that are never alive together may share a place.
TEST(Bytecode, RegistersAliveTogetherDoNotShareAPlace) {
  Graph g;
  KernelWriter k(g);
  const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  const ValueId kept = k.op(OpKind::kAdd, {t, k.index(1)}, Dtype::kIndex);
  ValueId j;
  const RegionId body = k.begin_for(k.index(0), k.index(4), k.index(1), j);
  ValueId v = k.op(OpKind::kMul, {t, k.index(3)}, Dtype::kIndex);
  for (int i = 0; i < 20; ++i) v = k.op(OpKind::kAdd, {v, kept}, Dtype::kIndex);
  k.region = body;
  k.op(OpKind::kSub, {t, k.index(1)}, Dtype::kIndex);
  const Bytecode code = compile_bytecode(g);
  EXPECT_LE(code.lane_bytes, 5 * 8u);  // t, kept, two that alternate, and the last one
  const uint32_t kept_place = code.registers[find_math(code, OpKind::kAdd)->dst].offset;
  for (const Instruction& i : code.code) {
    if (i.opcode != Opcode::kMath || i.uniform) continue;
    for (const uint32_t a : i.args) {
      if (a != kNoRegister && !code.registers[a].uniform) {
        EXPECT_NE(code.registers[a].offset, code.registers[i.dst].offset);
      }
    }
    if (&i != find_math(code, OpKind::kAdd) && i.math != OpKind::kSub) {
      EXPECT_NE(code.registers[i.dst].offset, kept_place);  // the loop's next iteration reads it
    }
  }
}

TEST(Bytecode, LinesFollowTheText) {
  Graph g;
  KernelWriter k(g);
  k.scalar_input(Dtype::kIndex, "n");                                                   // line 2
  const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);              // 3
  const RegionId outer = k.begin_if(k.op(OpKind::kLt, {t, k.index(3)}, Dtype::kBool));  // 4, 5
  k.op(OpKind::kAdd, {t, t}, Dtype::kIndex);                                            // 6; the brace is 7
  k.region = outer;
  k.op(OpKind::kSub, {t, t}, Dtype::kIndex);  // 8
  const Bytecode code = compile_bytecode(g);
  EXPECT_EQ(code.origins[find_math(code, OpKind::kAdd)->origin].line, 6u);
  EXPECT_EQ(code.origins[find_math(code, OpKind::kSub)->origin].line, 8u);
}

TEST(Bytecode, SameGraphSameBytecode) {
  const auto ops = testing::scalar_ops(Dtype::kHalf);
  const Bytecode a = compile_bytecode(ops.kernel), b = compile_bytecode(ops.kernel);
  ASSERT_EQ(a.code.size(), b.code.size());
  EXPECT_EQ(a.lane_bytes, b.lane_bytes);
  EXPECT_EQ(a.lists, b.lists);
}

TEST(Bytecode, MathPlans) {
  const auto plan = [](OpKind kind, std::vector<Dtype> operands, Dtype result) {
    return math_plan(kind, operands, result);
  };
  EXPECT_EQ(plan(OpKind::kLt, {Dtype::kBfloat16, Dtype::kFloat}, Dtype::kBool).compute, Dtype::kFloat);
  EXPECT_EQ(plan(OpKind::kLt, {Dtype::kBfloat16, Dtype::kFloat}, Dtype::kBool).native, Dtype::kBool);
  EXPECT_EQ(plan(OpKind::kExp, {Dtype::kInt64}, Dtype::kFloat).compute, Dtype::kFloat);
  EXPECT_EQ(plan(OpKind::kAdd, {Dtype::kBool, Dtype::kBool}, Dtype::kBool).compute, Dtype::kInt32);
  EXPECT_EQ(plan(OpKind::kAdd, {Dtype::kIndex, Dtype::kInt64}, Dtype::kIndex).compute, Dtype::kIndex);
  EXPECT_EQ(plan(OpKind::kAbs, {Dtype::kComplexFloat}, Dtype::kFloat).native, Dtype::kFloat);
  EXPECT_EQ(plan(OpKind::kWhere, {Dtype::kBool, Dtype::kHalf, Dtype::kFloat}, Dtype::kFloat).compute, Dtype::kFloat);
  EXPECT_EQ(plan(OpKind::kComplex, {Dtype::kDouble, Dtype::kDouble}, Dtype::kComplexDouble).native,
            Dtype::kComplexDouble);
}

TEST(Bytecode, Refusals) {
  Graph math;
  EXPECT_EQ(code_of(math), ErrorCode::kWrongLevel);
  {
    Graph g;
    KernelWriter k(g);
    const ValueId n = k.scalar_input(Dtype::kIndex, "n");
    k.allocate(Dtype::kFloat, MemoryType::kLocal, n);
    EXPECT_EQ(code_of(g), ErrorCode::kInvalidGraph);
  }
  {
    Graph g;
    KernelWriter k(g);
    k.allocate(Dtype::kFloat, MemoryType::kShared, k.thread(OpKind::kThreadIndex, ParallelType::kBlockX));
    EXPECT_EQ(code_of(g), ErrorCode::kInvalidGraph);
  }
  {
    Graph g;
    KernelWriter k(g);
    const ValueId x = k.tensor_input(Dtype::kFloat, "x");
    Attrs attrs;
    attrs.set_enum(AttrKey::kCopyKind, CopyKind::kTma);
    k.effect(OpKind::kCopy, {x, k.index(0), x, k.index(4), {}}, attrs);
    EXPECT_EQ(code_of(g), ErrorCode::kUnsupportedOp);
  }
  {
    Graph g;
    KernelWriter k(g);
    const ValueId x = k.tensor_input(Dtype::kFloat4E2m1, "x");
    const ValueId v = k.load(x, k.index(0));
    k.op(OpKind::kMul, {v, v}, Dtype::kFloat4E2m1);
    EXPECT_EQ(code_of(g), ErrorCode::kUnsupportedDtype);
  }
  {
    Graph g;
    KernelWriter k(g);
    const ValueId x = k.tensor_input(Dtype::kFloat, "x");
    k.effect(OpKind::kSynchronize, {x});
    EXPECT_EQ(code_of(g), ErrorCode::kUnsupportedOp);
  }
}

}  // namespace
}  // namespace fusebox
