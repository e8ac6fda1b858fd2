#include "passes/lower/emit_launch.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/kernel/form_emitter.h"
#include "passes/kernel/kernel_builder.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

class LaunchBuilder {
 public:
  LaunchBuilder(const KernelPlan& plan, const KernelSignature& signature)
      : plan_(plan),
        open_(plan),
        signature_(signature),
        parameters_(signature.parameters),
        g_(*plan.graph),
        host_(g_.name + "_launch", 64) {
    host_.graph().level = Level::kHost;
  }

  Graph run() {
    signature();
    checks();
    std::vector<ValueId> operands = dimensions();
    check_bound();
    operands.push_back(shared_bytes());
    arguments(operands);
    Attrs attrs;
    attrs.set(AttrKey::kName, g_.name);
    host_.effect(OpKind::kLaunch, operands, {}, attrs);
    for (ValueId w : workspaces_) host_.effect(OpKind::kDeallocate, {w}, {});
    return host_.finish();
  }

 private:
  Graph& h() { return host_.graph(); }

  ValueId tensor_input(ValueId v) {
    const Tensor& from = g_.tensor_of(v);
    const ValueId t = add_tensor(h(), g_[v].dtype, g_[v].name);
    h().tensor_of(t).memory = MemoryType::kGlobal;
    const auto logical = logical_without_reductions(g_, from);
    std::vector<DomainId> made;
    for (DomainId d : logical) {
      IterDomain copy;
      copy.iter_type = g_[d].iter_type == IterType::kBroadcast ? IterType::kBroadcast : IterType::kIteration;
      copy.extent = copy.iter_type == IterType::kBroadcast ? constant_index(h(), 1) : extent(v, d);
      copy.expanded = g_[d].expanded ? scalar(g_[d].expanded) : ValueId();
      copy.name = "i" + std::to_string(made.size());
      made.push_back(add_domain(h(), h()[t].tensor, copy));
    }
    h().tensor_of(t).logical = made;
    if (!from.allocation.empty())
      for (DomainId d : from.allocation)
        if (const size_t i = position_in(logical, d); i < made.size()) h().tensor_of(t).allocation.push_back(made[i]);
    h().tensor_of(t).contiguity = from.contiguity;
    append(h(), Graph::body(), Op{OpKind::kInput, {}, {t}, {}, {}});
    return t;
  }

  ValueId extent(ValueId tensor, DomainId d) {
    if (g_[d].extent) return scalar(g_[d].extent);
    const ValueId v = emit(open_.algebra, open_.of(tensor).extent(d));
    if (const auto n = constant_integer(h(), v); n && *n < 0)
      throw Error(ErrorCode::kUnsupportedSchedule,
                  "the steps state facts by which this axis has a negative extent; state facts that a run can have",
                  "%" + g_[tensor].name + "." + g_[d].name);
    return v;
  }

  ValueId emit(IndexAlgebra& algebra, Form form) {
    FormEmitter emitter(
        algebra, host_, [&](int symbol) { return parameter(*parameter_of(g_, symbol)); },
        [](int) -> ValueId { throw Error(ErrorCode::kInternal, "a loop in a launch's scalars"); });
    return emitter.emit(form);
  }

