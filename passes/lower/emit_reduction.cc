// Emits reductions. An accumulator for each place starts with the neutral element. The loops accumulate. Parallel
// reduction loops then combine across threads, and the result is stored. Threads of a block combine one element at a
// time, where it is stored; blocks combine all elements of the accumulators at once, before. Long serial sums have
// partial sums (plan_cascades.cc).
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "passes/lower/kernel_emitter.h"

namespace fusebox {
namespace {

constexpr struct {
  OpKind kind;
  ReduceOp reduce;
} kReductions[] = {{OpKind::kSum, ReduceOp::kSum},
                   {OpKind::kProd, ReduceOp::kProd},
                   {OpKind::kMax, ReduceOp::kMax},
                   {OpKind::kMin, ReduceOp::kMin},
                   {OpKind::kWelford, ReduceOp::kWelford}};

constexpr bool is_listed(OpKind kind) {
  return std::any_of(std::begin(kReductions), std::end(kReductions), [&](const auto& r) { return r.kind == kind; });
}
#define D(what) (what)
#define FUSEBOX_OP(name, text, format, levels, attrs, demands, reads) \
  static_assert(((demands) & kReduction) == 0 || is_listed(OpKind::name), "a reduction without a row");
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
#undef D

ReduceOp reduce_op(OpKind kind) {
  const auto* row =
      std::find_if(std::begin(kReductions), std::end(kReductions), [&](const auto& r) { return r.kind == kind; });
  check_internal(row != std::end(kReductions), "an op that is no reduction has no combination across threads");
  return row->reduce;
}

OpKind combine_op(ReduceOp reduce) {
  switch (reduce) {
    case ReduceOp::kSum:
      return OpKind::kAdd;
    case ReduceOp::kProd:
      return OpKind::kMul;
    case ReduceOp::kMax:
      return OpKind::kMaximum;
    case ReduceOp::kMin:
      return OpKind::kMinimum;
    case ReduceOp::kWelford:
      return OpKind::kWelfordCombine;
  }
  throw Error(ErrorCode::kInternal, "a reduction that the table of reductions does not have");
}

}  // namespace

// The neutral element, in the accumulator's dtype `d`. `declared` is the result's dtype. A result without infinities
// would round an infinite element to NaN, so its largest number stands for infinity. Threads without elements
// contribute that number.
static ConstantBits neutral_element(OpKind kind, Dtype d, Dtype declared, const Defects& defects) {
  if (kind == OpKind::kSum || kind == OpKind::kWelford) return constant_bits(d, 0.0);
  if (defects.has(Defect::kReductionInitZero)) return constant_bits(d, 0.0);
  if (kind == OpKind::kProd) return constant_bits(d, 1.0);
  check_internal(kind == OpKind::kMax || kind == OpKind::kMin, "a reduction without a neutral element");
  const bool max = kind == OpKind::kMax;
  if (is_floating(d)) {
    const double most = has_infinity(declared) ? INFINITY : format_of(declared).largest;
    return constant_bits(d, max ? -most : most);
  }
  if (is_boolean(d)) return {max ? 0u : 1u, 0};
  const int width = bits(d);
  const bool is_taken_signed = !is_signed(d) && !max && defects.has(Defect::kReductionInitSigned);
  if (!is_signed(d) && !is_taken_signed)
    return {max ? 0u : (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1), 0};
  const int64_t lowest = width == 64 ? INT64_MIN : -(int64_t{1} << (width - 1));
  return {static_cast<uint64_t>(max ? lowest : ~lowest), 0};
}

ValueId KernelEmitter::neutral(const Op& op, size_t result, Dtype d) {
  return kernel_.constant(d, neutral_element(op.kind, d, g_[op.results[result]].dtype, defects()));
}

// An accumulator counts the elements of one strip at most, which the GPU does in half the instructions with 32 bits.
// Where blocks combine accumulators, these hold the totals.
Dtype KernelEmitter::held_dtype(OpId id, size_t result) const {
  const Op& op = g_[id];
  const Dtype d = accumulator_dtype(g_[op.results[result]].dtype);
  const auto exchange = plan_.exchanges.find(id);
  const bool has_totals =
      exchange != plan_.exchanges.end() && (exchange->second.is_grid || exchange->second.is_cluster);
  const bool adds_sets = op.operands.size() > 1 && op.operands[1];
  const bool is_count = op.kind == OpKind::kWelford && result == 2;
  return is_count && d == Dtype::kInt64 && !has_totals && !adds_sets ? Dtype::kInt32 : d;
}

Form KernelEmitter::accumulator_place(Site& site) const {
  IndexAlgebra& algebra = site.view.algebra;
  const auto& loop = plan_.loops_of(site.place.op);
  Form place = algebra.constant(0);
  for (size_t i : plan_.accumulators.at(site.place.op).places)
    place = algebra.add(algebra.mul(place, site.view.own.extent(loop[i])), site.view.own.value(loop[i]));
  return place;
}

void KernelEmitter::emit_reduction(Site& site) {
  if (site.place.kind == StatementKind::kExchange) return emit_exchange(site.place.op);
  const Form place = accumulator_place(site);
  switch (site.place.kind) {
    case StatementKind::kInit:
      return emit_init(site, place);
    case StatementKind::kMain:
      return emit_accumulation(site, place);
    case StatementKind::kExchange:
      return;  // it has no place
    case StatementKind::kFinal:
      return emit_result(site, place);
  }
}

void KernelEmitter::emit_init(Site& site, Form place) {
  const Op& op = site.op;
  const auto& loop = plan_.loops_of(site.place.op);
  const Nest& nest = plan_.nest_of(site.place.op);
  ValueId needed = kernel_.bit(true);
  for (size_t i = 0; i < loop.size(); ++i) {
    const ParallelType p = plan_.parallel_of(nest.path[i]);
    if (is_reduction(g_, loop[i]) && is_thread(p) && defects().has(Defect::kReductionIdleThreads))
      needed =
          kernel_.compare(OpKind::kLt, thread_index(p), emit_form(site.view.algebra, site.view.own.extent(loop[i])));
    if (i < first_reduction_loop(g_, plan_.nest_plan, nest) && is_real_loop(p) &&
        defects().has(Defect::kReductionNotReset))
      needed = kernel_.compare(OpKind::kEq, node_index_[nest.path[i]], kernel_.index(0));
  }
  guarded(needed, [&] {
    for (size_t i = 0; i < op.results.size(); ++i)
      for (size_t level = 0; level <= partials_[site.place.op].size(); ++level) {
        const ValueId buffer = partial(site.place.op, level)[i];
        kernel_.store(buffer, emit_form(site.view.algebra, place), neutral(op, i, kernel_.graph()[buffer].dtype));
      }
  });
}

void KernelEmitter::emit_accumulation(Site& site, Form place) {
  const Op& op = site.op;
  const auto& accumulator = accumulators_.at(site.place.op);
  const auto& loop = plan_.loops_of(site.place.op);
  const Nest& nest = plan_.nest_of(site.place.op);
  bool is_looped = false;
  for (size_t i = 0; i < loop.size(); ++i)
    is_looped |= is_reduction(g_, loop[i]) && !is_thread(plan_.parallel_of(nest.path[i]));
  const auto dtype_of = [&](size_t i) { return held_dtype(site.place.op, i); };
  guarded(emit_conditions(site), [&] {
    const ValueId where = emit_form(site.view.algebra, place);
    std::vector<ValueId> held;
    for (size_t i = 0; i < accumulator.size(); ++i)
      held.push_back(is_looped && defects().has(Defect::kReductionInitInside) ? neutral(op, i, dtype_of(i))
                                                                              : kernel_.load(accumulator[i], where));
    if (op.kind != OpKind::kWelford) {
      ValueId x = operand_value(site, 0);
      if (kernel_.graph()[x].dtype != dtype_of(0)) x = cast_to(x, dtype_of(0));
      ValueId combined = combine(op, held, {x})[0];
      if (const Dtype d = g_[op.results[0]].dtype; d != dtype_of(0) && defects().has(Defect::kAccumulateNarrow))
        combined = cast_to(cast_to(combined, d), dtype_of(0));
      kernel_.store(accumulator[0], where, combined);
      return;
    }
    std::vector<ValueId> more;
    const bool triple = op.operands.size() > 1 && op.operands[1];
    if (triple) {
      for (size_t k = 0; k < 3; ++k)
        more.push_back(k == 1 && defects().has(Defect::kWelfordParts) ? kernel_.constant(dtype_of(1), {})
                                                                      : operand_value(site, k));
    } else {
      more = {operand_value(site, 0), kernel_.constant(dtype_of(1), {}),
              kernel_.constant(dtype_of(2), constant_bits(dtype_of(2), 1.0))};
    }
    const auto next = combine(op, held, more);
    for (size_t i = 0; i < 3; ++i)
      kernel_.store(accumulator[i], where, i == 2 && defects().has(Defect::kWelfordCount) ? held[i] : next[i]);
  });
}

std::vector<ValueId> KernelEmitter::emit_totals(OpId id, ValueId at) {
  const auto cascade = plan_.cascades.find(id);
  if (cascade != plan_.cascades.end() && cascade->second.is_compensated) return {compensated_total(id, at)};
  std::vector<ValueId> values;
  // The last strip has set the accumulator of a cascade back.
  const size_t last = partials_[id].size(), first = plan_.cascades.contains(id) ? 1 : 0;
  for (size_t level = first; level <= last; ++level) {
    if (level == 1 && last > 1 && defects().has(Defect::kPartialLost)) continue;
    std::vector<ValueId> more;
    for (ValueId buffer : partial(id, level)) more.push_back(kernel_.load(buffer, at));
    // A welford combination loses least if the larger set comes first.
    values = values.empty() ? more : combine(g_[id], more, values);
  }
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = cast_to(values[i], accumulator_dtype(g_[g_[id].results[i]].dtype));
  return values;
}

void KernelEmitter::emit_result(Site& site, Form place) {
  const OpId id = site.place.op;
  ValueId at = emit_form(site.view.algebra, place);
  const auto exchange = plan_.exchanges.find(id);
  const bool is_exchanged = exchange != plan_.exchanges.end() && exchange->second.is_grid;
  if (is_exchanged && defects().has(Defect::kExchangeSwapped))
    at = kernel_.sub(kernel_.index(plan_.accumulators.at(id).elements - 1), at);
  // Every thread takes part in a block's reduction, and in a warp's. After an exchange between blocks, only the block
  // that has the result reads it.
  const bool is_by_lanes = exchange != plan_.exchanges.end() && exchange->second.lanes > 0;
  const auto combine_threads = [&] {
    std::vector<ValueId> values = emit_totals(id, at);
    if (is_by_lanes)
      values = emit_warp_reduce(site.op, values, exchange->second);
    else if (exchange != plan_.exchanges.end())
      values = emit_block_reduce(site.op, values, exchange->second);
    return values;
  };
  if (is_by_lanes && defects().has(Defect::kLanesLeftOut)) return write_result(site, combine_threads);
  if (is_exchanged)
    return write_result(site, [&] {
      std::vector<ValueId> loaded;
      for (ValueId buffer : accumulators_.at(id)) loaded.push_back(kernel_.load(buffer, at));
      return loaded;
    });
  const std::vector<ValueId> values = combine_threads();
  write_result(site, [&] { return values; });
}

void KernelEmitter::write_result(Site& site, const std::function<std::vector<ValueId>()>& values_of) {
  const Op& op = site.op;
  // One result may belong to every thread or block, while its sibling is stored once.
  for (MemoryType memory : {MemoryType::kLocal, MemoryType::kShared, MemoryType::kGlobal}) {
    const auto is_there = [&](ValueId v) { return plan_.buffer_of(v).memory == memory; };
    if (std::none_of(op.results.begin(), op.results.end(), is_there)) continue;
    guarded(emit_conditions(site, memory), [&] {
      std::vector<ValueId> values = values_of();
      // The square of one element is 0, and that of an infinity or NaN is NaN, which no update has made of a single one.
      if (op.kind == OpKind::kWelford) {
        const Dtype dtype = kernel_.graph()[values[0]].dtype;
        const ValueId own = kernel_.op(OpKind::kSub, {values[0], values[0]}, dtype);
        values[1] = kernel_.op(OpKind::kAdd, {values[1], own}, dtype);
      }
      for (size_t i = 0; i < values.size(); ++i) values[i] = cast_to(values[i], data_dtype(g_[op.results[i]].dtype));
      if (values.size() > 1 && defects().has(Defect::kSiblingsSwapped)) std::swap(values[0], values[1]);
      write(site, values, memory);
    });
  }
}

bool KernelEmitter::reduces_in_block(const TreeChild& child) const {
  if (child.is_node) return false;
  const Statement& s = plan_.tree.statements[child.index];
  if (s.kind != StatementKind::kFinal) return false;
  const auto exchange = plan_.exchanges.find(s.op);
  return exchange != plan_.exchanges.end() && !exchange->second.is_grid && exchange->second.lanes == 0;
}

bool KernelEmitter::reduces_one_value(const TreeChild& child) const {
  return reduces_in_block(child) && g_[plan_.tree.statements[child.index].op].results.size() == 1;
}

void KernelEmitter::emit_results(std::span<const TreeChild> finals) {
  std::vector<Site> sites;
  std::vector<std::vector<ValueId>> values;
  for (const TreeChild& child : finals) {
    Site& site = sites.emplace_back(site_of(child.index));
    values.push_back(emit_totals(site.place.op, emit_form(site.view.algebra, accumulator_place(site))));
  }
  for (size_t i = 0; i < sites.size(); ++i)
    values[i] = emit_block_reduce(sites[i].op, values[i], plan_.exchanges.at(sites[i].place.op));
  for (size_t i = 0; i < sites.size(); ++i) write_result(sites[i], [&] { return values[i]; });
}

std::vector<ValueId> KernelEmitter::combine(const Op& op, const std::vector<ValueId>& a,
                                            const std::vector<ValueId>& b) {
  std::vector<Dtype> dtypes;
  for (ValueId v : a) dtypes.push_back(kernel_.graph()[v].dtype);
  const OpKind kind = combine_op(reduce_op(op.kind));
  // a <= b ? b : a, which is a if b is NaN
  if (op.kind == OpKind::kMax && is_floating(dtypes[0]) && defects().has(Defect::kReductionDropsNan))
    return {kernel_.op(OpKind::kThreshold, {a[0], b[0], b[0]}, dtypes[0])};
  if (op.kind != OpKind::kWelford) return {kernel_.op(kind, {a[0], b[0]}, dtypes[0])};
  std::vector<ValueId> operands = a;
  operands.insert(operands.end(), b.begin(), b.end());
  return kernel_.effect(kind, operands, dtypes);
}

void KernelEmitter::allocate_accumulator(OpId id) {
  const Op& op = g_[id];
  const int64_t elements = plan_.accumulators.at(id).elements;
  const auto allocate = [&](const std::string& suffix, const auto& dtype_of) {
    std::vector<ValueId> made;
    for (size_t i = 0; i < op.results.size(); ++i)
      made.push_back(kernel_.allocate(dtype_of(i), MemoryType::kLocal, kernel_.index(elements), {}, 0,
                                      "T" + std::to_string(g_[op.results[i]].tensor.index) + "_acc" + suffix));
    return made;
  };
  const auto dtype_of = [&](size_t i) { return accumulator_dtype(g_[op.results[i]].dtype); };
  accumulators_[id] = allocate("", [&](size_t i) { return held_dtype(id, i); });
  partials_[id].clear();
  const auto cascade = plan_.cascades.find(id);
  if (cascade == plan_.cascades.end()) return;
  for (int level = 1; level <= cascade->second.levels; ++level)
    partials_[id].push_back(allocate(std::to_string(level), dtype_of));
  if (cascade->second.is_compensated) partials_[id].push_back(allocate("_error", dtype_of));
}

ReduceOp KernelEmitter::exchange_op(const Op& op) const {
  const bool may_add =
      op.kind != OpKind::kSum && op.kind != OpKind::kWelford && !is_boolean(accumulator_dtype(g_[op.results[0]].dtype));
  return may_add && defects().has(Defect::kReductionCombine) ? ReduceOp::kSum : reduce_op(op.kind);
}

Attrs KernelEmitter::exchange_attrs(const Op& op, const Exchange& exchange) {
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, exchange_op(op));
  std::vector<int64_t> over;
  for (ParallelType p : exchange.threads)
    if (!(exchange.is_grid && is_grid(p) && defects().has(Defect::kGridReductionPart)))
      over.push_back(static_cast<int64_t>(p));
  attrs.set(AttrKey::kThreads, over);
  return attrs;
}

