// Every enumeration that a program stores. FUSEBOX_<Type>(ROW) expands to ROW(enumerator, text) for each enumerator.
//
// Invariants: an enumerator's wire id is its position in its list, so rows are appended only. Every type has a line in
// FUSEBOX_ENUM_TYPES.
//
//   FUSEBOX_Contiguity(ROW)  // ROW(kFalse, "false") ROW(kTrue, "true") ROW(kNone, "none")
#pragma once

#define FUSEBOX_Level(ROW)     \
  ROW(kMath, "math")           \
  ROW(kScheduled, "scheduled") \
  ROW(kKernel, "kernel")       \
  ROW(kHost, "host")

#define FUSEBOX_IterType(ROW)               \
  ROW(kIteration, "iter")                   \
  ROW(kReduction, "reduce")                 \
  ROW(kBroadcast, "broadcast")              \
  ROW(kGatherScatter, "gather_scatter")     \
  ROW(kStride, "stride")                    \
  ROW(kVectorComponent, "vector_component") \
  ROW(kSymbolic, "symbolic")

#define FUSEBOX_ParallelType(ROW) \
  ROW(kSerial, "serial")          \
  ROW(kGridX, "grid.x")           \
  ROW(kGridY, "grid.y")           \
  ROW(kGridZ, "grid.z")           \
  ROW(kBlockX, "block.x")         \
  ROW(kBlockY, "block.y")         \
  ROW(kBlockZ, "block.z")         \
  ROW(kVectorize, "vectorize")    \
  ROW(kUnroll, "unroll")          \
  ROW(kUnswitch, "unswitch")      \
  ROW(kMeshX, "mesh.x")           \
  ROW(kMeshY, "mesh.y")           \
  ROW(kMeshZ, "mesh.z")           \
  ROW(kStream, "stream")          \
  ROW(kBulk, "bulk")              \
  ROW(kMma, "mma")                \
  ROW(kGroup, "group")

#define FUSEBOX_MemoryType(ROW) \
  ROW(kUnset, "unset")          \
  ROW(kLocal, "local")          \
  ROW(kShared, "shared")        \
  ROW(kGlobal, "global")        \
  ROW(kSymmetric, "symmetric")

#define FUSEBOX_Contiguity(ROW) \
  ROW(kFalse, "false")          \
  ROW(kTrue, "true")            \
  ROW(kNone, "none")

#define FUSEBOX_SwizzleType(ROW) \
  ROW(kXor, "xor")               \
  ROW(kCyclic, "cyclic")

#define FUSEBOX_TransformKind(ROW) \
  ROW(kSplit, "split")             \
  ROW(kMerge, "merge")             \
  ROW(kSwizzle, "swizzle")         \
  ROW(kResize, "resize")

#define FUSEBOX_ValueKind(ROW)         \
  ROW(kTensor, "tensor")               \
  ROW(kScalar, "scalar")               \
  ROW(kStream, "stream")               \
  ROW(kEvent, "event")                 \
  ROW(kCommunication, "communication") \
  ROW(kMbarrier, "mbarrier")           \
  ROW(kTensorMap, "tensor_map")

#define FUSEBOX_CopyKind(ROW)     \
  ROW(kSet, "set")                \
  ROW(kLoadMatrix, "load_matrix") \
  ROW(kCpAsync, "cp_async")       \
  ROW(kTma, "tma")

#define FUSEBOX_CacheOp(ROW)       \
  ROW(kUnspecified, "unspecified") \
  ROW(kAllLevels, "all_levels")    \
  ROW(kStreaming, "streaming")     \
  ROW(kGlobal, "global")

#define FUSEBOX_ReduceOp(ROW) \
  ROW(kSum, "sum")            \
  ROW(kProd, "prod")          \
  ROW(kMin, "min")            \
  ROW(kMax, "max")            \
  ROW(kWelford, "welford")

#define FUSEBOX_SegmentExecutor(ROW) \
  ROW(kKernel, "kernel")             \
  ROW(kAten, "aten")                 \
  ROW(kCommunicate, "communicate")   \
  ROW(kView, "view")

#define FUSEBOX_CommunicationKind(ROW)  \
  ROW(kGather, "gather")                \
  ROW(kAllgather, "allgather")          \
  ROW(kScatter, "scatter")              \
  ROW(kReduce, "reduce")                \
  ROW(kAllreduce, "allreduce")          \
  ROW(kReduceScatter, "reduce_scatter") \
  ROW(kBroadcast, "broadcast")          \
  ROW(kSendRecv, "send_recv")           \
  ROW(kAllToAll, "all_to_all")          \
  ROW(kCollectivePermute, "collective_permute")

#define FUSEBOX_InputGenerator(ROW) \
  ROW(kNormal, "normal")            \
  ROW(kUniform, "uniform")          \
  ROW(kIntegers, "integers")        \
  ROW(kBoundary, "boundary")        \
  ROW(kConstant, "constant")

#define FUSEBOX_ENUM_TYPES(TYPE) \
  TYPE(Level)                    \
  TYPE(IterType)                 \
  TYPE(ParallelType)             \
  TYPE(MemoryType)               \
  TYPE(Contiguity)               \
  TYPE(SwizzleType)              \
  TYPE(TransformKind)            \
  TYPE(ValueKind)                \
  TYPE(CopyKind)                 \
  TYPE(CacheOp)                  \
  TYPE(ReduceOp)                 \
  TYPE(SegmentExecutor)          \
  TYPE(CommunicationKind)        \
  TYPE(InputGenerator)