  void signature() {
    // The host program finds the arguments of a launch by these names.
    for (OpId id : g_[Graph::body()].ops)
      if (g_[id].kind == OpKind::kSize || g_[id].kind == OpKind::kInput)
        for (ValueId v : g_[id].results) host_.reserve(g_[v].name);
    for (const OutputRef& out : outputs(g_)) host_.reserve(g_[out.value].name);
    for (OpId id : g_[Graph::body()].ops) {
      const Op& op = g_[id];
      if (op.kind == OpKind::kSize) {
        Op copy{OpKind::kSize, {}, {}, {}, {}};
        for (ValueId v : op.results) {
          scalars_[v] = add_scalar(h(), Dtype::kIndex, g_[v].name);
          copy.results.push_back(scalars_[v]);
        }
        append(h(), Graph::body(), copy);
      } else if (op.kind == OpKind::kInput) {
        const ValueId v = op.results[0];
        if (g_.is_tensor(v)) {
          tensors_[v] = tensor_input(v);
        } else {
          scalars_[v] = add_scalar(h(), g_[v].dtype, g_[v].name);
          append(h(), Graph::body(), Op{OpKind::kInput, {}, {scalars_[v]}, {}, {}});
        }
      }
    }
    std::set<ValueId> given_out;
    for (const OutputRef& out : outputs(g_)) given_out.insert(out.value);
    for (const Nest& nest : plan_.nest_plan.nests)
      for (ValueId v : g_[nest.op].results) {
        const Buffer& b = plan_.buffer_of(v);
        if (!b.is_parameter || b.storage != v || given_out.contains(v)) continue;
        globals_.push_back(v);
      }
    for (const OutputRef& out : outputs(g_))
      if (g_.is_tensor(out.value) && plan_.buffer_of(out.value).storage == out.value &&
          plan_.has_nest(g_[out.value].def))
        tensors_[out.value] = tensor_input(out.value);
  }

  ValueId scalar(ValueId v) {
    if (g_.is_constant(v)) return host_.constant(g_[v].dtype, *g_[v].constant);
    if (const auto it = scalars_.find(v); it != scalars_.end()) return it->second;
    const Op& op = g_[g_[v].def];
    std::vector<ValueId> operands;
    for (ValueId operand : op.operands) operands.push_back(operand ? scalar(operand) : operand);
    return scalars_[v] = host_.op(op.kind, operands, g_[v].dtype, op.attrs);
  }

  // A truth as a number: a product of two truths would be one.
  ValueId as_index(ValueId v) { return is_boolean(h()[v].dtype) ? host_.op(OpKind::kCast, {v}, Dtype::kIndex) : v; }

  ValueId parameter(const ScalarParameter& p) {
    if (p.scalar) return scalar(p.scalar);
    const auto order = allocation_of(g_, g_.tensor_of(p.stride_of));
    const auto logical = logical_without_reductions(g_, g_.tensor_of(p.stride_of));
    Attrs attrs;
    attrs.set(AttrKey::kAxis, static_cast<int64_t>(position_in(logical, order[p.axis])));
    return host_.op(OpKind::kTensorStride, {tensors_.at(p.stride_of)}, Dtype::kIndex, attrs);
  }

  enum class Of { kAccess, kSchedule };
  void check(ValueId holds, std::string why, Of of = Of::kAccess) {
    Attrs attrs;
    attrs.set(AttrKey::kWhy, std::move(why));
    if (of == Of::kSchedule) attrs.set_flag(AttrKey::kAssumed);
    host_.effect(OpKind::kCheck, {holds}, {}, attrs);
  }

  // A split by 0 would leave its elements without a place.
  void check_factors() {
    std::set<ValueId> seen;
    each_made([&](const Nest& nest, ValueId v) {
      // A reshape splits by its own sizes. The ops of an `rfactor` have a step's splits.
      const auto of_op =
          g_[nest.op].kind == OpKind::kReshape ? op_transforms(g_, g_.tensor_of(v)) : std::vector<TransformId>();
      for (TransformId id : g_.tensor_of(v).transforms) {
        const Transform& t = g_[id];
        if (t.kind != TransformKind::kSplit || g_.is_constant(t.factor)) continue;
        if (std::find(of_op.begin(), of_op.end(), id) != of_op.end()) continue;
        if (!seen.insert(plan_.classes.representative(t.factor)).second) continue;
        check(host_.compare(OpKind::kGe, scalar(t.factor), host_.index(1)),
              "a split needs a factor of at least 1: %" + g_[v].name + "." + g_[t.inputs[0]].name +
                  " is split by one that is less");
      }
    });
  }

  // Calls `visit` with each result of each nest: the layout of one may have transforms that the others lack.
  template <class Visit>
  void each_made(Visit&& visit) const {
    for (const Nest& nest : plan_.nest_plan.nests)
      for (ValueId v : g_[nest.op].results) visit(nest, v);
  }