std::vector<ValueId> KernelEmitter::emit_block_reduce(const Op& op, const std::vector<ValueId>& values,
                                                      const Exchange& exchange, int64_t at_once) {
  std::vector<ValueId> operands = values;
  std::vector<Dtype> dtypes;
  for (size_t i = 0; i < values.size(); ++i) {
    dtypes.push_back(kernel_.graph()[values[i]].dtype);
    operands.push_back(neutral(op, i, dtypes[i]));
  }
  for (size_t i = 0; i < values.size(); ++i) operands.push_back(block_workspaces_.at({dtypes[i], static_cast<int>(i)}));
  operands.insert(operands.end(), {ValueId(), ValueId()});  // all threads take part, and no counters are needed
  Attrs attrs = exchange_attrs(op, exchange);
  if (!defects().has(Defect::kReductionNotShared)) attrs.set_flag(AttrKey::kAll);
  if (at_once > 1) attrs.set(AttrKey::kAtOnce, at_once);
  return kernel_.effect(OpKind::kBlockReduce, operands, dtypes, attrs);
}

std::vector<ValueId> KernelEmitter::emit_warp_reduce(const Op& op, const std::vector<ValueId>& values,
                                                     const Exchange& exchange) {
  std::vector<Dtype> dtypes;
  for (ValueId v : values) dtypes.push_back(kernel_.graph()[v].dtype);
  int64_t width = exchange.lanes;
  if (defects().has(Defect::kLanesHalf)) width /= 2;
  if (defects().has(Defect::kLanesOfOtherRow)) width *= 2;
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, exchange_op(op));
  attrs.set(AttrKey::kWidth, width);
  return kernel_.effect(OpKind::kWarpReduce, values, dtypes, attrs);
}

