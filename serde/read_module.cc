// Tables of module.fbs to the structs of ir/module/module.h, field by field.
#include "serde/reader.h"
#include "serde/structure.h"

namespace fusebox {
namespace {

// The number of rows of the enumeration whose numbers a list attribute holds, or 0.
size_t element_rows(AttrKey key) {
  if (key == AttrKey::kThreads) return row_count<ParallelType>();
  if (key == AttrKey::kContiguity) return row_count<Contiguity>();
  return 0;
}

AttrValue read_attr_value(Reader& reader, AttrKey key, const wire::Attr& from, const Place& place) {
  switch (row_of(key).kind) {
    case AttrKind::kInt:
      return from.integer();
    case AttrKind::kBool:
      if (from.integer() != 0 && from.integer() != 1) invalid_field(Place(place, "integer"), "a flag is 0 or 1");
      return from.integer();
    case AttrKind::kDtype:
      return reader.row<Dtype>(static_cast<uint64_t>(from.integer()), Place(place, "integer"));
    case AttrKind::kString:
      return reader.string(from.text(), Place(place, "text"), limits::kTextBytes);
    case AttrKind::kInts: {
      const Place ints(place, "ints");
      std::vector<int64_t> list = reader.integers(from.ints(), ints);
      if (const size_t rows = element_rows(key))
        for (size_t i = 0; i < list.size(); ++i)
          if (static_cast<uint64_t>(list[i]) >= rows)
            invalid_field(Place(ints, i),
                          std::to_string(list[i]) + " is no row; the table has " + std::to_string(rows));
      return list;
    }
#define FUSEBOX_TYPE(type) \
  case AttrKind::k##type:  \
    return static_cast<int64_t>(reader.row<type>(static_cast<uint64_t>(from.integer()), Place(place, "integer")));
      FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
  }
  throw Error(ErrorCode::kInternal, "an attribute kind that the decoder does not know", place.text());
}

class GraphReader {
 public:
  GraphReader(Reader& reader, const Place& place) : reader_(reader), place_(place) {}

  Graph read(const wire::Graph& from) {
    Graph g;
    g.name = reader_.string(from.name(), Place(place_, "name"));
    g.level = reader_.row<Level>(from.level(), Place(place_, "level"));
    g.index_bits = Reader::present(from.index_bits(), Place(place_, "index_bits"));
    g.values = list<Value>(from.values(), "values");
    g.tensors = list<Tensor>(from.tensors(), "tensors");
    g.domains = list<IterDomain>(from.domains(), "domains");
    g.transforms = list<Transform>(from.transforms(), "transforms");
    g.ops = list<Op>(from.ops(), "ops");
    g.regions = list<Region>(from.regions(), "regions");
    return g;
  }

 private:
  template <class T, class Table>
  std::vector<T> list(const flatbuffers::Vector<flatbuffers::Offset<Table>>* from, const char* field) {
    return reader_.list<T>(from, Place(place_, field), limits::kNodes,
                           [&](const Table& table, const Place& at) { return read(table, at); });
  }

  Value read(const wire::Value& from, const Place& at) {
    Value v;
    v.kind = reader_.row<ValueKind>(from.kind(), Place(at, "kind"));
    v.dtype = reader_.row<Dtype>(from.dtype(), Place(at, "dtype"));
    v.name = reader_.string(from.name(), Place(at, "name"));
    v.def = OpId(from.def());
    if (from.constant()) v.constant = read_constant(*from.constant());
    v.index_of = RegionId(from.index_of());
    v.tensor = TensorId(from.tensor());
    return v;
  }

  Tensor read(const wire::Tensor& from, const Place& at) {
    Tensor t;
    t.value = ValueId(Reader::present(from.value(), Place(at, "value")));
    t.root = reader_.ids<DomainTag>(from.root(), Place(at, "root"));
    t.logical = reader_.ids<DomainTag>(from.logical(), Place(at, "logical"));
    t.allocation = reader_.ids<DomainTag>(from.allocation(), Place(at, "allocation"));
    t.loop = reader_.ids<DomainTag>(from.loop(), Place(at, "loop"));
    t.contiguity = reader_.rows<Contiguity>(from.contiguity(), Place(at, "contiguity"));
    t.loop_broadcasts = reader_.ids<DomainTag>(from.loop_broadcasts(), Place(at, "loop_broadcasts"));
    t.transforms = reader_.ids<TransformTag>(from.transforms(), Place(at, "transforms"));
    t.memory = reader_.row<MemoryType>(from.memory(), Place(at, "memory"));
    t.devices = reader_.integers(from.devices(), Place(at, "devices"));
    t.inline_at = DomainId(from.inline_at());
    t.circular_depth = from.circular_depth();
    return t;
  }

