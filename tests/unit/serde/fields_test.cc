// Missing fields, and numbers that have no row in their table.
#include <functional>
#include <gtest/gtest.h>

#include "serde/bundle_generated.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/features.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

// A well-formed module with one of everything that has a number.
Module good() {
  Module m;
  Graph& g = m.graphs.emplace_back();
  const ValueId x = add_tensor(g, Dtype::kFloat, "x");
  g.tensor_of(x).logical = {add_domain(g, g[x].tensor, IterDomain{})};
  g.tensor_of(x).contiguity = {Contiguity::kTrue};
  Transform t;
  t.kind = TransformKind::kResize;
  t.inputs = g.tensor_of(x).logical;
  IterDomain out;
  out.def = TransformId(0u);
  t.outputs = {add_domain(g, g[x].tensor, out)};
  g.transforms.push_back(t);
  Op op{OpKind::kSum, {}, {x}, {}, {}};
  append(g, Graph::body(), op);
  Step step;
  step.kind = StepKind::kParallelize;
  StepList& list = m.step_lists.emplace_back();
  list.steps.push_back(step);
  Segment& segment = m.segmentations.emplace_back().segments.emplace_back();
  segment.inputs.emplace_back().contiguity = {Contiguity::kTrue};
  m.input_specs.emplace_back().specs.emplace_back();
  return m;
}

template <class E>
E outside() {
  return static_cast<E>(200);
}

struct Case {
  const char* place;
  std::function<void(Module&)> damage;
};

Attrs& attrs(Module& m) { return m.graphs[0].ops[0].attrs; }

const Case kOutside[] = {
    {"graphs[0].level", [](Module& m) { m.graphs[0].level = outside<Level>(); }},
    {"graphs[0].values[0].kind", [](Module& m) { m.graphs[0].values[0].kind = outside<ValueKind>(); }},
    {"graphs[0].values[0].dtype", [](Module& m) { m.graphs[0].values[0].dtype = outside<Dtype>(); }},
    {"graphs[0].tensors[0].memory", [](Module& m) { m.graphs[0].tensors[0].memory = outside<MemoryType>(); }},
    {"graphs[0].tensors[0].contiguity[0]",
     [](Module& m) { m.graphs[0].tensors[0].contiguity[0] = outside<Contiguity>(); }},
    {"graphs[0].domains[0].iter_type", [](Module& m) { m.graphs[0].domains[0].iter_type = outside<IterType>(); }},
    {"graphs[0].domains[0].parallel", [](Module& m) { m.graphs[0].domains[0].parallel = outside<ParallelType>(); }},
    {"graphs[0].transforms[0].kind", [](Module& m) { m.graphs[0].transforms[0].kind = outside<TransformKind>(); }},
    {"graphs[0].transforms[0].swizzle", [](Module& m) { m.graphs[0].transforms[0].swizzle = outside<SwizzleType>(); }},
    {"graphs[0].ops[0].kind", [](Module& m) { m.graphs[0].ops[0].kind = static_cast<OpKind>(op_rows().size()); }},
    {"graphs[0].ops[0].attrs[0].integer", [](Module& m) { attrs(m).set(AttrKey::kDtypeAttr, outside<Dtype>()); }},
    {"graphs[0].ops[0].attrs[0].integer", [](Module& m) { attrs(m).set(AttrKey::kReduceOp, int64_t{77}); }},
    {"graphs[0].ops[0].attrs[0].integer", [](Module& m) { attrs(m).set(AttrKey::kReduceOp, int64_t{-1}); }},
    {"graphs[0].ops[0].attrs[0].integer", [](Module& m) { attrs(m).set(AttrKey::kUnroll, int64_t{2}); }},
    {"graphs[0].ops[0].attrs[0].ints[1]",
     [](Module& m) { attrs(m).set(AttrKey::kThreads, std::vector<int64_t>{1, 99}); }},
    {"graphs[0].ops[0].attrs[0].ints[0]",
     [](Module& m) { attrs(m).set(AttrKey::kContiguity, std::vector<int64_t>{-1}); }},
    {"step_lists[0].steps[0].kind", [](Module& m) { m.step_lists[0].steps[0].kind = outside<StepKind>(); }},
    {"segmentations[0].segments[0].executor",
     [](Module& m) { m.segmentations[0].segments[0].executor = outside<SegmentExecutor>(); }},
    {"segmentations[0].segments[0].inputs[0].contiguity[0]",
     [](Module& m) { m.segmentations[0].segments[0].inputs[0].contiguity[0] = outside<Contiguity>(); }},
    {"input_specs[0].specs[0].dtype", [](Module& m) { m.input_specs[0].specs[0].dtype = outside<Dtype>(); }},
    {"input_specs[0].specs[0].generator",
     [](Module& m) { m.input_specs[0].specs[0].generator = outside<InputGenerator>(); }},
};

