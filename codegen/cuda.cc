#include "codegen/cuda.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "codegen/cuda_expression.h"
#include "codegen/cuda_names.h"
#include "codegen/cuda_operands.h"
#include "codegen/divisors.h"
#include "codegen/hoist.h"
#include "codegen/load_groups.h"
#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

constexpr std::string_view kCoordinates[] = {"x", "y", "z"};

class Emitter {
 public:
  Emitter(const Graph& graph, const CudaOptions& options) : g_(graph), options_(options), names_(graph) {}

  // Adds the headers that the text needs to `headers`.
  std::string emit(CudaHeaders& headers);

 private:
  // -- what is known before anything is written
  void look_ahead();
  void parameters();
  std::string launch_bounds() const;
  // -- ops
  void region(RegionId id);
  void op(const Op& op);
  void scalar(const Op& op);
  void thread(const Op& op);
  void loop(const Op& op);
  void branch(const Op& op);
  void allocate(const Op& op);
  void load(const Op& op);
  void store(const Op& op);
  void copy(const Op& op);
  void collective(const Op& op);
  void grid_reduce(const Op& op);
  // The coordinates along which a collective exchanges values, as a template argument.
  std::string threads_of(const Op& op, const std::string& place) const;
  void welford_combine(const Op& op);

  // -- pieces
  void line(const std::string& text) { body_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n"; }
  void prepare_divisor(ValueId v);
  std::string prepared_divisor(ValueId v, bool is_fast) const;
  void divide_in_loop(RegionId inner, const std::set<ValueId>& divisors, const std::function<void(RegionId)>& emit);
  CudaTerm term(ValueId v) const {
    if (!v) throw Error(ErrorCode::kInvalidGraph, "an operand is missing");
    if (g_.is_tensor(v))
      throw Error(ErrorCode::kWrongKind, "a buffer stands where a scalar is needed", "%" + g_[v].name);
    if (!g_[v].constant && names_[v].empty())
      throw Error(ErrorCode::kNotDominated, "used before it is defined", "%" + g_[v].name);
    return {names_[v], g_[v].dtype, g_[v].constant};
  }
  std::string as(ValueId v, Dtype dtype, bool bare = false) { return cuda_term(term(v), dtype, headers_, bare); }
  std::string index(ValueId v) { return as(v, Dtype::kIndex, true); }
  const std::string& buffer(ValueId v) const {
    if (!v || !g_.is_tensor(v))
      throw Error(ErrorCode::kWrongKind, "a scalar stands where a buffer is needed", v ? "%" + g_[v].name : "");
    return names_[v];
  }
  std::string place(ValueId tensor, ValueId at) { return buffer(tensor) + "[" + index(at) + "]"; }
  // `const T name = `, with the result named after its dtype.
  std::string define(ValueId result) {
    return "const " + std::string(cuda_type(g_[result].dtype)) + " " + names_.define(result) + " = ";
  }
  // `const auto [a, b, c] = `
  std::string define_all(const Op& op) {
    std::string text = "const auto [";
    for (size_t i = 0; i < op.results.size(); ++i) text += (i == 0 ? "" : ", ") + names_.define(op.results[i]);
    return text + "] = ";
  }
  // The cache operator of an access to global memory, as a template argument; empty: the default.
  std::string cache(const Op& op, ValueId tensor) const;
  std::string welford_type(Dtype value, Dtype count) {
    headers_.need(CudaHeader::kCombine);
    return "<" + std::string(cuda_type(value)) + ", " + std::string(cuda_type(count)) + ">";
  }

  const Graph& g_;
  const CudaOptions& options_;
  CudaNames names_;
  CudaHeaders headers_;
  std::string body_, comment_, signature_;
  int depth_ = 1, loops_ = 0;                // of the line that comes next, and the loops around it
  std::set<ValueId> written_;                // buffers that the kernel stores to
  std::map<ValueId, int64_t> vector_bytes_;  // the widest vector access of a buffer
  bool uses_shared_ = false;
  Divisors wanted_;
  std::map<ValueId, std::string> divisors_, reciprocals_;  // the prepared ones, by name
  int outside_count_ = 0;
  std::string outside_;  // of the loop around, if it runs again for dividends that are out of range
};

void Emitter::look_ahead() {
  written_ = stored_buffers(g_);
  for (const OpId id : ops_in_order(g_)) {
    const Op& op = g_[id];
    if (op.kind != OpKind::kCopy) continue;
    for (const ValueId v : {op.operands[0], Operands(op).one("from")}) {
      int64_t& bytes = vector_bytes_[v];
      bytes = std::max(bytes, op.attrs.integer(AttrKey::kWidth, 1) * size_bytes(g_[v].dtype));
    }
  }
}

void Emitter::prepare_divisor(ValueId v) {
  const auto prepare = [&](const std::set<ValueId>& wanted, std::map<ValueId, std::string>& names, CudaHeader header,
                           std::string_view letter, const std::string& head, std::string_view tail) {
    if (!wanted.contains(v)) return;
    headers_.need(header);
    const std::string& name = names[v] = std::string(letter) + std::to_string(names.size());
    line("const " + head + " " + name + std::string(tail) + "(" + as(v, Dtype::kFloat) + ");");
  };
  prepare(wanted_.exact, divisors_, CudaHeader::kDivision, "d", "Divisor", " = Divisor");
  prepare(wanted_.fast, reciprocals_, CudaHeader::kFast, "r", "float", " = fast::reciprocal");
}

std::string Emitter::prepared_divisor(ValueId v, bool is_fast) const {
  const auto& names = is_fast ? reciprocals_ : divisors_;
  const auto found = names.find(v);
  if (found == names.end()) return {};
  return found->second + (is_fast || outside_.empty() ? std::string() : ", " + outside_);
}

// The bounds that the kernel states, or else the caller's. One block on a multiprocessor is what a compiler provides for
// anyway, and is not written.
std::string Emitter::launch_bounds() const {
  int64_t threads = options_.max_threads, blocks = 1;
  for (const OpId id : g_[Graph::body()].ops) {
    if (g_[id].kind != OpKind::kLaunchBound) continue;
    threads = g_[id].attrs.integer(AttrKey::kMostThreads);
    blocks = g_[id].attrs.integer(AttrKey::kLeastBlocks, 1);
  }
  if (threads <= 0) return {};
  return "__launch_bounds__(" + std::to_string(threads) + (blocks > 1 ? ", " + std::to_string(blocks) : "") + ") ";
}

void Emitter::parameters() {
  std::string list;
  const std::vector<ValueId> all = inputs(g_);
  size_t widest = 0;
  std::vector<std::string> types;
  for (const ValueId v : all) {
    const std::string type(cuda_type(g_[v].dtype));
    const bool is_written = written_.contains(v);
    types.push_back(!g_.is_tensor(v) ? type : (is_written ? "" : "const ") + type + "*");
    widest = std::max(widest, types.back().size());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const ValueId v = all[i];
    const std::string& name = names_.define(v, g_.is_tensor(v) ? "t" : "s");
    const bool restricts = g_.is_tensor(v) && !written_.contains(v) && options_.reads_apart;
    list += (list.empty() ? "" : ", ") + types[i] + (restricts ? " __restrict__ " : " ") + name;
    comment_ += "//   " + types[i] + std::string(widest - types[i].size() + 1, ' ') + name;
    if (g_.is_tensor(v)) comment_ += written_.contains(v) ? ": written" : ": read";
    comment_ += "\n";
  }
  signature_ = "extern \"C\" __global__ void ";
  signature_ += launch_bounds();
  signature_ += options_.entry + "(" + list + ")";
}

std::string Emitter::cache(const Op& op, ValueId tensor) const {
  const MemoryType memory = g_.tensor_of(tensor).memory;
  const bool is_global = memory != MemoryType::kLocal && memory != MemoryType::kShared;
  switch (is_global ? op.attrs.enumerator<CacheOp>(AttrKey::kCacheOp) : CacheOp::kUnspecified) {
    case CacheOp::kUnspecified:
      return {};
    case CacheOp::kAllLevels:
      return "Cache::kAllLevels";
    case CacheOp::kStreaming:
      return "Cache::kStreaming";
    case CacheOp::kGlobal:
      return "Cache::kGlobal";
  }
  return {};
}

// A run of two loads or more is followed by `issue_loads`. In a loop, only a run of whole loops is: the loads of one
// iteration may wait for those of the next.
void Emitter::region(RegionId id) {
  int loads = 0;
  for (const OpId inner : g_[id].ops) {
    const Op& next = g_[inner];
    if (!is_between_loads(g_, next)) {
      const int more = loops_ > 0 && !has_loop(g_, next) ? 0 : loads_of(g_, next);
      if (more == 0 && loads > 1) {
        headers_.need(CudaHeader::kMemory);
        line("issue_loads();");
      }
      loads = more == 0 ? 0 : loads + more;
    }
    op(next);
    for (const ValueId r : next.results) prepare_divisor(r);
  }
  if (depth_ > 1 && options_.defects.has(Defect::kCudaNamesRepeat)) names_.restart();
}

void Emitter::scalar(const Op& op) {
  std::vector<CudaTerm> operands;
  for (const ValueId v : op.operands) operands.push_back(term(v));
  if (op.kind == OpKind::kDiv || op.kind == OpKind::kTruediv)
    operands[1].divisor = prepared_divisor(op.operands[1], op.attrs.flag(AttrKey::kFast));
  const Dtype dtype = g_[op.results.at(0)].dtype;
  try {
    const std::string text = cuda_expression(op.kind, op.attrs, operands, dtype, headers_);
    line(define(op.results[0]) + text + ";");
  } catch (Error& e) {
    if (e.place.empty()) e.place = "%" + g_[op.results[0]].name;
    throw;
  }
}

void Emitter::thread(const Op& op) {
  const auto on = op.attrs.enumerator<ParallelType>(AttrKey::kParallel);
  if (!is_thread(on))
    throw Error(ErrorCode::kBadAttribute,
                "a thread index is on a grid or block coordinate, not " + std::string(text(on)));
  const bool is_index = op.kind == OpKind::kThreadIndex;
  const std::string_view builtin =
      is_grid(on) ? (is_index ? "blockIdx" : "gridDim") : (is_index ? "threadIdx" : "blockDim");
  const ParallelType x = is_grid(on) ? ParallelType::kGridX : ParallelType::kBlockX;
  const std::string_view coordinate = kCoordinates[static_cast<size_t>(on) - static_cast<size_t>(x)];
  const std::string type(cuda_type(g_[op.results.at(0)].dtype));
  line(define(op.results[0]) + type + "(" + std::string(builtin) + "." + std::string(coordinate) + ");");
}

void Emitter::loop(const Op& op) {
  const RegionId inner = op.regions.at(0);
  const std::string start = index(op.operands[0]), stop = index(op.operands[1]), step = index(op.operands[2]);
  // The compiler may copy a body with an unknown count as often as it likes, which takes minutes if loops stand inside.
  const auto is_constant = [&](ValueId v) { return g_.is_constant(v); };
  bool is_known = is_constant(op.operands[1]);
  if (const OpId def = g_[op.operands[1]].def; !is_known && def && g_[def].kind == OpKind::kAdd) {
    const auto& sum = g_[def].operands;
    is_known = (sum[0] == op.operands[0] && is_constant(sum[1])) || (sum[1] == op.operands[0] && is_constant(sum[0]));
  }
  const auto emit = [&](RegionId body) {
    if (op.attrs.flag(AttrKey::kUnroll) && is_known) line("#pragma unroll");
    const std::string name = g_[inner].index ? names_.define(g_[inner].index, "i") : "i";
    const std::string advance = step == "1" ? "++" + name : name + " += " + step;
    line("for (index_t " + name + " = " + start + "; " + name + " < " + stop + "; " + advance + ") {");
    ++depth_, ++loops_;
    region(body);
    --depth_, --loops_;
    line("}");
  };
  std::set<ValueId> used;
  if (may_divide_twice(g_, inner, wanted_.exact, used))
    divide_in_loop(inner, used, emit);
  else
    emit(inner);
}

// A loop that divides runs again, with plain divisions, if a dividend is out of the range that `quotient` needs. A condition
// around its whole body stands around both loops.
void Emitter::divide_in_loop(RegionId inner, const std::set<ValueId>& divisors,
                             const std::function<void(RegionId)>& emit) {
  RegionId body = inner;
  const Op& first = g_[g_[inner].ops.at(0)];
  const bool is_guarded = g_[inner].ops.size() == 1 && first.kind == OpKind::kIf && first.regions.size() == 1 &&
                          first.operands[0] != g_[inner].index;
  if (is_guarded) {
    body = first.regions[0];
    line("if (" + as(first.operands[0], Dtype::kBool) + ") {");
    ++depth_;
  }
  std::string outside;
  for (const ValueId v : divisors) outside += (outside.empty() ? "" : " | ") + divisors_.at(v) + ".outside";
  outside_ = "outside" + std::to_string(outside_count_++);
  line("uint32_t " + outside_ + " = " + outside + ";");
  emit(body);
  line("if (int32_t(" + std::exchange(outside_, {}) + ") < 0) {  // a dividend is out of range");
  ++depth_;
  const auto prepared = std::exchange(divisors_, {});
  emit(body);
  divisors_ = prepared;
  --depth_;
  line("}");
  if (!is_guarded) return;
  --depth_;
  line("}");
}

void Emitter::branch(const Op& op) {
  line("if (" + as(op.operands[0], Dtype::kBool) + ") {");
  for (size_t i = 0; i < op.regions.size(); ++i) {
    if (i > 0) line("} else {");
    ++depth_;
    region(op.regions[i]);
    --depth_;
  }
  line("}");
}

void Emitter::allocate(const Op& op) {
  const ValueId result = op.results.at(0);
  const Dtype dtype = g_[result].dtype;
  const std::string type(cuda_type(dtype));
  if (op.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kShared) {
    uses_shared_ = true;
    const Operands operands(op);
    const std::string at = operands.one("at") ? index(operands.one("at")) : "0";
    const std::string& name = names_.define(result, "shared");
    line(type + "* const " + name + " = reinterpret_cast<" + type + "*>(shared_memory + " + at + ");");
    return;
  }
  const auto size = constant_integer(g_, op.operands[0]);
  if (!size || *size < 0)
    throw Error(ErrorCode::kIllegalAllocation, "a local buffer needs a constant size", "%" + g_[result].name);
  const auto vector = vector_bytes_.find(result);
  const int64_t align = std::max(op.attrs.integer(AttrKey::kAlign), vector == vector_bytes_.end() ? 0 : vector->second);
  const std::string alignment = align > size_bytes(dtype) ? "alignas(" + std::to_string(align) + ") " : "";
  line(alignment + type + " " + names_.define(result, "local") + "[" + std::to_string(std::max<int64_t>(*size, 1)) +
       "];");
}

void Emitter::load(const Op& op) {
  const Operands operands(op);
  const ValueId from = op.operands[0];
  const ValueId predicate = operands.one("if"), otherwise = operands.one("else");
  const Dtype dtype = g_[from].dtype;
  std::string text = place(from, operands.one("at"));
  if (const std::string c = cache(op, from); !c.empty()) {
    headers_.need(CudaHeader::kMemory);
    text = "load<" + c + ">(&" + text + ")";
  }
  if (predicate) {
    const std::string other = otherwise ? as(otherwise, dtype) : cuda_literal(dtype, {});
    text = as(predicate, Dtype::kBool) + " ? " + text + " : " + other;
  }
  const Dtype result = g_[op.results.at(0)].dtype;
  text = cuda_convert(std::move(text), dtype, result, headers_);
  line(define(op.results[0]) + text + ";");
}

void Emitter::store(const Op& op) {
  const Operands operands(op);
  const ValueId to = op.operands[0];
  const ValueId predicate = operands.one("if");
  const std::string guard = predicate ? "if (" + as(predicate, Dtype::kBool) + ") " : "";
  const std::string value = as(op.operands.at(2), g_[to].dtype);
  const std::string at = place(to, operands.one("at"));
  if (const std::string c = cache(op, to); !c.empty()) {
    headers_.need(CudaHeader::kMemory);
    line(guard + "store<" + c + ">(&" + at + ", " + value + ");");
  } else {
    line(guard + at + " = " + value + ";");
  }
}

void Emitter::copy(const Op& op) {
  const Operands operands(op);
  // Two slots have the keyword `at`: the operands' order tells them apart.
  const ValueId to = op.operands.at(0), to_at = op.operands.at(1), from = op.operands.at(2),
                from_at = op.operands.at(3);
  const ValueId predicate = operands.one("if");
  const std::string guard = predicate ? "if (" + as(predicate, Dtype::kBool) + ") " : "";
  const int64_t width = op.attrs.integer(AttrKey::kWidth, 1);
  const int64_t bytes = width * size_bytes(g_[to].dtype);
  if (width < 1 || bytes > 16 || (bytes & (bytes - 1)) != 0)
    throw Error(ErrorCode::kIllegalVectorize,
                "a vector access has 1, 2, 4, 8 or 16 bytes, not " + std::to_string(bytes), "%" + g_[to].name);
  if (g_[to].dtype != g_[from].dtype)
    throw Error(ErrorCode::kDtypeMismatch, "a copy needs buffers of one dtype", "%" + g_[to].name);
  const std::string reading = cache(op, from), writing = cache(op, to);
  const std::string target = place(to, to_at), source = place(from, from_at);
  if (width == 1 && reading.empty() && writing.empty()) {
    line(guard + target + " = " + source + ";");
    return;
  }
  headers_.need(CudaHeader::kMemory);
  std::string arguments = std::to_string(width);
  if (!reading.empty() || !writing.empty()) arguments += ", " + (reading.empty() ? "Cache::kDefault" : reading);
  if (!writing.empty()) arguments += ", " + writing;
  line(guard + "copy_vector<" + arguments + ">(&" + target + ", &" + source + ");");
}

std::string Emitter::threads_of(const Op& op, const std::string& place) const {
  std::string threads;
  for (const int64_t wire : op.attrs.ints(AttrKey::kThreads)) {
    const auto on = static_cast<ParallelType>(wire);
    if (!(is_block(on) || (is_grid(on) && op.kind == OpKind::kGridReduce)))
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

constexpr std::string_view kReduceOps[] = {"Sum", "Prod", "Min", "Max", "Merge"};

void Emitter::grid_reduce(const Op& op) {
  headers_.need(CudaHeader::kReduce);
  const Operands operands(op);
  const auto arrays = operands.of("value");
  const std::string place = "%" + g_[op.results.at(0)].name;
  const ReduceOp reduce = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp);
  if (arrays.size() != (reduce == ReduceOp::kWelford ? 3 : 1))
    throw Error(ErrorCode::kOperandCount, "a grid reduction combines one array, or the three of welford", place);
  const OpId def = g_[arrays[0]].def;
  const auto elements =
      def && g_[def].kind == OpKind::kAllocate ? constant_integer(g_, g_[def].operands[0]) : std::nullopt;
  if (!elements) throw Error(ErrorCode::kIllegalAllocation, "a grid reduction needs arrays of a constant size", place);
  const auto places = [&](std::string_view keyword) {
    const auto list = operands.of(keyword);
    std::string text = reduce == ReduceOp::kWelford
                           ? "WelfordPlaces" + welford_type(g_[list[0]].dtype, g_[list[2]].dtype)
                           : "Places<" + std::string(cuda_type(g_[list[0]].dtype)) + ">";
    for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "{" : ", ") + buffer(list[i]);
    return text + "}";
  };
  const bool is_all = op.attrs.flag(AttrKey::kAll);
  const std::string slot = std::to_string(op.attrs.integer(AttrKey::kSlot));
  const ValueId counters = operands.one("sync");
  if (is_all && !counters)
    throw Error(ErrorCode::kOperandCount, "a grid reduction for all blocks needs a buffer of counters", place);
  line(define(op.results[0]) + "grid_reduce<" + std::string(kReduceOps[static_cast<size_t>(reduce)]) + ", " +
       threads_of(op, place) + ", " + (is_all ? "kAllBlocks" : "kLastBlock") + ", " + std::to_string(*elements) + ">(" +
       places("value") + ", " + places("in") + ", " + places("via") + ", " + buffer(operands.one("arrive")) + ", " +
       slot + ", " + (is_all ? "&" + buffer(counters) + "[" + slot + "]" : "nullptr") + ");");
}

void Emitter::collective(const Op& op) {
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

  std::string text = "block_reduce<" +
                     std::string(kReduceOps[static_cast<size_t>(op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp))]) +
                     ", " + threads + ", ";
  text += op.attrs.flag(AttrKey::kAll) ? "kAllThreads" : "kFirstThread";
  text += ">(" + value + ", " + places + ")";
  if (is_welford) {
    line(define_all(op) + text + ";");
  } else {
    text = cuda_convert(text, dtypes[0], g_[op.results[0]].dtype, headers_);
    line(define(op.results[0]) + text + ";");
  }
}

