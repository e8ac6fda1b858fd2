// Rules of kernel and host ops. Their results are scalars, buffers and handles.
#include <algorithm>
#include <initializer_list>
#include <span>

#include "ir/infer/infer_rules.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace {

void need_dtype(const OpView& c, ValueId v, bool holds, std::string_view what) {
  if (!holds)
    fail(c.g, ErrorCode::kDtypeMismatch,
         op_text(c.kind) + " needs " + std::string(what) + " here, not " + std::string(text(c.g[v].dtype)) +
             "; cast it first",
         v);
}
void need_index(const OpView& c, ValueId v) {
  if (v) need_dtype(c, v, c.g[v].dtype == Dtype::kIndex, "an index");
}
void need_predicate(const OpView& c, ValueId v) {
  if (v) need_dtype(c, v, c.g[v].dtype == Dtype::kBool, "a bool");
}
void need_same(const OpView& c, ValueId v, Dtype dtype) {
  if (v) need_dtype(c, v, c.g[v].dtype == dtype, text(dtype));
}

Dtype need_declared(const InferContext& c) {
  if (!c.declared)
    fail(c.g, ErrorCode::kTypeAnnotation, op_text(c.kind) + " needs its result's dtype to be written", c.operand(0));
  return *c.declared;
}

ResultSpec scalar_spec(Dtype dtype) {
  ResultSpec spec;
  spec.dtype = dtype;
  return spec;
}
ResultSpec handle_spec(ValueKind kind) {
  ResultSpec spec;
  spec.kind = kind;
  return spec;
}

std::vector<Axis> axes_of_sizes(InferContext& c, size_t slot) {
  const std::vector<ValueId> sizes(c.slot(slot).begin(), c.slot(slot).end());
  std::vector<Axis> axes;
  for (ValueId v : sizes) {
    Axis axis;
    axis.extent = checked_size(c, v);
    axes.push_back(axis);
  }
  return axes;
}

void check_kind(const OpView& c, ValueId v, ValueKind kind) {
  if (c.g[v].kind != kind)
    fail(c.g, ErrorCode::kWrongKind,
         op_text(c.kind) + " needs a " + std::string(text(kind)) + ", not a " + std::string(text(c.g[v].kind)), v);
}

// The slots of a collective's format.
enum CollectiveSlot : size_t {
  kCollectiveValues,
  kCollectiveInit,
  kCollectiveWorkspaces,
  kCollectivePredicate,
  kCollectiveSync
};

void check_threads(const OpView& c, ValueId place) {
  const auto list = c.attrs.ints(AttrKey::kThreads);
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0 || list[i] > static_cast<int64_t>(ParallelType::kBlockZ) ||
        !is_thread(static_cast<ParallelType>(list[i])))
      fail(c.g, ErrorCode::kBadAttribute, op_text(c.kind) + " names a parallel type that is no thread's in `threads`",
           place);
    if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list[i]) !=
        list.begin() + static_cast<std::ptrdiff_t>(i))
      fail(c.g, ErrorCode::kBadAttribute,
           op_text(c.kind) + " names " + std::string(text(static_cast<ParallelType>(list[i]))) +
               " twice in `threads`; name each axis once",
           place);
  }
}

// The values that an exchange combines: one, or the three of welford. Average and sum of squares have one dtype, and the
// count has it too, or is an integer.
void check_values(const OpView& c, std::span<const ValueId> values, std::string_view what) {
  const bool is_welford = c.attrs.enumerator(AttrKey::kReduceOp, ReduceOp::kSum) == ReduceOp::kWelford;
  if (values.size() != (is_welford ? 3 : 1))
    fail(c.g, ErrorCode::kOperandCount,
         op_text(c.kind) + " combines one " + std::string(what) + ", or the three of welford", values[0]);
  if (!is_welford) return;
  need_same(c, values[1], c.g[values[0]].dtype);
  if (!is_integer(c.g[values[2]].dtype)) need_same(c, values[2], c.g[values[0]].dtype);
}

