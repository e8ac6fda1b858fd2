// Ops of a kernel by which threads exchange values, in CUDA (runtime/reduce.cuh).
#include <algorithm>

#include "codegen/cuda_emitter.h"
#include "codegen/cuda_operands.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

constexpr std::string_view kReduceOps[] = {"Sum", "Prod", "Min", "Max", "Merge"};

std::string reduce_text(const Op& op) {
  return std::string(kReduceOps[static_cast<size_t>(op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp))]);
}

}  // namespace

std::string CudaEmitter::threads_of(const Op& op, const std::string& place) const {
  std::string threads;
  for (const int64_t wire : op.attrs.ints(AttrKey::kThreads)) {
    const auto on = static_cast<ParallelType>(wire);
    if (!(is_block(on) || (is_grid(on) && (op.kind == OpKind::kGridReduce || op.kind == OpKind::kClusterReduce))))
      throw Error(
          ErrorCode::kBadAttribute,
          "the op " + std::string(row_of(op.kind).text) + " cannot exchange values along " + std::string(text(on)),
          place);
    static constexpr std::string_view kNames[] = {"kGridX", "kGridY", "kGridZ", "kBlockX", "kBlockY", "kBlockZ"};
    threads += (threads.empty() ? "" : " | ") +
               std::string(kNames[static_cast<size_t>(on) - static_cast<size_t>(ParallelType::kGridX)]);
  }
  return threads.empty() ? "0" : threads;
}

int64_t CudaEmitter::array_elements(const Op& op, std::span<const ValueId> arrays) const {
  const std::string place = op.results.empty() ? "" : "%" + g_[op.results[0]].name;
  const std::string what = "the op " + std::string(row_of(op.kind).text);
  const bool is_welford = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp) == ReduceOp::kWelford;
  if (arrays.size() != (is_welford ? 3 : 1))
    throw Error(ErrorCode::kOperandCount, what + " combines one array, or the three of welford", place);
  const OpId def = g_[arrays[0]].def;
  const auto elements =
      def && g_[def].kind == OpKind::kAllocate ? constant_integer(g_, g_[def].operands[0]) : std::nullopt;
  if (!elements) throw Error(ErrorCode::kIllegalAllocation, what + " needs arrays of a constant size", place);
  return *elements;
}

std::string CudaEmitter::places_of(const Op& op, std::span<const ValueId> list) {
  std::string text = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp) == ReduceOp::kWelford
                         ? "WelfordPlaces" + welford_type(g_[list[0]].dtype, g_[list[2]].dtype)
                         : "Places<" + std::string(cuda_type(g_[list[0]].dtype)) + ">";
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "{" : ", ") + buffer(list[i]);
  return text + "}";
}

void CudaEmitter::grid_reduce(const Op& op) {
  headers_.need(CudaHeader::kReduce);
  const Operands operands(op);
  const std::string place = "%" + g_[op.results.at(0)].name;
  const int64_t elements = array_elements(op, operands.of("value"));
  const bool is_all = op.attrs.flag(AttrKey::kAll);
  const std::string slot = std::to_string(op.attrs.integer(AttrKey::kSlot));
  const ValueId counters = operands.one("sync");
  if (is_all && !counters)
    throw Error(ErrorCode::kOperandCount, "a grid reduction for all blocks needs a buffer of counters", place);
  line(define(op.results[0]) + "grid_reduce<" + reduce_text(op) + ", " + threads_of(op, place) + ", " +
       (is_all ? "kAllBlocks" : "kLastBlock") + ", " + std::to_string(elements) + ">(" +
       places_of(op, operands.of("value")) + ", " + places_of(op, operands.of("in")) + ", " +
       places_of(op, operands.of("via")) + ", " + buffer(operands.one("arrive")) + ", " + slot + ", " +
       (is_all ? "&" + buffer(counters) + "[" + slot + "]" : "nullptr") + ");");
}

void CudaEmitter::cluster_reduce(const Op& op) {
  headers_.need(CudaHeader::kCluster);
  const Operands operands(op);
  const int64_t elements = array_elements(op, operands.of("value"));
  const auto in = operands.of("in");
  const OpId allocation = g_[in[0]].def;
  if (!allocation || g_[allocation].kind != OpKind::kAllocate)
    throw Error(ErrorCode::kIllegalAllocation, "the op cluster_reduce needs places that the kernel allocates",
                "%" + g_[in[0]].name);
  // All lists have as many bytes, whatever their dtypes, and the second set begins in their middle.
  const std::optional<int64_t> known = constant_integer(g_, g_[allocation].operands[0]);
  const int64_t size = size_bytes(g_[in[0]].dtype);
  line("cluster.reduce<" + reduce_text(op) + ", " + threads_of(op, "") + ", " +
       std::to_string(op.attrs.integer(AttrKey::kClusterBlocks)) + ", " + std::to_string(elements) + ">(" +
       places_of(op, operands.of("value")) + ", " + places_of(op, in) + ", " +
       (known ? std::to_string(*known * size / 2)
              : index(g_[allocation].operands[0]) + " * " + std::to_string(size) + " / 2") +
       ", " + places_of(op, operands.of("via")) + ");");
}