void Emitter::welford_combine(const Op& op) {
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

void Emitter::op(const Op& op) {
  switch (op.kind) {
    case OpKind::kInput:
      return;  // the signature has them
    case OpKind::kWithin:
      return;  // only the host checks it
    case OpKind::kFor:
      return loop(op);
    case OpKind::kIf:
      return branch(op);
    case OpKind::kAllocate:
      return allocate(op);
    case OpKind::kLoad:
      return load(op);
    case OpKind::kStore:
      return store(op);
    case OpKind::kCopy:
      return copy(op);
    case OpKind::kThreadIndex:
    case OpKind::kThreadCount:
      return thread(op);
    case OpKind::kPreparedDiv:
      headers_.need(CudaHeader::kInteger);
      return line(define(op.results[0]) + "prepared_div(" + index(op.operands[0]) + ", " +
                  as(op.operands[2], Dtype::kInt64, true) + ");");
    case OpKind::kPhilox:
      headers_.need(CudaHeader::kPhilox);
      return line(define(op.results[0]) + "exact::philox(" + as(op.operands[0], Dtype::kUint64, true) + ", " +
                  as(op.operands[1], Dtype::kUint64, true) + ", " + index(op.operands[2]) + ", " +
                  std::to_string(op.attrs.integer(AttrKey::kSlot)) + "u);");
    case OpKind::kLaunchBound:
      return;  // stands in the signature
    case OpKind::kBarrier:
      return line("__syncthreads();");
    case OpKind::kGridBarrier:
      headers_.need(CudaHeader::kSynchronize);
      return line("grid_barrier(&" + buffer(op.operands.at(0)) + "[" +
                  std::to_string(op.attrs.integer(AttrKey::kSlot)) + "]);");
    case OpKind::kBlockReduce:
    case OpKind::kBlockBroadcast:
      return collective(op);
    case OpKind::kGridReduce:
      return grid_reduce(op);
    case OpKind::kWelfordCombine:
      return welford_combine(op);
    case FUSEBOX_SCALAR_OPS:
      return scalar(op);
    case OpKind::kSize:
    case OpKind::kOutput:
    case OpKind::kAssume:
    case FUSEBOX_TENSOR_OPS:
    case FUSEBOX_HOST_OPS:
      throw Error(ErrorCode::kWrongLevel, "the op " + std::string(row_of(op.kind).text) + " is no op of a kernel",
                  op.results.empty() ? "" : "%" + g_[op.results[0]].name);
  }
}

std::string Emitter::emit(CudaHeaders& headers) {
  look_ahead();
  wanted_ = find_divisors(g_);
  parameters();
  for (size_t i = 0; i < g_.values.size(); ++i)
    if (g_.values[i].constant) prepare_divisor(ValueId(i));
  region(Graph::body());
  for (size_t i = 0; i < std::size(kCudaHeaderNames); ++i)
    if (const auto h = static_cast<CudaHeader>(i); headers_.needs(h)) headers.need(h);

  std::string result = "\nusing index_t = int" + std::to_string(g_.index_bits) + "_t;\n\n";
  result += comment_ + signature_ + " {\n";
  if (uses_shared_) result += "  extern __shared__ __align__(16) unsigned char shared_memory[];\n";
  result += body_ + "}\n";
  return result;
}

std::string includes(const CudaHeaders& headers, const Defects& defects) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::size(kCudaHeaderNames); ++i)
    if (headers.needs(static_cast<CudaHeader>(i)))
      lines.push_back("#include \"" + std::string(kCudaHeaderNames[i]) + "\"\n");
  if (lines.size() > 1 && defects.has(Defect::kCudaHeaderForgotten)) lines.pop_back();
  std::string result;
  for (const std::string& line : lines) result += line;
  return result;
}