  // The domain that a resize makes would have a negative extent if it takes more than there is. Loops and buffers of
  // such domains could be merged to a positive number of places that do not exist. Extents of axes are checked with the
  // program's sizes, and those of an `rfactor` have a step's resizes.
  void check_resizes() {
    each_made([&](const Nest&, ValueId v) {
      for (TransformId id : g_.tensor_of(v).transforms) {
        const Transform& t = g_[id];
        if (t.kind != TransformKind::kResize) continue;
        const Form extent = open_.of(v).extent(t.outputs[0]);
        if (open_.algebra.prove_nonneg(extent) || is_of_axis(extent)) continue;
        check(host_.compare(OpKind::kGe, emit(open_.algebra, extent), host_.index(0)),
              "a resize takes more than there is: %" + g_[v].name + "." + g_[t.outputs[0]].name +
                  " would have a negative extent");
      }
    });
  }

  bool is_of_axis(Form extent) {
    if (axes_.empty())
      for (const Nest& nest : plan_.nest_plan.nests) {
        const ValueId v = g_[nest.op].results[0];
        if (demands(g_[nest.op].kind, kReduction)) continue;
        for (DomainId d : g_.tensor_of(v).logical) axes_.insert(open_.of(v).extent(d));
      }
    return axes_.contains(extent);
  }

  // The facts that the schedule states. They come first, because other checks and sizes may rest on them.
  void check_facts() {
    if (plan_.defects().has(Defect::kAssumeUnchecked)) return;
    for (OpId id : g_[Graph::body()].ops)
      if (g_[id].kind == OpKind::kAssume)
        check(scalar(g_[id].operands[0]), std::string(g_[id].attrs.string(AttrKey::kWhy)), Of::kSchedule);
  }

  void check_bound() {
    const auto bound = launch_bound(plan_);
    if (!bound || !bound->is_stated || plan_.defects().has(Defect::kLaunchBoundUnchecked)) return;
    const ValueId threads = host_.mul(dims_[3], host_.mul(dims_[4], dims_[5]));
    const ValueId holds = host_.compare(OpKind::kGe, host_.index(bound->most_threads), threads);
    if (host_.constant_of(holds) != 1)
      check(holds, "a block has at most " + std::to_string(bound->most_threads) + " threads", Of::kSchedule);
  }

  void checks() {
    check_facts();
    check_factors();
    check_resizes();
    for (const auto& d : plan_.divisibilities) {
      ValueId product = host_.index(1);
      for (const ScalarParameter& p : d.product) product = host_.mul(product, parameter(p));
      const ValueId rest = host_.floor_mod(product, host_.index(d.divisor), false);
      check(host_.compare(OpKind::kEq, rest, host_.index(0)),
            "a vectorized access needs extents and strides that are multiples of " + std::to_string(d.divisor));
    }
    for (const KernelParameter& p : parameters_) {
      const auto it = tensors_.find(p.tensor);
      const auto aligned = plan_.alignments.find(p.tensor);
      if (it == tensors_.end() || aligned == plan_.alignments.end()) continue;
      const int64_t bytes = aligned->second;
      const ValueId alignment = host_.op(OpKind::kTensorAlignment, {it->second}, Dtype::kIndex);
      check(host_.compare(OpKind::kGe, alignment, host_.index(bytes)), "a vectorized access needs %" +
                                                                           h()[it->second].name + " to be aligned to " +
                                                                           std::to_string(bytes) + " bytes");
    }
  }

