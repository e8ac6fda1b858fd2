#include "codegen/cuda.h"

#include <algorithm>
#include <utility>

#include "codegen/computed_ahead.h"
#include "codegen/cuda_emitter.h"
#include "codegen/cuda_operands.h"
#include "codegen/hoist.h"
#include "codegen/load_groups.h"
#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/kernel/loop_count.h"

namespace fusebox {

void CudaEmitter::look_ahead() {
  written_ = stored_buffers(g_);
  ahead_ = computed_ahead(g_);
  std::set<ValueId> by_element;
  for (const OpId id : ops_in_order(g_)) {
    const Op& op = g_[id];
    if (op.kind == OpKind::kAllocate && is_in_pairs(op)) in_pairs_.insert(op.results[0]);
    const bool is_copy = op.kind == OpKind::kCopy && op.attrs.integer(AttrKey::kWidth, 1) > 1;
    if (!is_copy && op.kind != OpKind::kLoad) by_element.insert(op.operands.begin(), op.operands.end());
    if (op.kind != OpKind::kCopy) continue;
    for (const ValueId v : {op.operands[0], Operands(op).one("from")}) {
      int64_t& bytes = vector_bytes_[v];
      bytes = std::max(bytes, op.attrs.integer(AttrKey::kWidth, 1) * size_bytes(g_[v].dtype));
    }
  }
  std::erase_if(in_pairs_, [&](ValueId v) { return by_element.contains(v) || !vector_bytes_.contains(v); });
}

bool CudaEmitter::is_in_pairs(const Op& allocation) const {
  const Dtype dtype = g_[allocation.results[0]].dtype;
  return allocation.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kLocal &&
         (dtype == Dtype::kBfloat16 || dtype == Dtype::kHalf) &&
         constant_integer(g_, allocation.operands[0]).value_or(1) % 2 == 0;
}

void CudaEmitter::prepare_divisor(ValueId v) {
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

std::string CudaEmitter::prepared_divisor(ValueId v, bool is_fast) const {
  const auto& names = is_fast ? reciprocals_ : divisors_;
  const auto found = names.find(v);
  if (found == names.end()) return {};
  return found->second + (is_fast || outside_.empty() ? std::string() : ", " + outside_);
}

// The bounds that the kernel states, or else the caller's. One block on a multiprocessor is what a compiler provides for
// anyway, and is not written.
std::string CudaEmitter::launch_bounds() const {
  int64_t threads = options_.max_threads, blocks = 1;
  for (const OpId id : g_[Graph::body()].ops) {
    if (g_[id].kind != OpKind::kLaunchBound) continue;
    threads = g_[id].attrs.integer(AttrKey::kMostThreads);
    blocks = g_[id].attrs.integer(AttrKey::kLeastBlocks, 1);
  }
  if (threads <= 0) return {};
  return "__launch_bounds__(" + std::to_string(threads) + (blocks > 1 ? ", " + std::to_string(blocks) : "") + ") ";
}

// The clusters that the launch's blocks form.
std::string CudaEmitter::cluster_dims() const {
  for (const OpId id : g_[Graph::body()].ops) {
    if (g_[id].kind != OpKind::kCluster) continue;
    const auto axis = static_cast<size_t>(g_[id].attrs.enumerator<ParallelType>(AttrKey::kParallel)) -
                      static_cast<size_t>(ParallelType::kGridX);
    std::string dims;
    for (size_t a = 0; a < 3; ++a)
      dims += (a == 0 ? "" : ", ") + std::to_string(a == axis ? g_[id].attrs.integer(AttrKey::kClusterBlocks) : 1);
    return "__cluster_dims__(" + dims + ") ";
  }
  return {};
}

void CudaEmitter::parameters() {
  std::string list;
  const std::vector<ValueId> all = inputs(g_);
  // A compiler may move loads by a `__restrict__` parameter across anything, also in front of the wait. And where a kernel loads
  // what it stored, NVRTC 13 may make one such load of two, one by another parameter, and move it in front of the store.
  const bool may_restrict =
      options_.reads_apart && !loads_what_it_stores(g_) &&
      (!has_in_body(g_, OpKind::kDependentLaunch) || options_.defects.has(Defect::kDependentLaunchRestricts));
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
    const bool restricts = g_.is_tensor(v) && !written_.contains(v) && may_restrict;
    list += (list.empty() ? "" : ", ") + types[i] + (restricts ? " __restrict__ " : " ") + name;
    comment_ += "//   " + types[i] + std::string(widest - types[i].size() + 1, ' ') + name;
    if (g_.is_tensor(v)) comment_ += written_.contains(v) ? ": written" : ": read";
    comment_ += "\n";
  }
  signature_ = "extern \"C\" __global__ void ";
  signature_ += cluster_dims() + launch_bounds();
  signature_ += options_.entry + "(" + list + ")";
}

// A run of two loads or more is followed by `issue_loads`. In a loop, only a run of whole loops is: the loads of one
// iteration may wait for those of the next.
void CudaEmitter::region(std::span<const OpId> ops) {
  int loads = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Op& next = g_[ops[i]];
    if (!is_between_loads(g_, next)) {
      const int more = loops_ > 0 && !has_loop(g_, next) ? 0 : loads_of(g_, next);
      if (more == 0 && loads > 1) {
        headers_.need(CudaHeader::kMemory);
        line("issue_loads();");
      }
      loads = more == 0 ? 0 : loads + more;
    }
    const auto emit = [&](const Op& single) {
      op(single);
      for (const ValueId r : single.results) prepare_divisor(r);
    };
    if (next.kind != OpKind::kBlockReduce) {
      emit(next);
      continue;
    }
    const Together together = exchanged_together(ops.subspan(i));
    for (const OpId before : together.before) emit(g_[before]);
    if (together.reductions.size() == 1) {
      emit(next);
    } else {
      collectives(together.reductions);
      for (const OpId done : together.reductions)
        for (const ValueId r : g_[done].results) prepare_divisor(r);
    }
    i += together.count - 1;
  }
  if (depth_ > 1 && options_.defects.has(Defect::kCudaNamesRepeat)) names_.restart();
}