TEST(Fields, NumbersThatAreNoRow) {
  EXPECT_NO_THROW(decode_module_structure(bytes_of(encode(good()))));
  for (const Case& c : kOutside) {
    Module m = good();
    c.damage(m);
    expect_error(ErrorCode::kInvalidField, "module." + std::string(c.place),
                 [&] { decode_module_structure(bytes_of(encode_unchecked(m))); });
  }
}

TEST(Fields, AnAttributeOfAnotherKindIsNotWritten) {
  for (const AttrRow& row : attr_rows()) {
    Module m = good();
    // A string instead of an integer, a dtype or a list, and the reverse.
    if (row.kind == AttrKind::kString)
      attrs(m).set(row.key, int64_t{1});
    else
      attrs(m).set(row.key, std::string("text"));
    expect_error(ErrorCode::kBadAttribute, "module.graphs[0].ops[0].attrs[0]", [&] { encode(m); });
  }
}

// A module file built table by table, each without any fields.
template <class Make>
std::string file_with(Make make) {
  Writer w;
  const auto header = write_header(w, features_of(Module{}));
  const auto module = make(w.b);
  return w.finish(wire::CreateModuleFile(w.b, header, module), wire::ModuleFileIdentifier());
}
template <class T>
auto list_of(flatbuffers::FlatBufferBuilder& b, flatbuffers::Offset<T> item) {
  return b.CreateVector(std::vector<flatbuffers::Offset<T>>{item});
}
template <class Fill>
std::string graph_with(Fill fill) {
  return file_with([&](flatbuffers::FlatBufferBuilder& b) { return wire::CreateModule(b, list_of(b, fill(b))); });
}
void missing(const std::string& place, const std::string& bytes) {
  expect_error(ErrorCode::kInvalidField, "module." + place, [&] { decode_module_structure(bytes_of(bytes)); });
}

TEST(Fields, MissingOnes) {
  using B = flatbuffers::FlatBufferBuilder;
  missing("graphs[0].level", graph_with([](B& b) { return wire::CreateGraph(b); }));
  missing("graphs[0].index_bits", graph_with([](B& b) { return wire::CreateGraph(b, 0, 0); }));
  missing("graphs[0].regions", graph_with([](B& b) { return wire::CreateGraph(b, 0, 0, 64); }));
  missing("graphs[0].values[0].kind", graph_with([](B& b) {
            const auto values = list_of(b, wire::CreateValue(b));
            return wire::CreateGraph(b, 0, 0, 64, values);
          }));
  missing("graphs[0].values[0].dtype", graph_with([](B& b) {
            const auto values = list_of(b, wire::CreateValue(b, 0));
            return wire::CreateGraph(b, 0, 0, 64, values);
          }));
  missing("graphs[0].tensors[0].value", graph_with([](B& b) {
            const auto tensors = list_of(b, wire::CreateTensor(b));
            return wire::CreateGraph(b, 0, 0, 64, 0, tensors);
          }));
  missing("graphs[0].tensors[0].memory", graph_with([](B& b) {
            const auto tensors = list_of(b, wire::CreateTensor(b, 0));
            return wire::CreateGraph(b, 0, 0, 64, 0, tensors);
          }));
  missing("graphs[0].domains[0].iter_type", graph_with([](B& b) {
            const auto domains = list_of(b, wire::CreateDomain(b));
            return wire::CreateGraph(b, 0, 0, 64, 0, 0, domains);
          }));
  missing("graphs[0].transforms[0].kind", graph_with([](B& b) {
            const auto transforms = list_of(b, wire::CreateTransform(b));
            return wire::CreateGraph(b, 0, 0, 64, 0, 0, 0, transforms);
          }));
  missing("graphs[0].ops[0].kind", graph_with([](B& b) {
            const auto ops = list_of(b, wire::CreateOp(b));
            return wire::CreateGraph(b, 0, 0, 64, 0, 0, 0, 0, ops);
          }));
  missing("graphs[0].ops[0].attrs[0].key", graph_with([](B& b) {
            const auto attrs = list_of(b, wire::CreateAttr(b));
            const auto ops = list_of(b, wire::CreateOp(b, 0, 0, 0, attrs));
            return wire::CreateGraph(b, 0, 0, 64, 0, 0, 0, 0, ops);
          }));
  missing("step_lists[0].steps[0].kind", file_with([](B& b) {
            const auto steps = list_of(b, wire::CreateStep(b));
            const auto lists = list_of(b, wire::CreateStepList(b, 0, 0, steps));
            return wire::CreateModule(b, 0, lists);
          }));
  missing("segmentations[0].segments[0].executor", file_with([](B& b) {
            const auto segments = list_of(b, wire::CreateSegment(b));
            const auto lists = list_of(b, wire::CreateSegmentation(b, 0, segments));
            return wire::CreateModule(b, 0, 0, lists);
          }));
  missing("input_specs[0].specs[0].dtype", file_with([](B& b) {
            const auto specs = list_of(b, wire::CreateInputSpec(b));
            const auto lists = list_of(b, wire::CreateInputSpecs(b, 0, 0, specs));
            return wire::CreateModule(b, 0, 0, 0, lists);
          }));
}