  IterDomain read(const wire::Domain& from, const Place& at) {
    IterDomain d;
    d.name = reader_.string(from.name(), Place(at, "name"));
    d.tensor = TensorId(from.tensor());
    d.iter_type = reader_.row<IterType>(from.iter_type(), Place(at, "iter_type"));
    d.parallel = reader_.row<ParallelType>(from.parallel(), Place(at, "parallel"));
    d.extent = ValueId(from.extent());
    d.expanded = ValueId(from.expanded());
    d.def = TransformId(from.def());
    d.stands_for = DomainId(from.like());
    return d;
  }

  Transform read(const wire::Transform& from, const Place& at) {
    Transform t;
    t.kind = reader_.row<TransformKind>(from.kind(), Place(at, "kind"));
    t.inputs = reader_.ids<DomainTag>(from.inputs(), Place(at, "inputs"));
    t.outputs = reader_.ids<DomainTag>(from.outputs(), Place(at, "outputs"));
    t.factor = ValueId(from.factor());
    t.right = ValueId(from.right());
    t.inner_split = Reader::present(from.inner_split(), Place(at, "inner_split"));
    t.swizzle = reader_.row<SwizzleType>(from.swizzle(), Place(at, "swizzle"));
    if (reader_.defects.has(Defect::kDecodeSwizzle)) t.swizzle = SwizzleType::kXor;
    return t;
  }

  Op read(const wire::Op& from, const Place& at) {
    Op op;
    op.kind = reader_.row<OpKind>(from.kind(), Place(at, "kind"));
    op.operands = reader_.ids<ValueTag>(from.operands(), Place(at, "operands"));
    op.results = reader_.ids<ValueTag>(from.results(), Place(at, "results"));
    op.attrs = read_attrs(reader_, from.attrs(), Place(at, "attrs"));
    op.regions = reader_.ids<RegionTag>(from.regions(), Place(at, "regions"));
    return op;
  }

  Region read(const wire::Region& from, const Place& at) {
    Region r;
    r.index = ValueId(from.index());
    r.ops = reader_.ids<OpTag>(from.ops(), Place(at, "ops"));
    return r;
  }