void CudaEmitter::scalar(const Op& op) {
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

void CudaEmitter::thread(const Op& op) {
  constexpr std::string_view kCoordinates[] = {"x", "y", "z"};
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

// NVRTC writes out a loop of a constant count where it can compute ahead what the iterations compute, as with random numbers
// of a constant seed, however much code comes of it. It takes seconds over such loops in one another. So a pragma limits what
// it makes of them: one copy of a loop around others, four of an innermost one, or of one around loops that are unrolled anyway.
std::string_view CudaEmitter::limit_of_copies(const Op& loop) const {
  constexpr int64_t kMostOps = 256;
  const auto is_long_ahead = [&](const Op& op) {
    return std::ranges::any_of(op.results, [&](ValueId v) {
      return ahead_[v.index] && g_[v].dtype != Dtype::kIndex && g_[v].dtype != Dtype::kBool;
    });
  };
  const WrittenOut all{.copies = [](const Op&) { return true; }, .counts = is_long_ahead};
  const RegionId body = loop.regions[0];
  const int64_t count = std::min(known_count(g_, loop).value_or(0), kMostOps + 1);
  if (count * ops_written_out(g_, body, kMostOps, all) <= kMostOps) return {};
  return has_rolled_loop(g_, body) ? "#pragma unroll 1" : "#pragma unroll 4";
}

void CudaEmitter::loop(const Op& op) {
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
    if (op.attrs.flag(AttrKey::kUnroll)) {
      if (is_known) line("#pragma unroll");
    } else if (const std::string_view limit = limit_of_copies(op); !limit.empty()) {
      line(std::string(limit));
    }
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
void CudaEmitter::divide_in_loop(RegionId inner, const std::set<ValueId>& divisors,
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

// Whether the op moves a thread's buffer, or a part of it, to the same place of another one of the same size. The place
// lies in both whatever the conditions around it say.
bool CudaEmitter::is_move(const Op& op) const {
  if (op.kind != OpKind::kCopy || Operands(op).one("if") || op.operands[1] != op.operands[3]) return false;
  const auto elements_of = [&](ValueId v) {
    const OpId def = g_[v].def;
    const bool is_own = def && g_[def].kind == OpKind::kAllocate && g_.tensor_of(v).memory == MemoryType::kLocal;
    return is_own ? constant_integer(g_, g_[def].operands[0]) : std::nullopt;
  };
  const auto to = elements_of(op.operands[0]);
  if (!to || to != elements_of(op.operands[2])) return false;
  const auto places = ranges_.of(op.operands[1]);
  return places && places->least >= 0 && places->most <= *to - op.attrs.integer(AttrKey::kWidth, 1);
}

// Moves between registers at the head of a branch stand before it. Elsewhere they move what nobody reads; inside, the
// compiler would keep the old registers for the other case.
void CudaEmitter::branch(const Op& op) {
  std::span<const OpId> first = g_[op.regions[0]].ops;
  size_t moves = 0;
  for (size_t i = 0; i < first.size() && op.regions.size() == 1; ++i) {
    if (is_move(g_[first[i]]))
      moves = i + 1;
    else if (!is_between_loads(g_, g_[first[i]]))
      break;
  }
  region(first.first(moves));
  if (moves == first.size()) return;
  line("if (" + as(op.operands[0], Dtype::kBool) + ") {");
  for (size_t i = 0; i < op.regions.size(); ++i) {
    if (i > 0) line("} else {");
    ++depth_;
    region(i == 0 ? first.subspan(moves) : std::span<const OpId>(g_[op.regions[i]].ops));
    --depth_;
  }
  line("}");
}

void CudaEmitter::op(const Op& op) {
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
    case FUSEBOX_LAUNCH_FACT_OPS:
      return;  // stand in the signature
    case OpKind::kClusterArrive:
    case OpKind::kClusterWait:
      headers_.need(CudaHeader::kCluster);
      return line(op.kind == OpKind::kClusterArrive ? "cluster.arrive();" : "cluster.wait();");
    case OpKind::kClusterReduce:
      return cluster_reduce(op);
    case OpKind::kBarrier:
      return line("__syncthreads();");
    case OpKind::kGridBarrier:
      headers_.need(CudaHeader::kSynchronize);
      return line("grid_barrier(&" + buffer(op.operands.at(0)) + "[" +
                  std::to_string(op.attrs.integer(AttrKey::kSlot)) + "]);");
    case OpKind::kBlockReduce:
    case OpKind::kBlockBroadcast:
      return collective(op);
    case OpKind::kWarpReduce:
      return warp_reduce(op);
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

std::string CudaEmitter::emit(CudaHeaders& headers) {
  look_ahead();
  wanted_ = find_divisors(g_);
  parameters();
  for (size_t i = 0; i < g_.values.size(); ++i)
    if (g_.values[i].constant) prepare_divisor(ValueId(i));
  region(Graph::body());
  const bool waits = has_in_body(g_, OpKind::kDependentLaunch);
  if (waits) headers_.need(CudaHeader::kSynchronize);
  for (size_t i = 0; i < std::size(kCudaHeaderNames); ++i)
    if (const auto h = static_cast<CudaHeader>(i); headers_.needs(h)) headers.need(h);

  std::string result = "\nusing index_t = int" + std::to_string(g_.index_bits) + "_t;\n\n";
  result += comment_ + signature_ + " {\n";
  if (uses_shared_) result += "  extern __shared__ __align__(16) unsigned char shared_memory[];\n";
  if (headers_.needs(CudaHeader::kCluster)) result += "  Cluster cluster;\n";
  if (waits && !options_.defects.has(Defect::kDependentLaunchUnwaited)) result += "  wait_for_launches_in_front();\n";
  result += body_ + "}\n";
  return result;
}

namespace {

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
  return CudaEmitter(canonical, options).emit(headers);
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
