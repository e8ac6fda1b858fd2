// Structs of ir/module/module.h to the tables of module.fbs, field by field.
#include <bit>

#include "serde/writer.h"

namespace fusebox {
namespace {

template <class E>
uint16_t number(E row) {
  return static_cast<uint16_t>(row);
}

flatbuffers::Offset<wire::Attr> write_attr(Writer& w, const Attr& attr, const Place& place) {
  const AttrKind kind = row_of(attr.key).kind;
  const bool fits = kind == AttrKind::kInts     ? std::holds_alternative<std::vector<int64_t>>(attr.value)
                    : kind == AttrKind::kString ? std::holds_alternative<std::string>(attr.value)
                    : kind == AttrKind::kDtype  ? std::holds_alternative<Dtype>(attr.value)
                                                : std::holds_alternative<int64_t>(attr.value);
  if (!fits)
    throw Error(ErrorCode::kBadAttribute,
                "attribute '" + std::string(row_of(attr.key).text) +
                    "' holds a value of another kind; set it as its table row says",
                place.text());
  int64_t integer = 0;
  flatbuffers::Offset<flatbuffers::String> text;
  flatbuffers::Offset<flatbuffers::Vector<int64_t>> ints;
  if (kind == AttrKind::kInts)
    ints = w.integers(std::get<std::vector<int64_t>>(attr.value), Place(place, "ints"));
  else if (kind == AttrKind::kString)
    text = w.string(std::get<std::string>(attr.value), Place(place, "text"), limits::kTextBytes);
  else if (kind == AttrKind::kDtype)
    integer = static_cast<int64_t>(std::get<Dtype>(attr.value));
  else
    integer = std::get<int64_t>(attr.value);
  return wire::CreateAttr(w.b, number(attr.key), integer, text, ints);
}

class GraphWriter {
 public:
  GraphWriter(Writer& w, const Place& place) : writer_(w), place_(place) {}

  flatbuffers::Offset<wire::Value> write(const Value& v, const Place& at) {
    const auto name = writer_.string(v.name, Place(at, "name"));
    ConstantBits bits = v.constant.value_or(ConstantBits{});
    if (is_integer(v.dtype) && writer_.defects.has(Defect::kEncodeNarrow)) bits.low = static_cast<uint32_t>(bits.low);
    if (writer_.defects.has(Defect::kEncodeImaginary)) bits.high = 0;
    const wire::Constant constant = write_constant(bits);
    return wire::CreateValue(writer_.b, number(v.kind), number(v.dtype), name, v.def.index,
                             v.constant ? &constant : nullptr, v.index_of.index, v.tensor.index);
  }

  flatbuffers::Offset<wire::Tensor> write(const Tensor& t, const Place& at) {
    const auto root = writer_.ids(t.root, Place(at, "root"));
    const auto logical = writer_.ids(t.logical, Place(at, "logical"));
    const auto allocation = writer_.ids(t.allocation, Place(at, "allocation"));
    const auto loop = writer_.ids(t.loop, Place(at, "loop"));
    auto contiguity = writer_.rows(t.contiguity, Place(at, "contiguity"));
    if (!t.contiguity.empty() && writer_.defects.has(Defect::kEncodeContiguity)) contiguity = 0;
    const auto loop_broadcasts = writer_.ids(t.loop_broadcasts, Place(at, "loop_broadcasts"));
    const auto transforms = writer_.ids(t.transforms, Place(at, "transforms"));
    const auto devices = writer_.integers(t.devices, Place(at, "devices"));
    const DomainId inline_at = writer_.defects.has(Defect::kEncodeInline) ? DomainId() : t.inline_at;
    return wire::CreateTensor(writer_.b, t.value.index, root, logical, allocation, loop, contiguity, loop_broadcasts,
                              transforms, number(t.memory), devices, inline_at.index, t.circular_depth);
  }

  flatbuffers::Offset<wire::Domain> write(const IterDomain& d, const Place& at) {
    const auto name = writer_.string(d.name, Place(at, "name"));
    return wire::CreateDomain(writer_.b, name, d.tensor.index, number(d.iter_type), number(d.parallel), d.extent.index,
                              d.expanded.index, d.def.index, d.stands_for.index);
  }