  Reader& reader_;
  const Place& place_;
};

Step read_step(Reader& reader, const wire::Step& from, const Place& place) {
  Step step;
  step.kind = reader.row<StepKind>(from.kind(), Place(place, "kind"));
  step.operands = reader.list<StepOperand>(from.operands(), Place(place, "operands"), limits::kNodes,
                                           [&](const wire::StepOperand& operand, const Place& at) {
                                             StepOperand to;
                                             to.value = reader.string(operand.value(), Place(at, "value"));
                                             to.domain = reader.string(operand.domain(), Place(at, "domain"));
                                             to.integer = operand.integer();
                                             return to;
                                           });
  step.results = reader.names(from.results(), Place(place, "results"));
  step.attrs = read_attrs(reader, from.attrs(), Place(place, "attrs"));
  return step;
}

std::vector<Step> read_steps(Reader& reader, const flatbuffers::Vector<flatbuffers::Offset<wire::Step>>* from,
                             const Place& place) {
  return reader.list<Step>(from, place, limits::kSteps,
                           [&](const wire::Step& step, const Place& at) { return read_step(reader, step, at); });
}

std::vector<Crossing> read_crossings(Reader& reader,
                                     const flatbuffers::Vector<flatbuffers::Offset<wire::Crossing>>* from,
                                     const Place& place) {
  return reader.list<Crossing>(from, place, limits::kNodes, [&](const wire::Crossing& crossing, const Place& at) {
    Crossing to;
    to.value = reader.string(crossing.value(), Place(at, "value"));
    to.allocation_order = reader.integers(crossing.allocation_order(), Place(at, "allocation_order"), limits::kAxes);
    to.contiguity = reader.rows<Contiguity>(crossing.contiguity(), Place(at, "contiguity"));
    to.alias = reader.string(crossing.alias(), Place(at, "alias"));
    return to;
  });
}

Segment read_segment(Reader& reader, const wire::Segment& from, const Place& place) {
  Segment segment;
  segment.name = reader.string(from.name(), Place(place, "name"));
  segment.executor = reader.row<SegmentExecutor>(from.executor(), Place(place, "executor"));
  segment.ops = reader.names(from.ops(), Place(place, "ops"));
  segment.inputs = read_crossings(reader, from.inputs(), Place(place, "inputs"));
  segment.outputs = read_crossings(reader, from.outputs(), Place(place, "outputs"));
  segment.steps = read_steps(reader, from.steps(), Place(place, "steps"));
  return segment;
}

}  // namespace

ConstantBits read_constant(const wire::Constant& from) { return {from.low(), from.high()}; }

Attrs read_attrs(Reader& reader, const flatbuffers::Vector<flatbuffers::Offset<wire::Attr>>* from, const Place& place) {
  Attrs attrs;
  if (!from) return attrs;
  Reader::at_most(from->size(), attr_rows().size(), place);
  // The list grows by doubling.
  reader.take(2 * size_t{from->size()}, sizeof(Attr), place);
  for (uint32_t i = 0; i < from->size(); ++i) {
    const Place at(place, i);
    const AttrKey key = reader.row<AttrKey>(from->Get(i)->key(), Place(at, "key"));
    if (!attrs.empty() && key <= attrs.list().back().key)
      invalid_field(Place(at, "key"), "keys have to ascend; sort them and drop the one that is there twice");
    attrs.set(key, read_attr_value(reader, key, *from->Get(i), at));
  }
  return attrs;
}

StepList read_step_list(Reader& reader, const wire::StepList& from, const Place& place) {
  StepList list;
  list.name = reader.string(from.name(), Place(place, "name"));
  list.graph = reader.string(from.graph(), Place(place, "graph"));
  list.steps = read_steps(reader, from.steps(), Place(place, "steps"));
  return list;
}

InputSpec read_input_spec(Reader& reader, const wire::InputSpec& from, const Place& place) {
  InputSpec spec;
  spec.name = reader.string(from.name(), Place(place, "name"));
  spec.dtype = reader.row<Dtype>(from.dtype(), Place(place, "dtype"));
  spec.is_scalar = Reader::present(from.is_scalar(), Place(place, "is_scalar"));
  spec.shape = reader.integers(from.shape(), Place(place, "shape"), limits::kAxes);
  spec.strides = reader.integers(from.strides(), Place(place, "strides"), limits::kAxes);
  if (reader.defects.has(Defect::kDecodeStrides)) spec.strides.clear();
  spec.offset = from.offset();
  spec.generator = reader.row<InputGenerator>(from.generator(), Place(place, "generator"));
  spec.seed = from.seed();
  spec.low = std::bit_cast<double>(from.low());
  spec.high = std::bit_cast<double>(from.high());
  if (from.value()) spec.value = read_constant(*from.value());
  check_layout(spec.shape, spec.strides, place);
  return spec;
}

Module read_module(Reader& reader, const wire::Module& from, const Place& place) {
  Module m;
  m.graphs = reader.list<Graph>(from.graphs(), Place(place, "graphs"), limits::kGraphs,
                                [&](const wire::Graph& graph, const Place& at) {
                                  Graph g = GraphReader(reader, at).read(graph);
                                  check_structure(g, at, reader.defects);
                                  return g;
                                });
  m.step_lists = reader.list<StepList>(
      from.step_lists(), Place(place, "step_lists"), limits::kGraphs,
      [&](const wire::StepList& list, const Place& at) { return read_step_list(reader, list, at); });
  m.segmentations = reader.list<Segmentation>(
      from.segmentations(), Place(place, "segmentations"), limits::kGraphs,
      [&](const wire::Segmentation& segmentation, const Place& at) {
        Segmentation to;
        to.graph = reader.string(segmentation.graph(), Place(at, "graph"));
        to.segments = reader.list<Segment>(
            segmentation.segments(), Place(at, "segments"), limits::kNodes,
            [&](const wire::Segment& segment, const Place& there) { return read_segment(reader, segment, there); });
        return to;
      });
  m.input_specs = reader.list<InputSpecs>(
      from.input_specs(), Place(place, "input_specs"), limits::kGraphs,
      [&](const wire::InputSpecs& specs, const Place& at) {
        InputSpecs to;
        to.graph = reader.string(specs.graph(), Place(at, "graph"));
        to.where = reader.string(specs.where(), Place(at, "where"));
        to.specs = reader.list<InputSpec>(
            specs.specs(), Place(at, "specs"), limits::kNodes,
            [&](const wire::InputSpec& spec, const Place& there) { return read_input_spec(reader, spec, there); });
        return to;
      });
  return m;
}

}  // namespace fusebox