std::string function(const Graph& kernel, const CudaOptions& options, CudaHeaders& headers) {
  if (kernel.level != Level::kKernel)
    throw Error(ErrorCode::kWrongLevel,
                "CUDA code is made from a kernel; lower this " + std::string(text(kernel.level)) + " program first");
  Graph canonical = canonicalize(kernel);
  if (options.hoist) hoist(canonical, options.defects);
  return Emitter(canonical, options).emit(headers);
}

}  // namespace

CudaSource emit_cuda(const Graph& kernel, const CudaOptions& options) {
  CudaHeaders headers;
  const std::string made = function(kernel, options, headers);
  return {includes(headers, options.defects) + made, options.entry};
}

CudaModuleSource emit_cuda_module(std::span<const Graph* const> kernels, const CudaOptions& options) {
  CudaHeaders headers;
  CudaModuleSource result;
  std::string functions;
  for (const Graph* kernel : kernels) {
    const std::string number = std::to_string(result.entries.size());
    CudaOptions own = options;
    own.entry += number;
    functions += "\nnamespace kernel" + number + " {\n" + function(*kernel, own, headers) + "}\n";
    result.entries.push_back(own.entry);
  }
  result.text = includes(headers, options.defects) + functions;
  return result;
}

}  // namespace fusebox