  flatbuffers::Offset<wire::Transform> write(const Transform& t, const Place& at) {
    const auto inputs = writer_.ids(t.inputs, Place(at, "inputs"));
    const auto outputs = writer_.ids(t.outputs, Place(at, "outputs"));
    return wire::CreateTransform(writer_.b, number(t.kind), inputs, outputs, t.factor.index, t.right.index,
                                 t.inner_split, number(t.swizzle));
  }

  flatbuffers::Offset<wire::Op> write(const Op& op, const Place& at) {
    const auto operands = writer_.ids(op.operands, Place(at, "operands"));
    const auto results = writer_.ids(op.results, Place(at, "results"));
    Attrs kept = op.attrs;
    if (kept.has(AttrKey::kFast) && writer_.defects.has(Defect::kPrecisionNotEncoded)) kept.erase(AttrKey::kFast);
    const auto attrs = write_attrs(writer_, kept, Place(at, "attrs"));
    const auto regions = writer_.ids(op.regions, Place(at, "regions"));
    return wire::CreateOp(writer_.b, number(op.kind), operands, results, attrs, regions);
  }

  flatbuffers::Offset<wire::Region> write(const Region& r, const Place& at) {
    const auto ops = writer_.ids(r.ops, Place(at, "ops"));
    return wire::CreateRegion(writer_.b, r.index.index, ops);
  }

  template <class T>
  auto list(const std::vector<T>& from, const char* field) {
    return writer_.list(from, Place(place_, field), limits::kNodes,
                        [&](const T& node, const Place& at) { return write(node, at); });
  }

  flatbuffers::Offset<wire::Graph> write(const Graph& g) {
    const auto name = writer_.string(g.name, Place(place_, "name"));
    const auto values = list(g.values, "values");
    const auto tensors = list(g.tensors, "tensors");
    const auto domains = list(g.domains, "domains");
    const auto transforms = list(g.transforms, "transforms");
    const auto ops = list(g.ops, "ops");
    const auto regions = list(g.regions, "regions");
    return wire::CreateGraph(writer_.b, name, number(g.level), static_cast<uint8_t>(g.index_bits), values, tensors,
                             domains, transforms, ops, regions);
  }