  std::vector<ValueId> dimensions() {
    std::vector<ValueId> result;
    for (int p = static_cast<int>(ParallelType::kGridX); p <= static_cast<int>(ParallelType::kBlockZ); ++p) {
      ValueId extent;
      for (const Nest& nest : plan_.nest_plan.nests) {
        const ValueId v = g_[nest.op].results[0];
        const auto& loop = loop_of(g_.tensor_of(v));
        for (size_t i = 0; i < loop.size(); ++i) {
          if (plan_.parallel_of(nest.path[i]) != static_cast<ParallelType>(p)) continue;
          const ValueId e = emit(open_.algebra, open_.of(v).extent(loop[i]));
          const bool is_first = extent && plan_.defects().has(Defect::kLaunchOfFirst);
          extent = !extent ? e : is_first ? extent : host_.maximum(extent, e);
        }
      }
      if (extent && plan_.launched_empty.contains(static_cast<ParallelType>(p)) &&
          !plan_.defects().has(Defect::kLaunchOfNothing))
        extent = host_.maximum(extent, host_.index(1));
      if (extent && is_grid(static_cast<ParallelType>(p)) && plan_.defects().has(Defect::kLaunchFloor))
        extent = host_.maximum(host_.sub(extent, host_.index(1)), host_.index(1));
      result.push_back(extent ? extent : host_.index(1));
    }
    if (plan_.used_threads.contains(ParallelType::kGridY) && plan_.defects().has(Defect::kLaunchSwapped))
      std::swap(result[0], result[1]);
    dims_ = result;
    return result;
  }

  ValueId shared_bytes() {
    ValueId total = host_.index(0);
    for (const auto& slot : plan_.shared_slots) {
      ValueId size;
      for (ValueId v : slot) {
        const ValueId bytes =
            host_.mul(emit(open_.algebra, open_.elements_of(plan_.buffer_of(v))), host_.index(size_bytes(g_[v].dtype)));
        const ValueId rounded = host_.mul(host_.ceil_div(bytes, host_.index(128)), host_.index(128));
        size = size && !plan_.defects().has(Defect::kSharedSlotLast) ? host_.maximum(size, rounded) : rounded;
      }
      total = host_.add(total, size);
    }
    if (const int64_t lists = plan_.block_workspaces(); lists > 0) {
      const ValueId threads = host_.mul(dims_[3], host_.mul(dims_[4], dims_[5]));
      total = host_.add(total, host_.mul(threads, host_.index(16 * lists)));
    }
    if (const ClusterPlaces places = plan_.cluster_places(); places.lists > 0) {
      ValueId count = host_.index(places.lists * ClusterPlaces::kSets * ClusterPlaces::kPlaceBytes * places.elements *
                                  plan_.cluster->blocks);
      for (ParallelType p : places.groups)
        count = host_.mul(count, dims_[static_cast<size_t>(p) - static_cast<size_t>(ParallelType::kGridX)]);
      total = host_.add(total, count);
    }
    if (host_.constant_of(total) != 0 && plan_.defects().has(Defect::kSharedBytesShort))
      total = host_.floor_div(total, host_.index(2), true);
    return total;
  }

  ValueId allocate(Dtype dtype, std::vector<ValueId> sizes, bool zeroed, std::string name) {
    const ValueId t = add_tensor(h(), dtype, name);
    h().tensor_of(t).memory = MemoryType::kGlobal;
    std::vector<ValueId> operands = sizes, strides(sizes.size());
    ValueId run = host_.index(1);
    for (size_t i = sizes.size(); i-- > 0;) {
      strides[i] = run;
      run = host_.mul(run, sizes[i]);
    }
    operands.insert(operands.end(), strides.begin(), strides.end());
    std::vector<DomainId> logical;
    for (ValueId size : sizes) {
      IterDomain d;
      d.extent = size;
      d.name = "i" + std::to_string(logical.size());
      logical.push_back(add_domain(h(), h()[t].tensor, d));
    }
    h().tensor_of(t).logical = logical;
    Attrs attrs;
    attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
    if (zeroed) attrs.set_flag(AttrKey::kZero);
    append(h(), Graph::body(), Op{OpKind::kAllocateTensor, operands, {t}, attrs, {}});
    workspaces_.push_back(t);
    return t;
  }

  // A value of `spelled` in the host program.
  ValueId spelled(ValueId v) {
    const Graph& from = signature_.spelled.graph();
    if (from.is_constant(v)) return host_.constant(from[v].dtype, *from[v].constant);
    for (const auto& [symbol, value] : signature_.symbols)
      if (value == v) return as_index(parameter(*parameter_of(g_, symbol)));
    const Op& op = from[from[v].def];
    std::vector<ValueId> operands;
    for (ValueId o : op.operands) operands.push_back(spelled(o));
    return host_.op(op.kind, operands, from[v].dtype, op.attrs);
  }