TEST(Fields, KeysOfAttributesAscend) {
  for (const bool twice : {false, true}) {
    const auto bytes = graph_with([&](flatbuffers::FlatBufferBuilder& b) {
      const auto first = wire::CreateAttr(b, 1), second = wire::CreateAttr(b, twice ? 1 : 0);
      const auto attrs = b.CreateVector(std::vector{first, second});
      const auto ops = list_of(b, wire::CreateOp(b, 0, 0, 0, attrs));
      return wire::CreateGraph(b, 0, 0, 64, 0, 0, 0, 0, ops);
    });
    missing("graphs[0].ops[0].attrs[1].key", bytes);
  }
}

TEST(Fields, AMissingTableOrStringDoesNotVerify) {
  Writer w;
  const auto module = wire::CreateModule(w.b);
  wire::ModuleFileBuilder file(w.b);
  file.add_module_(module);
  const auto start = file.start_;
  const flatbuffers::Offset<wire::ModuleFile> root(w.b.EndTable(start));
  const std::string bytes = w.finish(root, wire::ModuleFileIdentifier());
  expect_error(ErrorCode::kDamagedBundle, "module", [&] { decode_module(bytes_of(bytes)); });
}

TEST(Fields, NumbersKeepTheirBits) {
  Module m = good();
  InputSpec& spec = m.input_specs[0].specs[0];
  for (const uint64_t bits : {uint64_t{0}, uint64_t{1} << 63, uint64_t{0x7ff8000000001234}, ~uint64_t{0}}) {
    spec.low = std::bit_cast<double>(bits);
    spec.high = std::bit_cast<double>(bits);
    const Module back = decode_module_structure(bytes_of(encode(m)));
    EXPECT_EQ(std::bit_cast<uint64_t>(back.input_specs[0].specs[0].low), bits);
    EXPECT_EQ(std::bit_cast<uint64_t>(back.input_specs[0].specs[0].high), bits);
  }
}

TEST(Fields, OverLongOnesAreNeitherWrittenNorRead) {
  Module m = good();
  m.graphs[0].name.assign(limits::kNameBytes, 'x');
  EXPECT_TRUE(decode_module_structure(bytes_of(encode(m))) == m);
  m.graphs[0].name += 'x';
  expect_error(ErrorCode::kTooLarge, "module.graphs[0].name", [&] { encode(m); });
  m = good();
  m.input_specs[0].specs[0].shape.assign(limits::kAxes + 1, 1);
  expect_error(ErrorCode::kTooLarge, "module.input_specs[0].specs[0].shape", [&] { encode(m); });
  const std::string name(limits::kNameBytes + 1, 'x');
  const auto bytes = graph_with([&](flatbuffers::FlatBufferBuilder& b) {
    const auto text = b.CreateString(name);
    return wire::CreateGraph(b, text);
  });
  expect_error(ErrorCode::kTooLarge, "module.graphs[0].name", [&] { decode_module(bytes_of(bytes)); });
}

ErrorCode refusal_of(const std::string& bytes) {
  try {
    decode_module(bytes_of(bytes));
  } catch (const Error& error) {
    return error.code;
  }
  return ErrorCode::kInternal;
}

// A thousand tensors share the same 4 KB of bytes: small in the file, large in memory.
TEST(Fields, SharedListsRunOutOfMemoryBudget) {
  const auto bytes = graph_with([&](flatbuffers::FlatBufferBuilder& b) {
    const auto ids = b.CreateVector(std::vector<uint32_t>(1000));
    const auto tensor = wire::CreateTensor(b, 0, ids, ids, ids, ids, 0, ids, ids, 0);
    const auto tensors = b.CreateVector(std::vector(1000, tensor));
    return wire::CreateGraph(b, 0, 0, 64, 0, tensors);
  });
  EXPECT_EQ(refusal_of(bytes), ErrorCode::kTooLarge);
}

// All steps share one list of operands: the Verifier would walk 4 million of them.
TEST(Fields, SharedTablesAreMoreThanTheBytesCanHold) {
  const auto bytes = file_with([&](flatbuffers::FlatBufferBuilder& b) {
    const auto operands = b.CreateVector(std::vector(2000, wire::CreateStepOperand(b)));
    const auto steps = b.CreateVector(std::vector(2000, wire::CreateStep(b, 0, operands)));
    const auto lists = list_of(b, wire::CreateStepList(b, 0, 0, steps));
    return wire::CreateModule(b, 0, lists);
  });
  EXPECT_EQ(refusal_of(bytes), ErrorCode::kDamagedBundle);
}

}  // namespace
}  // namespace fusebox
