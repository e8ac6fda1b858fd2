#include "passes/host/host_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "ir/domain/domain.h"
#include "ir/graph/compact.h"
#include "ir/graph/name_index.h"
#include "ir/graph/operands_first.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "passes/kernel/kernel_builder.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/segment.h"
#include "passes/segment/view.h"

namespace fusebox {
namespace {

class HostBuilder {
 public:
  HostBuilder(const Graph& fusion, const Segmentation& segmentation, const std::vector<Graph>& launches,
              const Defects& defects)
      : fusion_(fusion),
        source_names_(fusion),
        extractor_(fusion),
        segmentation_(segmentation),
        launches_(launches),
        defects_(defects),
        host_(fusion.name + "_host", 64),
        names_(host_.graph()) {
    host_.graph().level = Level::kHost;
  }

  Graph run() {
    signature();
    find_views();
    compute_indices();
    keep_overwritten_inputs();
    const std::vector<size_t> order = order_of_segments();
    const std::vector<std::vector<std::string>> unneeded = unneeded_after(order);
    for (size_t k = 0; k < order.size(); ++k) {
      run_segment(order[k]);
      release(unneeded[k]);
    }
    finish_outputs();
    return compacted(host_.finish());
  }

 private:
  Graph& h() { return host_.graph(); }

  void signature() {
    for (OpId id : fusion_[Graph::body()].ops) {
      const Op op = fusion_[id];
      if (op.kind == OpKind::kSize) {
        Op copy{OpKind::kSize, {}, {}, {}, {}};
        for (ValueId v : op.results)
          copy.results.push_back(scalars_[v] = add_scalar(h(), names_, fusion_[v].dtype, fusion_[v].name));
        append(h(), Graph::body(), copy);
      } else if (op.kind == OpKind::kInput) {
        const ValueId v = op.results[0];
        if (fusion_.is_tensor(v)) {
          tensors_[fusion_[v].name] = declare(v);
        } else {
          scalars_[v] = add_scalar(h(), names_, fusion_[v].dtype, fusion_[v].name);
          append(h(), Graph::body(), Op{OpKind::kInput, {}, {scalars_[v]}, {}, {}});
        }
      }
    }
  }

  // The scalars that kernels make their indices of, so that a run is refused where one leaves 64 bits, before a kernel
  // computes with it.
  void compute_indices() {
    for (OpId id : fusion_[Graph::body()].ops) {
      const Op& op = fusion_[id];
      const bool is_sum = op.kind == OpKind::kAdd || op.kind == OpKind::kSub || op.kind == OpKind::kMul;
      if (is_sum && !fusion_.is_tensor(op.results[0]) && fusion_[op.results[0]].dtype == Dtype::kIndex)
        scalar(op.results[0]);
    }
  }

  // An input may also be an output, in its own place or over another input. If such an input is overwritten, the output
  // is the input as it was before the run, so a copy is kept.
  void keep_overwritten_inputs() {
    std::set<ValueId> overwritten;
    if (defects_.has(Defect::kExchangeUnsaved)) return;
    for (const OutputRef& out : outputs(fusion_))
      if (out.alias) overwritten.insert(out.alias);
    for (const OutputRef& out : outputs(fusion_)) {
      if (out.alias == out.value || !overwritten.contains(out.value) || kept_.contains(out.value)) continue;
      kept_[out.value] = declare(out.value, {}, Storage::kAllocated);
      host_.effect(OpKind::kCopyTensor, {kept_[out.value], tensor(fusion_[out.value].name)}, {});
    }
  }