// The number of elements of a buffer that a kernel allocates, if it is a constant.
std::optional<int64_t> elements_of(const Graph& g, ValueId buffer) {
  const OpId def = g[buffer].def;
  if (!def || g[def].kind != OpKind::kAllocate || !g[def].operands[0]) return std::nullopt;
  return constant_integer(g, g[def].operands[0]);
}

void check_collective(const OpView& c) {
  const auto values = c.slot(kCollectiveValues), init = c.slot(kCollectiveInit), in = c.slot(kCollectiveWorkspaces);
  if (values.empty()) fail(c.g, ErrorCode::kOperandCount, op_text(c.kind) + " needs a value", {});
  need_predicate(c, c.slot(kCollectivePredicate)[0]);
  check_values(c, values, "value");
  for (size_t i = 0; i < values.size(); ++i) {
    need_same(c, init[i], c.g[values[i]].dtype);
    need_same(c, in[i], c.g[values[i]].dtype);
    if (c.g.tensor_of(in[i]).memory == MemoryType::kLocal)
      fail(c.g, ErrorCode::kBadAttribute,
           op_text(c.kind) + " has a workspace that one thread sees alone; allocate it in shared memory", in[i]);
  }
  if (const ValueId sync = c.slot(kCollectiveSync)[0])
    fail(c.g, ErrorCode::kOperandCount, op_text(c.kind) + " waits for no other block; leave `sync` out", sync);
  check_threads(c, values[0]);
  constexpr int64_t kMostAtOnce = 16;
  if (const int64_t at_once = c.attrs.integer(AttrKey::kAtOnce, 1); at_once < 1 || at_once > kMostAtOnce)
    fail(c.g, ErrorCode::kBadAttribute,
         op_text(c.kind) + " takes 1 to " + std::to_string(kMostAtOnce) + " values of a thread in `at_once`",
         values[0]);
  const auto threads = c.attrs.ints(AttrKey::kThreads);
  const bool is_in_block =
      std::ranges::all_of(threads, [](int64_t p) { return is_block(static_cast<ParallelType>(p)); });
  if (threads.empty() || !is_in_block)
    fail(c.g, ErrorCode::kBadAttribute,
         op_text(c.kind) + " goes over threads of one block; name block.x, block.y or block.z in `threads`", values[0]);
}

// Groups of lanes divide a warp.
void check_warp_reduce(const OpView& c) {
  const auto values = c.slot(0);
  if (values.empty()) fail(c.g, ErrorCode::kOperandCount, "warp_reduce needs a value", {});
  check_values(c, values, "value");
  const int64_t width = c.attrs.integer(AttrKey::kWidth, 1);
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    fail(c.g, ErrorCode::kBadAttribute, "warp_reduce needs a power of two up to 32 in `width`", values[0]);
}

// Counters are numbered from 0.
void check_slot(const OpView& c, ValueId counters) {
  if (c.attrs.integer(AttrKey::kSlot) < 0)
    fail(c.g, ErrorCode::kBadAttribute, op_text(c.kind) + " numbers its counters from 0; give such a `slot`", counters);
}

// The slots of a grid reduction's format.
enum GridReduceSlot : size_t { kGridArrays, kGridWorkspaces, kGridShared, kGridArrivals, kGridSync };

// The arrays that blocks combine, and their workspaces.
void check_arrays(const OpView& c, std::span<const ValueId> arrays,
                  std::initializer_list<std::span<const ValueId>> workspaces) {
  const Graph& g = c.g;
  if (arrays.empty()) fail(g, ErrorCode::kOperandCount, op_text(c.kind) + " needs an array", {});
  check_values(c, arrays, "array");
  const auto elements = elements_of(g, arrays[0]);
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (g.tensor_of(arrays[i]).memory != MemoryType::kLocal || !elements || elements_of(g, arrays[i]) != elements)
      fail(g, ErrorCode::kBadAttribute, op_text(c.kind) + " combines local buffers of one constant size", arrays[i]);
    for (const auto& list : workspaces) need_same(c, list[i], g[arrays[i]].dtype);
  }
}