 private:
  Writer& writer_;
  const Place& place_;
};

flatbuffers::Offset<wire::StepOperand> write_operand(Writer& w, const StepOperand& operand, const Place& place) {
  const auto value = w.string(operand.value, Place(place, "value"));
  const auto domain = w.string(operand.domain, Place(place, "domain"));
  return wire::CreateStepOperand(w.b, value, domain, operand.integer);
}

Writer::Tables<wire::Step> write_steps(Writer& w, const std::vector<Step>& steps, const Place& place) {
  return w.list(steps, place, limits::kSteps, [&](const Step& step, const Place& at) {
    const auto operands = w.list(step.operands, Place(at, "operands"), limits::kNodes,
                                 [&](const StepOperand& o, const Place& there) { return write_operand(w, o, there); });
    const auto results = w.names(step.results, Place(at, "results"));
    const auto attrs = write_attrs(w, step.attrs, Place(at, "attrs"));
    return wire::CreateStep(w.b, number(step.kind), operands, results, attrs);
  });
}

Writer::Tables<wire::Crossing> write_crossings(Writer& w, const std::vector<Crossing>& crossings, const Place& place) {
  return w.list(crossings, place, limits::kNodes, [&](const Crossing& crossing, const Place& at) {
    const auto value = w.string(crossing.value, Place(at, "value"));
    auto order = w.integers(crossing.allocation_order, Place(at, "allocation_order"), limits::kAxes);
    if (!crossing.allocation_order.empty() && w.defects.has(Defect::kEncodeCrossingOrder)) order = 0;
    const auto contiguity = w.rows(crossing.contiguity, Place(at, "contiguity"));
    const auto alias = w.string(crossing.alias, Place(at, "alias"));
    return wire::CreateCrossing(w.b, value, order, contiguity, alias);
  });
}

flatbuffers::Offset<wire::Segment> write_segment(Writer& w, const Segment& segment, const Place& place) {
  const auto name = w.string(segment.name, Place(place, "name"));
  const auto ops = w.names(segment.ops, Place(place, "ops"));
  const auto inputs = write_crossings(w, segment.inputs, Place(place, "inputs"));
  const auto outputs = write_crossings(w, segment.outputs, Place(place, "outputs"));
  const auto steps = write_steps(w, segment.steps, Place(place, "steps"));
  const SegmentExecutor executor = w.defects.has(Defect::kEncodeExecutor) ? SegmentExecutor{} : segment.executor;
  return wire::CreateSegment(w.b, name, number(executor), ops, inputs, outputs, steps);
}

}  // namespace

wire::Constant write_constant(ConstantBits bits) { return wire::Constant(bits.low, bits.high); }

Writer::Tables<wire::Attr> write_attrs(Writer& w, const Attrs& attrs, const Place& place) {
  return w.list(attrs.list(), place, attr_rows().size(),
                [&](const Attr& attr, const Place& at) { return write_attr(w, attr, at); });
}

flatbuffers::Offset<wire::StepList> write_step_list(Writer& w, const StepList& list, const Place& place) {
  const auto name = w.string(list.name, Place(place, "name"));
  const auto graph = w.string(list.graph, Place(place, "graph"));
  const auto steps = write_steps(w, list.steps, Place(place, "steps"));
  return wire::CreateStepList(w.b, name, graph, steps);
}

flatbuffers::Offset<wire::InputSpec> write_input_spec(Writer& w, const InputSpec& spec, const Place& place) {
  const auto name = w.string(spec.name, Place(place, "name"));
  const auto shape = w.integers(spec.shape, Place(place, "shape"), limits::kAxes);
  const auto strides = w.integers(spec.strides, Place(place, "strides"), limits::kAxes);
  const wire::Constant value = write_constant(spec.value);
  return wire::CreateInputSpec(w.b, name, number(spec.dtype), spec.is_scalar, shape, strides, spec.offset,
                               number(spec.generator), spec.seed, std::bit_cast<uint64_t>(spec.low),
                               std::bit_cast<uint64_t>(spec.high), spec.value == ConstantBits{} ? nullptr : &value);
}

flatbuffers::Offset<wire::Module> write_module(Writer& w, const Module& m, const Place& place) {
  const auto graphs = w.list(m.graphs, Place(place, "graphs"), limits::kGraphs,
                             [&](const Graph& g, const Place& at) { return GraphWriter(w, at).write(g); });
  const auto step_lists = w.list(m.step_lists, Place(place, "step_lists"), limits::kGraphs,
                                 [&](const StepList& list, const Place& at) { return write_step_list(w, list, at); });
  const auto segmentations = w.list(
      m.segmentations, Place(place, "segmentations"), limits::kGraphs, [&](const Segmentation& from, const Place& at) {
        const auto graph = w.string(from.graph, Place(at, "graph"));
        const auto segments = w.list(from.segments, Place(at, "segments"), limits::kNodes,
                                     [&](const Segment& s, const Place& there) { return write_segment(w, s, there); });
        return wire::CreateSegmentation(w.b, graph, segments);
      });
  const auto input_specs =
      w.list(m.input_specs, Place(place, "input_specs"), limits::kGraphs, [&](const InputSpecs& from, const Place& at) {
        const auto graph = w.string(from.graph, Place(at, "graph"));
        const auto where = w.string(from.where, Place(at, "where"));
        const auto specs =
            w.list(from.specs, Place(at, "specs"), limits::kNodes,
                   [&](const InputSpec& s, const Place& there) { return write_input_spec(w, s, there); });
        return wire::CreateInputSpecs(w.b, graph, where, specs);
      });
  return wire::CreateModule(w.b, graphs, step_lists, segmentations, input_specs);
}

}  // namespace fusebox