void KernelEmitter::emit_all_totals(OpId id) {
  constexpr int64_t kMostUnrolled = 64;
  const int64_t elements = plan_.accumulators.at(id).elements;
  if (!plan_.cascades.contains(id) || elements <= 0) return;
  const ValueId at = elements == 1 ? kernel_.index(0)
                                   : kernel_.begin_for(kernel_.index(0), kernel_.index(elements), kernel_.index(1),
                                                       elements <= kMostUnrolled);
  const auto totals = emit_totals(id, at);
  for (size_t i = 0; i < totals.size(); ++i) kernel_.store(accumulators_.at(id)[i], at, totals[i]);
  if (elements != 1) kernel_.end();
}

void KernelEmitter::emit_cluster_exchange(OpId id) {
  const Op& op = g_[id];
  const Exchange& exchange = plan_.exchanges.at(id);
  std::vector<ValueId> arrays = accumulators_.at(id), operands;
  if (arrays.size() > 1 && defects().has(Defect::kClusterWelfordSwapped)) std::swap(arrays[0], arrays[1]);
  const bool has_block = std::ranges::any_of(exchange.threads, is_block);
  const auto place = [&](const auto& places, size_t i) {
    return places.at({kernel_.graph()[arrays[i]].dtype, static_cast<int>(i)});
  };
  operands = arrays;
  for (size_t i = 0; i < arrays.size(); ++i) operands.push_back(place(cluster_parts_, i));
  for (size_t i = 0; i < arrays.size(); ++i)
    operands.push_back(place(has_block ? block_workspaces_ : cluster_parts_, i));
  Attrs attrs = exchange_attrs(op, exchange);
  if (defects().has(Defect::kClusterThreadsLost)) {
    std::vector<int64_t> over;
    for (ParallelType p : exchange.threads)
      if (is_grid(p)) over.push_back(static_cast<int64_t>(p));
    attrs.set(AttrKey::kThreads, over);
  }
  attrs.set(AttrKey::kClusterBlocks, plan_.cluster->blocks - (defects().has(Defect::kClusterPartLost) ? 1 : 0));
  kernel_.effect(OpKind::kClusterReduce, operands, {}, attrs);
}