  std::vector<size_t> order_of_segments() {
    std::vector<size_t> order(segmentation_.segments.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (order.size() > 1 && defects_.has(Defect::kSegmentOrder)) {
      std::swap(order[order.size() - 2], order.back());
      for (const Crossing& c : segmentation_.segments[order[order.size() - 2]].inputs) destination(c);
    }
    return order;
  }

  void run_segment(size_t i) {
    const Segment& s = segmentation_.segments[i];
    if (s.executor == SegmentExecutor::kKernel)
      for (const Crossing& c : s.outputs) destination(c);
    switch (s.executor) {
      case SegmentExecutor::kView:
        return make_view(s);
      case SegmentExecutor::kKernel:
        return inline_launch(s, launches_[i]);
      case SegmentExecutor::kAten:
        return run_aten(s);
      case SegmentExecutor::kCommunicate:
        throw Error(ErrorCode::kUnsupportedOp, "communication segments are not supported yet; use kernel or aten",
                    "segment " + s.name);
    }
  }

  // The fusion's size or scalar input of this name.
  ValueId in_fusion(const Graph& launch, ValueId v) {
    const auto found = source_names_.find(launch[v].name);
    if (!found || fusion_.is_tensor(*found))
      throw Error(ErrorCode::kUnknownName, "a launch needs a scalar that its fusion has not", "%" + launch[v].name);
    return *found;
  }

  // The tensor of this name, which an input or a segment before has made.
  ValueId tensor(const std::string& name) const {
    if (const auto it = tensors_.find(name); it != tensors_.end()) return it->second;
    throw Error(ErrorCode::kInvalidGraph, "the segments use a tensor that none of them has made by then", "%" + name);
  }

  ValueId scalar(ValueId v) {
    if (fusion_.is_constant(v)) return host_.constant(fusion_[v].dtype, *fusion_[v].constant);
    const auto is_made = [&](ValueId x) { return fusion_.is_constant(x) || scalars_.contains(x); };
    operands_first(fusion_, v, is_made, [&](ValueId x) {
      const Op op = fusion_[fusion_[x].def];
      std::vector<ValueId> operands;
      for (ValueId o : op.operands)
        operands.push_back(!o                       ? o
                           : fusion_.is_constant(o) ? host_.constant(fusion_[o].dtype, *fusion_[o].constant)
                                                    : scalars_.at(o));
      scalars_[x] = host_.op(op.kind, operands, fusion_[x].dtype, op.attrs);
    });
    return scalars_.at(v);
  }

  // Declares a tensor of the fusion in the host program: as an `input`, or allocated.
  enum class Storage { kAsDefined, kAllocated, kByAten };
  ValueId declare(ValueId v, const std::vector<int64_t>& allocation_order = {}, Storage storage = Storage::kAsDefined) {
    const Tensor old = fusion_.tensor_of(v);
    const auto from = logical_without_reductions(fusion_, old);
    std::vector<ValueId> extents, expanded;
    for (DomainId d : from) {
      const bool is_broadcast = fusion_[d].iter_type == IterType::kBroadcast;
      extents.push_back(is_broadcast ? host_.index(1) : extent(d));
      expanded.push_back(fusion_[d].expanded ? scalar(fusion_[d].expanded) : ValueId());
    }
    const ValueId t = add_named(fusion_[v].dtype, fusion_[v].name);
    std::vector<DomainId> logical;
    for (size_t i = 0; i < from.size(); ++i) {
      IterDomain d;
      d.iter_type = fusion_[from[i]].iter_type == IterType::kBroadcast ? IterType::kBroadcast : IterType::kIteration;
      d.extent = extents[i];
      d.expanded = expanded[i];
      d.name = "i" + std::to_string(i);
      logical.push_back(add_domain(h(), h()[t].tensor, d));
    }
    Tensor& made = h().tensor_of(t);
    made.logical = logical;
    made.memory = MemoryType::kGlobal;
    for (DomainId d : old.allocation)
      if (const size_t i = position_in(from, d); i < logical.size()) made.allocation.push_back(logical[i]);
    if (storage == Storage::kAsDefined && fusion_[fusion_[v].def].kind == OpKind::kInput) {
      made.contiguity = old.contiguity;
      append(h(), Graph::body(), Op{OpKind::kInput, {}, {t}, {}, {}});
      return t;
    }
    if (!allocation_order.empty()) {
      made.allocation.clear();
      for (int64_t axis : allocation_order) made.allocation.push_back(logical.at(static_cast<size_t>(axis)));
    }
    if (storage == Storage::kByAten) return t;
    // Sizes and strides by logical axis. A broadcast takes no memory, so its stride is 0.
    std::vector<ValueId> sizes(from.size()), strides(from.size(), host_.index(0));
    for (size_t i = 0; i < from.size(); ++i) sizes[i] = expanded[i] ? expanded[i] : extents[i];
    ValueId run = host_.index(1);
    auto order = allocation_of(h(), h().tensor_of(t));
    if (order != logical && defects_.has(Defect::kOutputStrides)) order = logical;
    for (size_t k = order.size(); k-- > 0;) {
      const size_t i = position_in(logical, order[k]);
      if (i >= from.size() || h()[logical[i]].iter_type == IterType::kBroadcast) continue;
      strides[i] = run;
      const bool is_wrong = extents[i] != extents.back() && defects_.has(Defect::kSizeOfOtherAxis);
      run = host_.mul(run, is_wrong ? extents.back() : extents[i]);
    }
    std::vector<ValueId> operands = sizes;
    operands.insert(operands.end(), strides.begin(), strides.end());
    Attrs attrs;
    attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
    append(h(), Graph::body(), Op{OpKind::kAllocateTensor, operands, {t}, attrs, {}});
    return t;
  }

  void destination(const Crossing& c) {
    if (tensors_.contains(c.value)) return;
    const ValueId v = *source_names_.find(c.value);
    if (!c.alias.empty()) {
      tensors_[c.value] = tensor(c.alias);
      return;
    }
    if (const auto returned = returned_views_.find(c.value); returned != returned_views_.end()) {
      destination(*returned->second);
      tensors_[c.value] =
          view_of(*returned->second, v, strides_of(v, memory_order(fusion_, v, c), ValueId()), ValueId());
      return;
    }
    tensors_[c.value] = declare(v, c.allocation_order);
    allocated_.emplace(c.value, allocated_.size());
  }

  // -- views

  void find_views() {
    std::set<ValueId> returned;
    for (const OutputRef& out : outputs(fusion_)) returned.insert(out.value);
    for (const Segment& s : segmentation_.segments) {
      if (s.executor != SegmentExecutor::kView || s.outputs.empty()) continue;
      operands_of_views_.emplace(s.outputs[0].value, s.inputs.at(0).value);
      if (returned.contains(*source_names_.find(s.outputs[0].value)))
        returned_views_.emplace(s.inputs[0].value, &s.outputs[0]);
    }
  }

  bool is_broadcast(DomainId d) const { return fusion_[d].iter_type == IterType::kBroadcast; }
  ValueId extent(DomainId d) {
    return scalar(fusion_[d].extent ? fusion_[d].extent : emit_extent(fusion_, Graph::body(), d));
  }

  // By logical axis. What has a gap behind it has the stride that the tensor `given` shows in a run.
  std::vector<ValueId> strides_of(ValueId v, const MemoryOrder& in, ValueId given) {
    const auto axes = logical_without_reductions(fusion_, fusion_.tensor_of(v));
    std::vector<ValueId> strides(axes.size(), host_.index(0));
    ValueId run = host_.index(1);
    for (size_t k = in.order.size(); k-- > 0;) {
      if (in.contiguity[k] == Contiguity::kNone) continue;
      if (in.contiguity[k] == Contiguity::kFalse) {
        Attrs attrs;
        attrs.set(AttrKey::kAxis, in.order[k]);
        run = host_.op(OpKind::kTensorStride, {given}, Dtype::kIndex, attrs);
      }
      const auto axis = static_cast<size_t>(in.order[k]);
      strides[axis] = run;
      run = host_.mul(run, extent(axes[axis]));
    }
    return strides;
  }

  void make_view(const Segment& s) {
    if (s.outputs.empty() || tensors_.contains(s.outputs[0].value)) return;
    const Crossing &from = s.inputs.at(0), &to = s.outputs[0];
    const ValueId v = *source_names_.find(to.value);
    const ValueId operand = *source_names_.find(from.value);
    const MemoryOrder in = memory_order(fusion_, operand, from);
    const auto found = find_view(fusion_, fusion_[v].def, in, defects_);
    if (const auto* why = std::get_if<std::string>(&found))
      throw Error(ErrorCode::kIllegalAllocation, *why + "; assign the op to a kernel", "%" + from.value);
    const View& view = std::get<View>(found);
    const std::vector<ValueId> given = strides_of(operand, in, tensor(from.value));
    const auto stride_of = [&](const View::Stride& stride) {
      ValueId result = given.at(stride.axis);
      for (DomainId d : stride.times) result = host_.mul(result, extent(d));
      return result;
    };
    std::vector<ValueId> strides;
    for (const auto& stride : view.strides) strides.push_back(stride ? stride_of(*stride) : host_.index(0));
    ValueId first;
    for (const View::Shift& shift : view.shifts) {
      const ValueId by = host_.mul(host_.sub(host_.index(0), scalar(shift.left)), stride_of(shift.by));
      first = first ? host_.add(first, by) : by;
    }
    if (first && (constant_integer(h(), first) == 0 || defects_.has(Defect::kViewFirstDropped))) first = ValueId();
    tensors_[to.value] = view_of(from, v, strides, first);
  }

  // Declares a value that lies in the memory of the crossing tensor.
  ValueId view_of(const Crossing& base, ValueId v, const std::vector<ValueId>& strides, ValueId first) {
    const auto from = logical_without_reductions(fusion_, fusion_.tensor_of(v));
    std::vector<ValueId> operands{tensor(base.value)}, extents;
    for (DomainId d : from) extents.push_back(is_broadcast(d) ? host_.index(1) : extent(d));
    operands.insert(operands.end(), extents.begin(), extents.end());
    operands.insert(operands.end(), strides.begin(), strides.end());
    operands.push_back(first);
    const ValueId t = add_named(fusion_[v].dtype, fusion_[v].name);
    std::vector<DomainId> logical;
    for (size_t i = 0; i < from.size(); ++i) {
      IterDomain d;
      d.iter_type = is_broadcast(from[i]) ? IterType::kBroadcast : IterType::kIteration;
      d.extent = extents[i];
      d.name = "i" + std::to_string(i);
      logical.push_back(add_domain(h(), h()[t].tensor, d));
    }
    h().tensor_of(t).logical = logical;
    h().tensor_of(t).memory = MemoryType::kGlobal;
    append(h(), Graph::body(), Op{OpKind::kAliasView, operands, {t}, {}, {}});
    allocated_.emplace(fusion_[v].name, allocated_.size());
    return t;
  }

  void inline_launch(const Segment& segment, const Graph& launch) {
    std::map<ValueId, ValueId> map;
    // The last tensor inputs of the launch are the destinations of outputs that overwrite nothing, in order.
    std::vector<ValueId> given, destinations;
    for (ValueId v : inputs(launch))
      if (launch.is_tensor(v)) given.push_back(v);
    for (const Crossing& c : segment.outputs)
      if (c.alias.empty()) destinations.push_back(tensor(c.value));
    if (given.size() < destinations.size())
      throw Error(ErrorCode::kInvalidGraph, "a segment gives more tensors than its launch takes", "@" + segment.name);
    for (size_t i = 0; i < destinations.size(); ++i)
      map[given[given.size() - destinations.size() + i]] = destinations[i];
    const auto of = [&](ValueId v) {
      if (!v) return v;
      if (launch.is_constant(v)) return host_.constant(launch[v].dtype, *launch[v].constant);
      return map.at(v);
    };
    for (OpId id : launch[Graph::body()].ops) {
      const Op& op = launch[id];
      if (op.kind == OpKind::kSize) {
        for (ValueId r : op.results) map[r] = scalar(in_fusion(launch, r));
        continue;
      }
      if (op.kind == OpKind::kInput) {
        const ValueId r = op.results[0];
        if (!map.contains(r)) map[r] = launch.is_tensor(r) ? tensor(launch[r].name) : scalar(in_fusion(launch, r));
        continue;
      }
      std::vector<ValueId> operands;
      for (ValueId v : op.operands) operands.push_back(of(v));
      if (op.kind == OpKind::kAllocateTensor) {
        map[op.results[0]] = workspace(launch, op, operands);
      } else if (op.results.size() == 1 && !demands(op.kind, kEffect)) {
        map[op.results[0]] = host_.op(op.kind, operands, launch[op.results[0]].dtype, op.attrs);
      } else {
        host_.effect(op.kind, operands, {}, op.attrs);
      }
    }
  }

  // Tensors keep their names, by which a record finds the layout of what crosses. A scalar that was named by its number
  // makes room.
  ValueId add_named(Dtype dtype, const std::string& name) {
    for (; kept_apart_ < h().values.size(); ++kept_apart_) {
      Value& v = h().values[kept_apart_];
      const auto wanted = v.kind == ValueKind::kScalar ? source_names_.find(v.name) : std::nullopt;
      if (!wanted || !fusion_.is_tensor(*wanted)) continue;
      do v.name += "_host";
      while (source_names_.find(v.name));
    }
    return add_tensor(h(), names_, dtype, name);
  }

  ValueId workspace(const Graph& launch, const Op& op, const std::vector<ValueId>& operands) {
    const ValueId r = op.results[0];
    const ValueId t = add_named(launch[r].dtype, launch[r].name);
    std::vector<DomainId> logical;
    for (size_t i = 0; i < operands.size() / 2; ++i) {
      IterDomain d;
      d.extent = operands[i];
      d.name = "i" + std::to_string(i);
      logical.push_back(add_domain(h(), h()[t].tensor, d));
    }
    h().tensor_of(t).logical = logical;
    h().tensor_of(t).memory = MemoryType::kGlobal;
    append(h(), Graph::body(), Op{OpKind::kAllocateTensor, operands, {t}, op.attrs, {}});
    return t;
  }

  std::vector<int64_t> order_of(const std::string& value) {
    const Tensor& t = fusion_.tensor_of(*source_names_.find(value));
    const auto logical = logical_without_reductions(fusion_, t);
    std::vector<int64_t> order;
    for (DomainId d : allocation_of(fusion_, t))
      if (const size_t axis = position_in(logical, d); axis < logical.size())
        order.push_back(static_cast<int64_t>(axis));
    return order;
  }

  // Passes sizes, scalars and tensors in the order of the segment's own signature. ATen gives tensors of the layouts that
  // their types declare. A tensor that has a place already is copied there.
  void run_aten(const Segment& s) {
    const Graph part = extractor_.extract(s);
    std::vector<ValueId> operands;
    for (OpId id : part[Graph::body()].ops) {
      const Op& op = part[id];
      if (op.kind != OpKind::kSize && op.kind != OpKind::kInput) continue;
      for (ValueId v : op.results)
        operands.push_back(part.is_tensor(v) ? tensor(part[v].name) : scalar(*source_names_.find(part[v].name)));
    }
    Attrs attrs;
    attrs.set(AttrKey::kName, s.name);
    attrs.set(AttrKey::kSlot, static_cast<int64_t>(operands.size()));
    std::vector<ValueId> results;
    for (const Crossing& c : s.outputs) {
      const ValueId v = *source_names_.find(c.value);
      // A tensor that is copied over an input has the order of that input, so that a GPU copies bytes.
      const bool is_copied = !c.alias.empty();
      results.push_back(declare(v, is_copied ? order_of(c.alias) : c.allocation_order, Storage::kByAten));
      if (!is_copied) h().tensor_of(results.back()).contiguity = c.contiguity;
    }
    append(h(), Graph::body(), Op{OpKind::kRunAten, operands, results, attrs, {}});
    for (size_t i = 0; i < s.outputs.size(); ++i) {
      const Crossing& c = s.outputs[i];
      if (!c.alias.empty()) tensors_[c.value] = tensor(c.alias);
      if (const auto place = tensors_.find(c.value); place != tensors_.end()) {
        host_.effect(OpKind::kCopyTensor, {place->second, results[i]}, {});
        host_.effect(OpKind::kDeallocate, {results[i]}, {});
        continue;
      }
      tensors_[c.value] = results[i];
      allocated_.emplace(c.value, allocated_.size());
    }
  }

  // For each place in the order: the values that no later segment needs and that are not outputs.
  std::vector<std::vector<std::string>> unneeded_after(const std::vector<size_t>& order) const {
    std::unordered_map<std::string_view, size_t> last;  // place of the last segment that needs a value
    for (size_t k = 0; k < order.size(); ++k) {
      const Segment& s = segmentation_.segments[order[k]];
      if (!defects_.has(Defect::kIntermediateFreed))
        for (const Crossing& c : s.inputs)
          for (const std::string* value = &c.value; value; value = operand_of_view(*value)) last[*value] = k;
      for (const Crossing& c : s.outputs) last[c.value] = k;
    }
    for (const OutputRef& out : outputs(fusion_)) last.erase(fusion_[out.value].name);
    std::vector<std::vector<std::string>> result(order.size());
    for (const auto& [name, k] : last) result[k].emplace_back(name);
    return result;
  }

  // The tensor in whose memory a view lies; null if the value is none.
  const std::string* operand_of_view(const std::string& value) const {
    const auto at = operands_of_views_.find(value);
    return at == operands_of_views_.end() ? nullptr : &at->second;
  }

  // Frees the allocated tensors among these, in the order of allocation.
  void release(const std::vector<std::string>& unneeded) {
    std::map<size_t, std::string> freed;
    for (const std::string& name : unneeded)
      if (const auto it = allocated_.find(name); it != allocated_.end()) freed.emplace(it->second, name);
    for (const auto& [at, name] : freed) host_.effect(OpKind::kDeallocate, {tensor(name)}, {});
  }

  void finish_outputs() {
    for (const OutputRef& out : outputs(fusion_)) {
      if (!out.alias || !fusion_.is_tensor(out.value)) continue;
      const auto kept = out.alias == out.value ? kept_.end() : kept_.find(out.value);
      const ValueId from = kept != kept_.end() ? kept->second : tensor(fusion_[out.value].name);
      const ValueId to = tensor(fusion_[out.alias].name);
      if (from != to && !defects_.has(Defect::kAliasCopyDropped)) host_.effect(OpKind::kCopyTensor, {to, from}, {});
    }
    for (const OutputRef& out : outputs(fusion_)) {
      if (!fusion_.is_tensor(out.value)) {
        host_.effect(OpKind::kOutput, {scalar(out.value), ValueId()}, {});
        continue;
      }
      const ValueId alias = out.alias ? tensor(fusion_[out.alias].name) : ValueId();
      const auto kept = kept_.find(out.value);
      const ValueId v = out.alias ? alias : kept != kept_.end() ? kept->second : tensor(fusion_[out.value].name);
      host_.effect(OpKind::kOutput, {v, alias}, {});
    }
  }

  Graph fusion_;  // with the extents that tensors of the host program need
  NameIndex source_names_;
  SegmentExtractor extractor_;
  const Segmentation& segmentation_;
  const std::vector<Graph>& launches_;
  const Defects& defects_;
  KernelBuilder host_;
  NameIndex names_;        // of the host program
  size_t kept_apart_ = 0;  // the number of values in the host program that have no tensor's name
  std::map<ValueId, ValueId> scalars_;
  std::map<std::string, ValueId> tensors_;
  std::unordered_map<std::string, size_t> allocated_;  // by name: its number among the allocations
  std::map<ValueId, ValueId> kept_;                    // copies of inputs, by the fusion's value
  std::unordered_map<std::string, std::string> operands_of_views_;
  // By the operand of a view that the program returns: that output. A kernel makes the operand in its place.
  std::unordered_map<std::string, const Crossing*> returned_views_;
};

}  // namespace

Graph build_host_program(const Graph& fusion, const Segmentation& segmentation, const std::vector<Graph>& launches,
                         const Defects& defects) {
  return HostBuilder(fusion, segmentation, launches, defects).run();
}

}  // namespace fusebox