void check_grid_reduce(const OpView& c) {
  const Graph& g = c.g;
  const auto arrays = c.slot(kGridArrays), in = c.slot(kGridWorkspaces), via = c.slot(kGridShared);
  check_arrays(c, arrays, {in, via});
  need_same(c, c.slot(kGridArrivals)[0], Dtype::kUint32);
  const ValueId sync = c.slot(kGridSync)[0];
  need_same(c, sync, Dtype::kUint32);
  if (c.attrs.flag(AttrKey::kAll) != static_cast<bool>(sync))
    fail(g, ErrorCode::kOperandCount,
         "grid_reduce needs a buffer of counters in `sync` to wait for its result, if and only if it says `all`",
         arrays[0]);
  check_slot(c, c.slot(kGridArrivals)[0]);
  check_threads(c, arrays[0]);
}

void check_cluster(const OpView& c) {
  const int64_t blocks = c.attrs.integer(AttrKey::kClusterBlocks);
  const auto axis = c.attrs.enumerator(AttrKey::kParallel, ParallelType::kSerial);
  if (!is_thread(axis) || !is_grid(axis)) fail(c.g, ErrorCode::kBadAttribute, "cluster needs a grid axis in `on`", {});
  if (blocks != 2 && blocks != 4 && blocks != 8)
    fail(c.g, ErrorCode::kBadAttribute, "cluster needs `cluster_blocks` of 2, 4 or 8", {});
}

// The slots of a cluster's reduction. The parts have places for two exchanges, which take them in turn.
enum ClusterReduceSlot : size_t { kClusterArrays, kClusterParts, kClusterShared };

void check_cluster_reduce(const OpView& c) {
  constexpr int64_t kMostBlocks = 8;
  const Graph& g = c.g;
  const auto arrays = c.slot(kClusterArrays), in = c.slot(kClusterParts), via = c.slot(kClusterShared);
  check_arrays(c, arrays, {in, via});
  for (ValueId v : in)
    if (g.tensor_of(v).memory != MemoryType::kShared)
      fail(g, ErrorCode::kBadAttribute, "cluster_reduce keeps the parts of all blocks in shared memory", v);
  if (const int64_t blocks = c.attrs.integer(AttrKey::kClusterBlocks); blocks < 1 || blocks > kMostBlocks)
    fail(g, ErrorCode::kBadAttribute, "cluster_reduce needs `cluster_blocks` from 1 to 8", arrays[0]);
  check_threads(c, arrays[0]);
}

}  // namespace