void KernelEmitter::emit_exchange(OpId id) {
  const Op& op = g_[id];
  const Exchange& exchange = plan_.exchanges.at(id);
  const int64_t elements = plan_.accumulators.at(id).elements;
  const auto& accumulator = accumulators_.at(id);
  emit_all_totals(id);
  if (exchange.is_cluster) return emit_cluster_exchange(id);
  std::vector<ValueId> operands = accumulator;
  for (ValueId v : accumulator) {
    const Dtype dtype = kernel_.graph()[v].dtype;
    signature_.parameters.push_back({.kind = KernelParameter::Kind::kWorkspace,
                                     .dtype = dtype,
                                     .elements = elements,
                                     .threads = exchange.threads,
                                     .has_results = !exchange.is_last});
    operands.push_back(kernel_.tensor_parameter(dtype, "grid_workspace" + std::to_string(grid_workspaces_++)));
  }
  // Threads of a block that combine nothing with each other use no memory that they share.
  const bool has_block = std::ranges::any_of(exchange.threads, is_block);
  for (size_t i = 0; i < accumulator.size(); ++i)
    operands.push_back(has_block ? block_workspaces_.at({kernel_.graph()[accumulator[i]].dtype, static_cast<int>(i)})
                                 : operands[accumulator.size() + i]);
  // An exchange with a barrier of the grid has one slot for both.
  const Counters arrivals = counters(KernelParameter::Kind::kArrivals);
  operands.push_back(arrivals.parameter);
  int64_t slot = 0;
  if (exchange.is_last) {
    slot = take_slot(arrivals);
    operands.push_back(ValueId());
  } else {
    const Counters barriers = counters(KernelParameter::Kind::kCounters);
    slot = take_slot(barriers, take_slot(arrivals, signature_.parameters[barriers.position].slots));
    operands.push_back(barriers.parameter);
  }
  Attrs attrs = exchange_attrs(op, exchange);
  attrs.set(AttrKey::kSlot, defects().has(Defect::kArrivalsShared) ? 0 : slot);
  if (!exchange.is_last) attrs.set_flag(AttrKey::kAll);
  came_last_[id] = kernel_.effect(OpKind::kGridReduce, operands, {Dtype::kBool}, attrs)[0];
}