  ValueId launched(const KernelParameter& p) {
    const ValueId value = spelled(p.spelled);
    return p.is_prepared ? host_.op(OpKind::kPrepareDiv, {value}, Dtype::kInt64) : value;
  }

  ValueId blocks() { return host_.mul(dims_[0], host_.mul(dims_[1], dims_[2])); }

  ValueId workspace_elements(const KernelParameter& w) {
    ValueId groups = host_.index(1), elements = host_.index(w.elements);
    for (size_t d = 0; d < dims_.size(); ++d) {
      const auto p = static_cast<ParallelType>(static_cast<size_t>(ParallelType::kGridX) + d);
      if (std::find(w.threads.begin(), w.threads.end(), p) != w.threads.end()) continue;
      ValueId& product = is_grid(p) ? groups : elements;
      product = host_.mul(product, dims_[d]);
    }
    if (plan_.defects().has(Defect::kWorkspaceShort)) return elements;
    return host_.mul(elements, w.has_results ? host_.add(blocks(), groups) : blocks());
  }

  void arguments(std::vector<ValueId>& operands) {
    for (ValueId v : globals_) {
      std::vector<ValueId> sizes;
      for (DomainId d : allocation_of(g_, g_.tensor_of(v)))
        // A domain made from a broadcast by transforms has holes, and the index counts them.
        if (g_[d].iter_type != IterType::kBroadcast || g_[d].def) sizes.push_back(extent(v, d));
      tensors_[v] = allocate(g_[v].dtype, sizes, false, g_[v].name);
    }
    std::vector<ValueId> given(parameters_.size());
    const auto allocate_all = [&](KernelParameter::Kind kind, const auto& made) {
      for (size_t i = 0; i < given.size(); ++i)
        if (parameters_[i].kind == kind) given[i] = made(parameters_[i]);
    };
    size_t workspaces = 0;
    allocate_all(KernelParameter::Kind::kWorkspace, [&](const KernelParameter& p) {
      return allocate(p.dtype, {workspace_elements(p)}, false, "workspace" + std::to_string(workspaces++));
    });
    const bool is_zeroed = !plan_.defects().has(Defect::kWorkspaceNotZeroed);
    allocate_all(KernelParameter::Kind::kArrivals, [&](const KernelParameter& p) {
      return allocate(Dtype::kUint32, {host_.mul(blocks(), host_.index(p.slots))}, is_zeroed, "arrivals");
    });
    allocate_all(KernelParameter::Kind::kCounters, [&](const KernelParameter& p) {
      return allocate(Dtype::kUint32, {host_.index(p.slots)}, is_zeroed, "counters");
    });
    for (size_t i = 0; i < given.size(); ++i) {
      const KernelParameter& p = parameters_[i];
      if (p.kind == KernelParameter::Kind::kTensor) given[i] = tensors_.at(p.tensor);
      if (p.kind == KernelParameter::Kind::kScalar) given[i] = parameter(p.scalar);
      if (p.kind == KernelParameter::Kind::kLaunched) given[i] = launched(p);
      operands.push_back(given[i]);
    }
  }

  const KernelPlan& plan_;
  OpenExtents open_;
  const KernelSignature& signature_;
  const std::vector<KernelParameter>& parameters_;
  const Graph& g_;
  KernelBuilder host_;
  std::map<ValueId, ValueId> scalars_;  // of the graph → of the host program
  std::map<ValueId, ValueId> tensors_;  // tensor of the graph → of the host program
  std::vector<ValueId> globals_;        // intermediates in global memory
  std::vector<ValueId> workspaces_;
  std::vector<ValueId> dims_;
  std::set<Form> axes_;  // the extents of the kernel's axes, once they are wanted
};

}  // namespace

Graph emit_launch(const KernelPlan& plan, const KernelSignature& signature) {
  return LaunchBuilder(plan, signature).run();
}

}  // namespace fusebox