void CudaEmitter::collective(const Op& op) {
  headers_.need(CudaHeader::kReduce);
  const Operands operands(op);
  const bool is_broadcast = op.kind == OpKind::kBlockBroadcast;
  const auto values = operands.of("value"), init = operands.of("init"), workspaces = operands.of("in");
  const bool is_welford = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp) == ReduceOp::kWelford && !is_broadcast;
  const std::string place = op.results.empty() ? "" : "%" + g_[op.results[0]].name;
  const size_t count = is_welford ? 3 : 1;
  if (values.size() != count || op.results.size() != count || workspaces.size() != count ||
      (!is_broadcast && init.size() != count))
    throw Error(ErrorCode::kOperandCount,
                "the op " + std::string(row_of(op.kind).text) + " needs " + std::to_string(count) +
                    " values, neutral elements and workspaces",
                place);

  const std::string threads = threads_of(op, place);
  std::vector<Dtype> dtypes;
  for (const ValueId w : workspaces) dtypes.push_back(g_[w].dtype);
  if (is_broadcast) {
    const std::string value = as(values[0], dtypes[0]);
    const std::string text = "block_broadcast<" + threads + ">(" + value + ", " + buffer(workspaces[0]) + ")";
    const std::string whole = cuda_convert(text, dtypes[0], g_[op.results[0]].dtype, headers_);
    line(define(op.results[0]) + whole + ";");
    return;
  }

  // One operand list as one value: the dtype's, or a Welford triple.
  const auto contribution = [&](std::span<const ValueId> from) {
    if (!is_welford) return as(from[0], dtypes[0]);
    return "Welford" + welford_type(dtypes[0], dtypes[2]) + "{" + as(from[0], dtypes[0]) + ", " +
           as(from[1], dtypes[1]) + ", " + as(from[2], dtypes[2]) + "}";
  };
  std::string value = contribution(values);
  if (const ValueId predicate = operands.one("if"))
    value = as(predicate, Dtype::kBool) + " ? " + value + " : " + contribution(init);
  std::string places = is_welford ? "WelfordPlaces" + welford_type(dtypes[0], dtypes[2])
                                  : "Places<" + std::string(cuda_type(dtypes[0])) + ">";
  places += "{";
  for (size_t i = 0; i < count; ++i) places += (i == 0 ? "" : ", ") + buffer(workspaces[i]);
  places += "}";

  std::string text = "block_reduce<" + reduce_text(op) + ", " + threads + ", ";
  text += op.attrs.flag(AttrKey::kAll) ? "kAllThreads" : "kFirstThread";
  text += ">(" + value + ", " + places + ")";
  if (is_welford) {
    line(define_all(op) + text + ";");
  } else {
    text = cuda_convert(text, dtypes[0], g_[op.results[0]].dtype, headers_);
    line(define(op.results[0]) + text + ";");
  }
}

CudaEmitter::Together CudaEmitter::exchanged_together(std::span<const OpId> ops) const {
  constexpr size_t kMost = 8;  // values, which stay in registers
  const Op& first = g_[ops[0]];
  Together found{{}, {ops[0]}, 1};
  const int64_t at_once = first.attrs.integer(AttrKey::kAtOnce, 1);
  const size_t most = at_once > 1                 ? std::min(kMost, static_cast<size_t>(at_once))
                      : first.results.size() == 1 ? kMost
                                                  : 1;
  const auto may_join = [&](const Op& op) {
    if (op.kind != OpKind::kBlockReduce || op.results.size() != first.results.size()) return false;
    const Operands own(op), of_first(first);
    const auto values = own.of("value"), workspaces = own.of("in");
    if (values.size() != op.results.size() || workspaces.size() != op.results.size() || own.one("if")) return false;
    for (size_t i = 0; i < values.size(); ++i)
      if (g_[values[i]].dtype != g_[workspaces[i]].dtype || g_[op.results[i]].dtype != g_[workspaces[i]].dtype)
        return false;
    return op.operands.size() == first.operands.size() && std::ranges::equal(workspaces, of_first.of("in")) &&
           std::ranges::equal(op.attrs.ints(AttrKey::kThreads), first.attrs.ints(AttrKey::kThreads)) &&
           op.attrs.flag(AttrKey::kAll) == first.attrs.flag(AttrKey::kAll) &&
           op.attrs.integer(AttrKey::kAtOnce, 1) == at_once;
  };
  if (!may_join(first)) return found;
  // An op may move before the exchange if it is pure, or reads what no other thread writes. Fewer barriers are enough,
  // because no access relies on those of an exchange (passes/plan/plan_syncs.cc).
  const auto may_move = [&](const Op& op) {
    if (op.kind == OpKind::kLoad) return g_.tensor_of(op.operands[0]).memory == MemoryType::kLocal;
    return demands(op.kind, kPointwise) && !demands(op.kind, kEffect | kRead | kSync | kControl);
  };
  std::vector<OpId> between;
  for (size_t i = 1; i < ops.size() && found.reductions.size() < most; ++i) {
    const Op& op = g_[ops[i]];
    const bool depends = std::ranges::any_of(op.operands, [&](ValueId v) {
      return std::ranges::any_of(found.reductions, [&](OpId r) { return std::ranges::count(g_[r].results, v) > 0; });
    });
    if (depends) break;
    if (may_join(op)) {
      found.before.insert(found.before.end(), between.begin(), between.end());
      between.clear();
      found.reductions.push_back(ops[i]);
      found.count = i + 1;
    } else if (may_move(op)) {
      between.push_back(ops[i]);
    } else {
      break;
    }
  }
  return found;
}

