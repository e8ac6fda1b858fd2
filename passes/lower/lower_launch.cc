// The host program of one kernel: sizes, checks, workspaces, launch dimensions, arguments.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

class LaunchBuilder {
 public:
  explicit LaunchBuilder(Lowering& l) : l_(l), host_(l.g.name + "_launch", 64) { host_.graph().level = Level::kHost; }

  Graph run() {
    signature();
    checks();
    std::vector<ValueId> operands = dimensions();
    operands.push_back(shared_bytes());
    arguments(operands);
    Attrs attrs;
    attrs.set(AttrKey::kName, l_.g.name);
    host_.effect(OpKind::kLaunch, operands, {}, attrs);
    for (ValueId w : workspaces_) host_.effect(OpKind::kDeallocate, {w}, {});
    return host_.finish();
  }

 private:
  Graph& h() { return host_.graph(); }

  ValueId tensor_input(ValueId v) {
    const Tensor& from = l_.g.tensor_of(v);
    const ValueId t = add_tensor(h(), l_.g[v].dtype, l_.g[v].name);
    h().tensor_of(t).memory = MemoryType::kGlobal;
    const auto logical = logical_without_reductions(l_.g, from);
    std::vector<DomainId> made;
    for (DomainId d : logical) {
      IterDomain copy;
      copy.iter_type = l_.g[d].iter_type == IterType::kBroadcast ? IterType::kBroadcast : IterType::kIteration;
      copy.extent = copy.iter_type == IterType::kBroadcast ? constant_index(h(), 1) : extent(v, d);
      copy.expanded = l_.g[d].expanded ? scalar(l_.g[d].expanded) : ValueId();
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
    if (l_.g[d].extent) return scalar(l_.g[d].extent);
    l_.algebra.clear();
    Symbols symbols(l_.g, l_.classes, l_.algebra);
    DomainValues values(l_.g, l_.plan, symbols, l_.algebra, l_.g[tensor].tensor);
    return emit(values.extent(d));
  }

  ValueId emit(Form form) {
    FormEmitter emitter(
        l_.algebra, host_, [&](int symbol) { return scalar(ValueId(static_cast<uint32_t>(symbol))); },
        [](int) -> ValueId { throw Error(ErrorCode::kInternal, "a loop in a launch's scalars"); });
    return emitter.emit(form);
  }

  void signature() {
    // The host program finds what a launch is given by its name.
    for (OpId id : l_.g[Graph::body()].ops)
      if (l_.g[id].kind == OpKind::kSize || l_.g[id].kind == OpKind::kInput)
        for (ValueId v : l_.g[id].results) host_.reserve(l_.g[v].name);
    for (const OutputRef& out : outputs(l_.g)) host_.reserve(l_.g[out.value].name);
    for (OpId id : l_.g[Graph::body()].ops) {
      const Op& op = l_.g[id];
      if (op.kind == OpKind::kSize) {
        Op copy{OpKind::kSize, {}, {}, {}, {}};
        for (ValueId v : op.results) {
          scalars_[v] = add_scalar(h(), Dtype::kIndex, l_.g[v].name);
          copy.results.push_back(scalars_[v]);
        }
        append(h(), Graph::body(), copy);
      } else if (op.kind == OpKind::kInput) {
        const ValueId v = op.results[0];
        if (l_.g.is_tensor(v)) {
          tensors_[l_.buffers[v.index].kernel_value] = tensor_input(v);
          host_of_[v] = tensors_[l_.buffers[v.index].kernel_value];
        } else {
          scalars_[v] = add_scalar(h(), l_.g[v].dtype, l_.g[v].name);
          append(h(), Graph::body(), Op{OpKind::kInput, {}, {scalars_[v]}, {}, {}});
        }
      }
    }
    for (const Nest& nest : l_.plan.nests)
      for (ValueId v : l_.g[nest.op].results) {
        const Buffer& b = l_.buffers[v.index];
        if (!b.is_parameter || b.storage != v || is_output(v)) continue;
        globals_.push_back(v);
      }
    for (const OutputRef& out : outputs(l_.g))
      if (l_.g.is_tensor(out.value) && l_.buffers[out.value.index].storage == out.value &&
          l_.plan.has_nest(l_.g[out.value].def))
        tensors_[l_.buffers[out.value.index].kernel_value] = tensor_input(out.value);
  }

  bool is_output(ValueId v) const {
    for (const OutputRef& out : outputs(l_.g))
      if (out.value == v) return true;
    return false;
  }

  ValueId scalar(ValueId v) {
    if (l_.g.is_constant(v)) return host_.constant(l_.g[v].dtype, *l_.g[v].constant);
    if (const auto it = scalars_.find(v); it != scalars_.end()) return it->second;
    const Op& op = l_.g[l_.g[v].def];
    std::vector<ValueId> operands;
    for (ValueId operand : op.operands) operands.push_back(operand ? scalar(operand) : operand);
    return scalars_[v] = host_.op(op.kind, operands, l_.g[v].dtype, op.attrs);
  }

  ValueId parameter(const ScalarParameter& p) {
    if (p.scalar) return scalar(p.scalar);
    const auto order = allocation_of(l_.g, l_.g.tensor_of(p.stride_of));
    const auto logical = logical_without_reductions(l_.g, l_.g.tensor_of(p.stride_of));
    Attrs attrs;
    attrs.set(AttrKey::kAxis, static_cast<int64_t>(position_in(logical, order[p.axis])));
    return host_.op(OpKind::kTensorStride, {host_of_.at(p.stride_of)}, Dtype::kIndex, attrs);
  }

  void check(ValueId holds, std::string why) {
    Attrs attrs;
    attrs.set(AttrKey::kWhy, std::move(why));
    host_.effect(OpKind::kCheck, {holds}, {}, attrs);
  }

  // A split by 0 has no places for its elements.
  void check_factors() {
    std::set<ValueId> seen;
    for (const Nest& nest : l_.plan.nests) {
      const ValueId v = l_.g[nest.op].results[0];
      const auto of_op = op_transforms(l_.g, l_.g.tensor_of(v));
      for (TransformId id : l_.g.tensor_of(v).transforms) {
        const Transform& t = l_.g[id];
        if (t.kind != TransformKind::kSplit || l_.g.is_constant(t.factor)) continue;
        if (std::find(of_op.begin(), of_op.end(), id) != of_op.end()) continue;
        if (!seen.insert(l_.classes.representative(t.factor)).second) continue;
        check(host_.compare(OpKind::kGe, scalar(t.factor), host_.index(1)),
              "a split needs a factor of at least 1: %" + l_.g[v].name + "." + l_.g[t.inputs[0]].name +
                  " is split by one that is less");
      }
    }
  }

  void checks() {
    check_factors();
    for (const auto& d : l_.divisibilities) {
      ValueId product = host_.index(1);
      for (const ScalarParameter& p : d.product) product = host_.mul(product, parameter(p));
      const ValueId rest = host_.floor_mod(product, host_.index(d.divisor), false);
      check(host_.compare(OpKind::kEq, rest, host_.index(0)),
            "a vectorized access needs extents and strides that are multiples of " + std::to_string(d.divisor));
    }
    for (const auto& [kernel_value, bytes] : l_.alignments) {
      const auto it = tensors_.find(kernel_value);
      if (it == tensors_.end()) continue;
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
      for (const Nest& nest : l_.plan.nests) {
        const ValueId v = l_.g[nest.op].results[0];
        const auto& loop = loop_of(l_.g.tensor_of(v));
        for (size_t i = 0; i < loop.size(); ++i) {
          if (l_.plan.nodes[nest.path[i]].parallel != static_cast<ParallelType>(p)) continue;
          l_.algebra.clear();
          Symbols symbols(l_.g, l_.classes, l_.algebra);
          DomainValues values(l_.g, l_.plan, symbols, l_.algebra, l_.g[v].tensor);
          const ValueId e = emit(values.extent(loop[i]));
          const bool is_first = extent && l_.options.defects.has(Defect::kLaunchOfFirst);
          extent = !extent ? e : is_first ? extent : host_.maximum(extent, e);
        }
      }
      if (extent && l_.launched_empty.contains(static_cast<ParallelType>(p)) &&
          !l_.options.defects.has(Defect::kLaunchOfNothing))
        extent = host_.maximum(extent, host_.index(1));
      if (extent && is_grid(static_cast<ParallelType>(p)) && l_.options.defects.has(Defect::kLaunchFloor))
        extent = host_.maximum(host_.sub(extent, host_.index(1)), host_.index(1));
      result.push_back(extent ? extent : host_.index(1));
    }
    if (l_.used_threads.contains(ParallelType::kGridY) && l_.options.defects.has(Defect::kLaunchSwapped))
      std::swap(result[0], result[1]);
    dims_ = result;
    return result;
  }

  ValueId shared_bytes() {
    ValueId total = host_.index(0);
    for (const auto& slot : l_.shared_slots) {
      ValueId size;
      for (ValueId v : slot) {
        l_.algebra.clear();
        Symbols symbols(l_.g, l_.classes, l_.algebra);
        const Form elements = l_.elements_of(symbols, l_.buffers[v.index]);
        const ValueId bytes = host_.mul(emit(elements), host_.index(size_bytes(l_.g[v].dtype)));
        const ValueId rounded = host_.mul(host_.ceil_div(bytes, host_.index(128)), host_.index(128));
        size = size && !l_.options.defects.has(Defect::kSharedSlotLast) ? host_.maximum(size, rounded) : rounded;
      }
      total = host_.add(total, size);
    }
    if (l_.workspace_lists > 0) {
      const ValueId threads = host_.mul(dims_[3], host_.mul(dims_[4], dims_[5]));
      total = host_.add(total, host_.mul(threads, host_.index(16 * l_.workspace_lists)));
    }
    if (host_.constant_of(total) != 0 && l_.options.defects.has(Defect::kSharedBytesShort))
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

  void arguments(std::vector<ValueId>& operands) {
    for (ValueId v : globals_) {
      std::vector<ValueId> sizes;
      for (DomainId d : allocation_of(l_.g, l_.g.tensor_of(v)))
        // What a broadcast was split into has holes, and an index that counts them.
        if (l_.g[d].iter_type != IterType::kBroadcast || l_.g[d].def) sizes.push_back(extent(v, d));
      tensors_[l_.buffers[v.index].kernel_value] = allocate(l_.g[v].dtype, sizes, false, l_.g[v].name);
    }
    ValueId threads = host_.index(1);
    for (ValueId d : dims_) threads = host_.mul(threads, d);
    if (!l_.grid_workspaces.empty() && l_.options.defects.has(Defect::kWorkspaceShort))
      threads = host_.mul(dims_[3], host_.mul(dims_[4], dims_[5]));
    for (size_t i = 0; i < l_.grid_workspaces.size(); ++i)
      tensors_[l_.grid_workspaces[i].parameter] =
          allocate(l_.grid_workspaces[i].dtype, {threads}, false, "workspace" + std::to_string(i));
    if (l_.grid_counters)
      tensors_[l_.grid_counters] = allocate(Dtype::kUint32, {host_.index(l_.grid_slots)},
                                            !l_.options.defects.has(Defect::kWorkspaceNotZeroed), "counters");
    std::map<ValueId, ScalarParameter> scalars;
    for (const auto& [p, v] : l_.parameters) scalars[v] = p;
    for (OpId id : l_.kernel.parameters()) {
      const ValueId v = l_.kernel.graph()[id].results[0];
      const auto it = tensors_.find(v);
      operands.push_back(it != tensors_.end() ? it->second : parameter(scalars.at(v)));
    }
  }

  Lowering& l_;
  KernelBuilder host_;
  std::map<ValueId, ValueId> scalars_;  // of the graph → of the host program
  std::map<ValueId, ValueId> tensors_;  // kernel parameter → host tensor
  std::map<ValueId, ValueId> host_of_;  // input of the graph → host tensor
  std::vector<ValueId> globals_;        // intermediates in global memory
  std::vector<ValueId> workspaces_;
  std::vector<ValueId> dims_;
};

}  // namespace

Graph Lowering::build_launch() { return LaunchBuilder(*this).run(); }

}  // namespace fusebox::lowering