// The collectives of a block run one after another, so they share a part of the arena. Their buffers overlap on
// purpose.
void KernelEmitter::allocate_block_workspaces() {
  std::set<std::pair<Dtype, int>> wanted;
  for (const auto& [id, exchange] : plan_.exchanges) {
    if (exchange.lanes > 0 || std::ranges::none_of(exchange.threads, is_block)) continue;
    for (size_t i = 0; i < g_[id].results.size(); ++i)
      wanted.insert({accumulator_dtype(g_[g_[id].results[i]].dtype), static_cast<int>(i)});
  }
  if (wanted.empty()) return;
  ValueId threads = kernel_.index(1);
  for (ParallelType p : plan_.used_threads) {
    if (!is_block(p)) continue;
    Attrs attrs;
    attrs.set_enum(AttrKey::kParallel, p);
    threads = kernel_.mul(threads, kernel_.op(OpKind::kThreadCount, {}, Dtype::kIndex, attrs));
  }
  // Blocks that exchange arrays combine as many elements at once as 16 bytes hold, and so do the columns of a thread.
  const bool has_arrays = std::ranges::any_of(plan_.exchanges, [](const auto& e) { return e.second.is_grid; }) ||
                          (has_columns() && !defects().has(Defect::kColumnsWithoutRoom));
  const ValueId stride = kernel_.mul(threads, kernel_.index(16));
  workspaces_begin_ = shared_end_;
  for (const auto& [dtype, list] : wanted)
    block_workspaces_[{dtype, list}] = kernel_.allocate(
        dtype, MemoryType::kShared,
        has_arrays ? kernel_.mul(threads, kernel_.index(std::max<int64_t>(16 / size_bytes(dtype), 1))) : threads,
        kernel_.add(shared_end_, kernel_.mul(stride, kernel_.index(list))), 16,
        "workspace_" + std::string(text(dtype)) + "_" + std::to_string(list));
  shared_end_ = kernel_.add(shared_end_, kernel_.mul(stride, kernel_.index(plan_.block_workspaces())));
}