void CudaEmitter::collectives(std::span<const OpId> ops) {
  headers_.need(CudaHeader::kReduce);
  const Op& first = g_[ops[0]];
  const Operands operands(first);
  const auto workspaces = operands.of("in");
  const std::string name = "together" + std::to_string(together_count_++);
  const bool is_welford = first.results.size() == 3;
  const std::string type = is_welford ? "Welford" + welford_type(g_[workspaces[0]].dtype, g_[workspaces[2]].dtype)
                                      : std::string(cuda_type(g_[workspaces[0]].dtype));
  std::string reductions, values;
  for (const OpId id : ops) {
    reductions += ", " + reduce_text(g_[id]);
    std::string parts;
    for (const ValueId v : Operands(g_[id]).of("value")) parts += (parts.empty() ? "" : ", ") + as(v, g_[v].dtype);
    values += (values.empty() ? "" : ", ") + (is_welford ? type + "{" + parts + "}" : parts);
  }
  line(type + " " + name + "[" + std::to_string(ops.size()) + "] = {" + values + "};");
  line("block_reduce_all<" + threads_of(first, "%" + g_[first.results[0]].name) + ", " +
       (first.attrs.flag(AttrKey::kAll) ? "kAllThreads" : "kFirstThread") + ", " +
       std::to_string(first.attrs.integer(AttrKey::kAtOnce, 1)) + reductions + ">(" + name + ", " +
       places_of(first, workspaces) + ");");
  for (size_t i = 0; i < ops.size(); ++i)
    line((is_welford ? define_all(g_[ops[i]]) : define(g_[ops[i]].results[0])) + name + "[" + std::to_string(i) + "];");
}

void CudaEmitter::warp_reduce(const Op& op) {
  headers_.need(CudaHeader::kReduce);
  const bool is_welford = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp) == ReduceOp::kWelford;
  const std::string place = op.results.empty() ? "" : "%" + g_[op.results[0]].name;
  if (op.operands.size() != (is_welford ? 3 : 1) || op.results.size() != op.operands.size())
    throw Error(ErrorCode::kOperandCount, "welford combines three values, other reductions one", place);
  const auto dtype_of = [&](size_t i) { return g_[op.results[i]].dtype; };
  const std::string text =
      "warp_reduce<" + reduce_text(op) + ", " + std::to_string(op.attrs.integer(AttrKey::kWidth, 1)) + ">(";
  if (is_welford)
    return line(define_all(op) + text + "Welford" + welford_type(dtype_of(0), dtype_of(2)) + "{" +
                as(op.operands[0], dtype_of(0)) + ", " + as(op.operands[1], dtype_of(1)) + ", " +
                as(op.operands[2], dtype_of(2)) + "});");
  line(define(op.results[0]) + text + as(op.operands[0], dtype_of(0)) + ");");
}

void CudaEmitter::welford_combine(const Op& op) {
  if (op.results.size() != 3) throw Error(ErrorCode::kOperandCount, "welford_combine has three results");
  const Dtype value = g_[op.results[0]].dtype, count = g_[op.results[2]].dtype;
  const std::string type = "Welford" + welford_type(value, count);
  const auto triple = [&](size_t first) {
    return type + "{" + as(op.operands.at(first), value) + ", " + as(op.operands.at(first + 1), value) + ", " +
           as(op.operands.at(first + 2), count) + "}";
  };
  const std::string a = triple(0), b = triple(3);
  const ValueId m2 = op.operands.at(4);
  const bool is_zero = g_[m2].constant && *g_[m2].constant == ConstantBits{};
  if (is_zero && constant_integer(g_, op.operands.at(5)) == 1)
    return line(define_all(op) + "welford_add(" + a + ", " + as(op.operands.at(3), value) + ");");
  line(define_all(op) + "welford_combine(" + a + ", " + b + ");");
}

}  // namespace fusebox