void check_low_level(const OpView& c) {
  const Graph& g = c.g;
  const auto o = [&](size_t i) { return c.operand(i); };
  switch (c.kind) {
    case OpKind::kFor:
      for (size_t i = 0; i < 3; ++i) need_index(c, o(i));
      if (o(2) && constant_integer(g, o(2)).value_or(1) < 1)
        fail(g, ErrorCode::kBadAttribute, "for needs a step of 1 or more", {});
      return;
    case OpKind::kIf:
    case OpKind::kCheck:
    case OpKind::kAssume:
      return need_predicate(c, o(0));
    case OpKind::kLaunchBound: {
      constexpr int64_t kMostThreads = 1024, kMostBlocks = 32;  // of a block, and on a multiprocessor of any GPU
      const int64_t threads = c.attrs.integer(AttrKey::kMostThreads), blocks = c.attrs.integer(AttrKey::kLeastBlocks);
      if (threads < 1 || threads > kMostThreads)
        fail(g, ErrorCode::kBadAttribute, "launch_bound needs `most_threads` from 1 to 1024", {});
      if (c.attrs.has(AttrKey::kLeastBlocks) && (blocks < 1 || blocks > kMostBlocks))
        fail(g, ErrorCode::kBadAttribute, "launch_bound needs `least_blocks` from 1 to 32", {});
      return;
    }
    case OpKind::kDependentLaunch:
      return;
    case OpKind::kCluster:
      return check_cluster(c);
    case OpKind::kClusterReduce:
      return check_cluster_reduce(c);
    case OpKind::kPreparedDiv:
      need_index(c, o(0));
      need_index(c, o(1));
      return need_same(c, o(2), Dtype::kInt64);
    case OpKind::kPrepareDiv:
      return need_index(c, o(0));
    case OpKind::kPhilox:
      need_same(c, o(0), Dtype::kUint64);
      need_same(c, o(1), Dtype::kUint64);
      need_index(c, o(2));
      if (const int64_t stream = c.attrs.integer(AttrKey::kSlot); stream < 0 || stream > 3)
        fail(g, ErrorCode::kBadAttribute, "philox has the streams 0 to 3; give one of them in `slot`", o(2));
      return;
    case OpKind::kAllocate: {
      need_index(c, o(0));
      need_index(c, o(1));
      const auto memory = c.attrs.enumerator(AttrKey::kMemory, MemoryType::kLocal);
      if (memory != MemoryType::kLocal && memory != MemoryType::kShared)
        fail(g, ErrorCode::kBadAttribute, "a kernel allocates local or shared memory; take global buffers as inputs",
             o(0));
      if (memory == MemoryType::kLocal && !g.is_constant(o(0)))
        fail(g, ErrorCode::kBadAttribute, "a local buffer has a constant number of elements", o(0));
      return;
    }
    case OpKind::kLoad:
      need_index(c, o(1));
      need_predicate(c, o(2));
      return need_same(c, o(3), g[o(0)].dtype);
    case OpKind::kStore:
      need_index(c, o(1));
      need_same(c, o(2), g[o(0)].dtype);
      return need_predicate(c, o(3));
    case OpKind::kCopy: {
      need_index(c, o(1));
      need_index(c, o(3));
      need_predicate(c, o(4));
      need_same(c, o(2), g[o(0)].dtype);
      const int64_t width = c.attrs.integer(AttrKey::kWidth, 1), bytes = width * size_bytes(g[o(0)].dtype);
      if (width < 1 || width > 16 || bytes > 16 || (bytes & (bytes - 1)) != 0)
        fail(g, ErrorCode::kBadAttribute, "a copy moves 1, 2, 4, 8 or 16 bytes at once; give a width that does", o(0));
      return;
    }
    case OpKind::kThreadIndex:
    case OpKind::kThreadCount:
      if (!is_thread(c.attrs.enumerator(AttrKey::kParallel, ParallelType::kSerial)))
        fail(g, ErrorCode::kBadAttribute, op_text(c.kind) + " needs a block or grid axis in `on`", {});
      return;
    case OpKind::kGridBarrier:
      need_same(c, o(0), Dtype::kUint32);
      return check_slot(c, o(0));
    case OpKind::kBlockReduce:
    case OpKind::kBlockBroadcast:
      return check_collective(c);
    case OpKind::kGridReduce:
      return check_grid_reduce(c);
    case OpKind::kWarpReduce:
      return check_warp_reduce(c);
    case OpKind::kAliasSelect: {
      need_index(c, o(1));
      const int64_t axis = c.attrs.integer(AttrKey::kAxis), rank = static_cast<int64_t>(rank_of(g, o(0)));
      if (axis < -rank || axis >= rank)
        fail(g, ErrorCode::kBadAxis, "alias_select names an axis that the tensor does not have", o(0));
      return;
    }
    case OpKind::kTensorStride:
      if (const int64_t axis = c.attrs.integer(AttrKey::kAxis);
          axis < 0 || axis >= static_cast<int64_t>(rank_of(g, o(0))))
        fail(g, ErrorCode::kBadAxis, "tensor_stride counts axes from 0; give an axis of the tensor", o(0));
      return;
    case OpKind::kSetStream:
    case OpKind::kPost:
      return check_kind(c, o(0), ValueKind::kStream);
    case OpKind::kRecordEvent:
      if (o(0)) check_kind(c, o(0), ValueKind::kStream);
      return;
    case OpKind::kCopyTensor:
      check_kind(c, o(0), ValueKind::kTensor);
      check_kind(c, o(1), ValueKind::kTensor);
      return need_same(c, o(1), g[o(0)].dtype);
    case OpKind::kDeallocate:
      return check_kind(c, o(0), ValueKind::kTensor);
    case OpKind::kLaunch:
      for (size_t i = 0; i < 7; ++i) need_index(c, o(i));
      return;
    case OpKind::kWithin:
      need_dtype(c, o(0), is_integer(g[o(0)].dtype), "an integer");
      need_index(c, o(1));
      if (static_cast<bool>(o(1)) == static_cast<bool>(o(2)))
        fail(g, ErrorCode::kOperandCount, "within takes an extent or an argument; give one of them", o(0));
      if (o(2) && c.attrs.integer(AttrKey::kAxis, -1) < 0)
        fail(g, ErrorCode::kBadAxis, "within counts axes from 0; give an axis of the argument", o(2));
      return;
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_STRUCTURE_OPS:
    case FUSEBOX_TENSOR_OPS:
    case OpKind::kBarrier:
    case OpKind::kClusterArrive:
    case OpKind::kClusterWait:
    case OpKind::kWelfordCombine:
    case OpKind::kRunAten:
    case OpKind::kAllocateTensor:
    case OpKind::kAliasView:
    case OpKind::kCreateStream:
    case OpKind::kGetStream:
    case OpKind::kSynchronize:
    case OpKind::kWaitEvent:
    case OpKind::kCommunicate:
    case OpKind::kWait:
    case OpKind::kTensorAlignment:
      return;  // the format says everything, or another place checks the rest
  }
}