// The places of all exchanges of a cluster overlap. They may lie on no other memory: a block that is ahead stores there
// while this one still computes.
void KernelEmitter::allocate_cluster_places() {
  const ClusterPlaces places = plan_.cluster_places();
  if (places.lists == 0) return;
  ValueId count = kernel_.index(places.elements * plan_.cluster->blocks);
  for (ParallelType p : places.groups) {
    Attrs attrs;
    attrs.set_enum(AttrKey::kParallel, p);
    count = kernel_.mul(count, kernel_.op(OpKind::kThreadCount, {}, Dtype::kIndex, attrs));
  }
  const ValueId stride = kernel_.mul(count, kernel_.index(ClusterPlaces::kSets * ClusterPlaces::kPlaceBytes));
  const bool overlaps = !block_workspaces_.empty() && defects().has(Defect::kClusterPartsOverlap);
  const ValueId first = overlaps ? workspaces_begin_ : shared_end_;
  for (const auto& [id, exchange] : plan_.exchanges) {
    if (!exchange.is_cluster) continue;
    for (size_t i = 0; i < g_[id].results.size(); ++i) {
      const Dtype dtype = accumulator_dtype(g_[g_[id].results[i]].dtype);
      const auto list = static_cast<int>(i);
      if (ValueId& made = cluster_parts_[{dtype, list}]; !made)
        made = kernel_.allocate(
            dtype, MemoryType::kShared,
            kernel_.mul(count, kernel_.index(ClusterPlaces::kSets * ClusterPlaces::kPlaceBytes / size_bytes(dtype))),
            kernel_.add(first, kernel_.mul(stride, kernel_.index(list))), 16,
            "parts_" + std::string(text(dtype)) + "_" + std::to_string(list));
    }
  }
  shared_end_ = kernel_.add(shared_end_, kernel_.mul(stride, kernel_.index(places.lists)));
  if (!defects().has(Defect::kClusterArriveLost)) kernel_.effect(OpKind::kClusterArrive, {}, {});
}

}  // namespace fusebox