std::vector<ResultSpec> infer_low_level(InferContext& c) {
  check_low_level(c.view());
  Graph& g = c.g;
  const auto o = [&](size_t i) { return c.operand(i); };
  switch (c.kind) {
    case OpKind::kAllocate: {
      Axis axis;
      axis.extent = o(0);
      ResultSpec spec = tensor_spec(c, need_declared(c), {axis});
      spec.memory = c.attrs.enumerator(AttrKey::kMemory, MemoryType::kLocal);
      return {spec};
    }
    case OpKind::kLoad:
      return {scalar_spec(g[o(0)].dtype)};
    case OpKind::kThreadIndex:
    case OpKind::kThreadCount:
    case OpKind::kTensorStride:
    case OpKind::kTensorAlignment:
    case OpKind::kPreparedDiv:
      return {scalar_spec(Dtype::kIndex)};
    case OpKind::kPrepareDiv:
      return {scalar_spec(Dtype::kInt64)};
    case OpKind::kPhilox:
      return {scalar_spec(Dtype::kUint32)};
    case OpKind::kGridReduce:
      return {scalar_spec(Dtype::kBool)};
    case OpKind::kBlockReduce:
    case OpKind::kBlockBroadcast:
    case OpKind::kWarpReduce: {
      std::vector<ResultSpec> results;
      for (ValueId v : c.view().slot(kCollectiveValues)) results.push_back(scalar_spec(g[v].dtype));
      return results;
    }
    case OpKind::kAllocateTensor: {
      ResultSpec spec = tensor_spec(c, need_declared(c), axes_of_sizes(c, 0));
      spec.memory = c.attrs.enumerator(AttrKey::kMemory, MemoryType::kGlobal);
      return {spec};
    }
    case OpKind::kAliasSelect: {
      std::vector<Axis> axes = axes_of(c, o(0));
      const size_t axis = checked_axis(c, c.attrs.integer(AttrKey::kAxis), axes.size());
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
      return {tensor_spec(c, g[o(0)].dtype, std::move(axes))};
    }
    case OpKind::kAliasView:
      return {tensor_spec(c, g[o(0)].dtype, axes_of_sizes(c, 1))};
    case OpKind::kCreateStream:
    case OpKind::kGetStream:
      return {handle_spec(ValueKind::kStream)};
    case OpKind::kRecordEvent:
      return {handle_spec(ValueKind::kEvent)};
    case OpKind::kCommunicate:
      return {handle_spec(ValueKind::kCommunication)};
    case FUSEBOX_EFFECT_OPS:
      return {};
    case FUSEBOX_STRUCTURE_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_TENSOR_OPS:
    case OpKind::kWelfordCombine:
      break;
  }
  not_in_family(c.kind, "is no statement of a kernel or a host program");
}

}  // namespace fusebox
