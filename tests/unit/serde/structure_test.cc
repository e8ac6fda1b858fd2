// Breaks each rule of structure.h in one field of a good module: decode refuses the bytes, encode the value.
#include "serde/structure.h"

#include <functional>
#include <gtest/gtest.h>

#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/limits.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

// Two tensors x and y with one domain each; x is split; y has a loop broadcast for x's domain; exp, and a loop with an
// exp.
Module good() {
  Graph g;
  g.name = "g";
  const ValueId n = add_scalar(g, Dtype::kIndex, "n");
  const ValueId x = add_tensor(g, Dtype::kFloat, "x");
  const ValueId y = add_tensor(g, Dtype::kFloat, "y");
  for (ValueId v : {x, y}) {
    IterDomain d;
    d.extent = n;
    const DomainId id = add_domain(g, g[v].tensor, d);
    g.tensor_of(v).logical = {id};
  }
  Transform split;
  split.inputs = {DomainId(0u)};
  split.factor = n;
  for (int i = 0; i < 2; ++i) {
    IterDomain d;
    d.def = TransformId(0u);
    split.outputs.push_back(add_domain(g, g[x].tensor, d));
  }
  g.tensor_of(x).transforms = {TransformId(0u)};
  g.tensor_of(x).loop = split.outputs;
  g.transforms.push_back(split);
  IterDomain stand_in;
  stand_in.stands_for = DomainId(0u);
  g.tensor_of(y).loop_broadcasts = {add_domain(g, g[y].tensor, stand_in)};
  append(g, Graph::body(), Op{OpKind::kInput, {}, {x}, {}, {}});
  const ValueId s = add_scalar(g, Dtype::kFloat, "s"), t = add_scalar(g, Dtype::kFloat, "t");
  append(g, Graph::body(), Op{OpKind::kExp, {x}, {y}, {}, {}});
  const OpId loop = append(g, Graph::body(), Op{OpKind::kFor, {n, n, n}, {}, {}, {}});
  const RegionId region = add_region(g);
  g[loop].regions = {region};
  append(g, region, Op{OpKind::kExp, {n}, {s}, {}, {}});
  append(g, region, Op{OpKind::kExp, {s}, {t}, {}, {}});
  Module m;
  m.graphs.push_back(g);
  InputSpecs specs;
  InputSpec& spec = specs.specs.emplace_back();
  spec.shape = {2, 3};
  spec.strides = {3, 1};
  m.input_specs.push_back(specs);
  return m;
}

Module module_of(Graph g) {
  Module m;
  m.graphs.push_back(std::move(g));
  return m;
}

struct Case {
  const char* place;
  std::function<void(Graph&)> damage;
  ErrorCode code = ErrorCode::kInvalidField;
};

template <class IdType>
IdType far() {
  return IdType(1000u);
}

const Case kCases[] = {
    {"values[0].def", [](Graph& g) { g.values[0].def = far<OpId>(); }},
    {"values[0].index_of", [](Graph& g) { g.values[0].index_of = far<RegionId>(); }},
    {"values[1].tensor", [](Graph& g) { g.values[1].tensor = far<TensorId>(); }},
    {"values[1].tensor", [](Graph& g) { g.values[1].tensor = TensorId(); }},
    {"values[0].tensor", [](Graph& g) { g.values[0].tensor = TensorId(0u); }},
    {"values[2].tensor", [](Graph& g) { g.values[2].tensor = TensorId(0u); }},
    {"tensors[0].value", [](Graph& g) { g.tensors[0].value = far<ValueId>(); }},
    {"tensors[0].value", [](Graph& g) { g.tensors[0].value = ValueId(); }},
    {"tensors[1].value",
     [](Graph& g) {
       g.tensors.push_back(g.tensors[0]);
       std::swap(g.tensors[1], g.tensors[2]);
       g.values[2].tensor = TensorId(2u);
       for (auto& d : g.domains)
         if (d.tensor == TensorId(1u)) d.tensor = TensorId(2u);
     }},
    {"tensors[0].root[0]", [](Graph& g) { g.tensors[0].root = {far<DomainId>()}; }},
    {"tensors[0].root[0]", [](Graph& g) { g.tensors[0].root = {DomainId(1u)}; }},
    {"tensors[0].logical[1]", [](Graph& g) { g.tensors[0].logical.push_back(DomainId()); }},
    {"tensors[0].logical[0]", [](Graph& g) { g.tensors[0].logical = {DomainId(1u)}; }},
    {"tensors[0].allocation[0]", [](Graph& g) { g.tensors[0].allocation = {far<DomainId>()}; }},
    {"tensors[0].allocation[0]", [](Graph& g) { g.tensors[0].allocation = {DomainId(1u)}; }},
    {"tensors[0].loop[2]", [](Graph& g) { g.tensors[0].loop.push_back(far<DomainId>()); }},
    {"tensors[0].loop[2]", [](Graph& g) { g.tensors[0].loop.push_back(DomainId(1u)); }},
    {"tensors[0].loop_broadcasts[0]", [](Graph& g) { g.tensors[0].loop_broadcasts = {far<DomainId>()}; }},
    {"tensors[0].loop_broadcasts[0]", [](Graph& g) { g.tensors[0].loop_broadcasts = {DomainId(1u)}; }},
    {"tensors[0].transforms[1]", [](Graph& g) { g.tensors[0].transforms.push_back(far<TransformId>()); }},
    {"tensors[1].transforms[0][0]", [](Graph& g) { g.tensors[1].transforms = {TransformId(0u)}; }},
    {"tensors[0].inline_at", [](Graph& g) { g.tensors[0].inline_at = far<DomainId>(); }},
    {"tensors[0].inline_at[0]", [](Graph& g) { g.tensors[0].inline_at = DomainId(1u); }},
    {"domains[0].tensor", [](Graph& g) { g.domains[0].tensor = far<TensorId>(); }},
    {"domains[0].extent", [](Graph& g) { g.domains[0].extent = far<ValueId>(); }},
    {"domains[0].extent", [](Graph& g) { g.domains[0].extent = ValueId(1u); }},
    {"domains[0].expanded", [](Graph& g) { g.domains[0].expanded = far<ValueId>(); }},
    {"domains[0].def", [](Graph& g) { g.domains[0].def = far<TransformId>(); }},
    {"domains[0].like", [](Graph& g) { g.domains[0].stands_for = far<DomainId>(); }},
    {"domains[0]", [](Graph& g) { g.domains[0].stands_for = DomainId(4u); }},
    {"domains[0]", [](Graph& g) { g.domains[0].def = TransformId(0u); }},
    {"transforms[0].inputs", [](Graph& g) { g.transforms[0].inputs.clear(); }},
    {"transforms[0].outputs", [](Graph& g) { g.transforms[0].kind = TransformKind::kResize; }},
    {"transforms[0].inputs[0]", [](Graph& g) { g.transforms[0].inputs[0] = far<DomainId>(); }},
    {"transforms[0].outputs[1]", [](Graph& g) { g.transforms[0].outputs[1] = far<DomainId>(); }},
    {"transforms[0].outputs[1]", [](Graph& g) { g.domains[3].def = TransformId(); }},
    {"transforms[0].factor", [](Graph& g) { g.transforms[0].factor = far<ValueId>(); }},
    {"transforms[0].factor", [](Graph& g) { g.transforms[0].factor = ValueId(1u); }},
    {"transforms[0].right", [](Graph& g) { g.transforms[0].right = far<ValueId>(); }},
    {"transforms[1].outputs[1]",
     [](Graph& g) {
       Transform t = g.transforms[0];
       t.inputs[0] = DomainId(2u);
       t.outputs = {DomainId(5u), DomainId(4u)};
       IterDomain d = g.domains[2];
       d.def = TransformId(1u);
       g.domains.push_back(d);
       g.transforms.push_back(t);
     }},
    {"ops[1].operands[0]", [](Graph& g) { g.ops[1].operands[0] = far<ValueId>(); }},
    {"ops[1].results[0]", [](Graph& g) { g.ops[1].results[0] = far<ValueId>(); }},
    {"ops[1].results[0]", [](Graph& g) { g.ops[1].results[0] = ValueId(); }},
    {"ops[2].regions[0]", [](Graph& g) { g.ops[2].regions[0] = far<RegionId>(); }},
    {"ops[2].regions[0]", [](Graph& g) { g.ops[2].regions[0] = Graph::body(); }},
    {"ops[2].regions[1]", [](Graph& g) { g.ops[2].regions.push_back(RegionId(1u)); }},
    {"regions",
     [](Graph& g) {
       g.ops.clear(), g.regions.clear(), g.values[1].def = g.values[2].def = g.values[3].def = g.values[4].def = OpId();
     }},
    {"regions[1].index", [](Graph& g) { g.regions[1].index = far<ValueId>(); }},
    {"regions[0].ops[0]", [](Graph& g) { g.regions[0].ops[0] = far<OpId>(); }},
    {"regions[0].ops[0]", [](Graph& g) { g.regions[0].ops[0] = OpId(); }},
    {"regions[1].ops[0]", [](Graph& g) { g.regions[1].ops[0] = OpId(0u); }},
    {"regions[1]", [](Graph& g) { std::erase(g.regions[0].ops, OpId(2u)), g.regions[1].ops.push_back(OpId(2u)); }},
    {"ops[3]", [](Graph& g) { g.ops[3].operands[0] = ValueId(4u); }},
    {"index_bits", [](Graph& g) { g.index_bits = 16; }},
};

TEST(Structure, TheGoodModulePasses) {
  const Module m = good();
  EXPECT_TRUE(decode_module_structure(bytes_of(encode(m))) == m);
}

TEST(Structure, EveryDamagedFieldIsRefusedByItsPlace) {
  for (size_t i = 0; i < std::size(kCases); ++i) {
    SCOPED_TRACE(i);
    Module m = good();
    kCases[i].damage(m.graphs[0]);
    const std::string place = "module.graphs[0]." + std::string(kCases[i].place);
    expect_error(kCases[i].code, place, [&] { decode_module_structure(bytes_of(encode_unchecked(m))); });
    expect_error(kCases[i].code, place, [&] { encode(m); });
  }
}

TEST(Structure, RegionsNestNoDeeperThanTheLimit) {
  Graph g;
  RegionId region = Graph::body();
  for (size_t depth = 0; depth < limits::kRegionDepth; ++depth) {
    const RegionId inner = add_region(g);
    const OpId op = append(g, region, Op{});
    g[op].regions = {inner};
    region = inner;
  }
  const Module deepest = module_of(g);
  EXPECT_TRUE(decode_module_structure(bytes_of(encode(deepest))) == deepest);
  const RegionId inner = add_region(g);
  g[append(g, region, Op{})].regions = {inner};
  expect_error(ErrorCode::kTooLarge, "module.graphs[0].regions[129]", [&] { encode(module_of(g)); });
}

TEST(Structure, DomainsDeriveNoDeeperThanTheLimit) {
  Module m = good();
  Graph& g = m.graphs[0];
  const auto deepen = [&] {
    Transform t;
    t.kind = TransformKind::kResize;
    t.inputs = {DomainId(g.domains.size() - 1)};
    IterDomain d;
    d.def = TransformId(g.transforms.size());
    d.tensor = g.domains.back().tensor;
    t.outputs = {DomainId(g.domains.size())};
    g.domains.push_back(d);
    g.transforms.push_back(t);
  };
  // The last domain of `good` already stands for another one, which is one level.
  for (size_t depth = 1; depth < limits::kDomainDepth; ++depth) deepen();
  // A walk from the loop domain reaches the whole chain.
  g.tensors[1].loop = {DomainId(g.domains.size() - 1)};
  EXPECT_TRUE(decode_module_structure(bytes_of(encode(m))) == m);
  deepen();
  expect_error(ErrorCode::kTooLarge, "module.graphs[0].domains[0]", [&] { encode(m); });
}

TEST(Structure, FewDomainsStandForOthers) {
  Module m = good();
  Graph& g = m.graphs[0];
  while (static_cast<size_t>(std::count_if(g.domains.begin(), g.domains.end(), [](const auto& d) {
           return bool(d.stands_for);
         })) <= limits::kLoopBroadcasts) {
    IterDomain d = g.domains[4];
    g.domains.push_back(d);
  }
  expect_error(ErrorCode::kTooLarge, "module.graphs[0].domains", [&] { encode(m); });
}

// Recursive code can walk everything that the limits allow: each tensor leads to the next through its loop broadcast.
TEST(Structure, TheLongestChainOfTensorsFitsTheStack) {
  Graph g;
  for (size_t i = 0; i <= limits::kLoopBroadcasts; ++i) {
    const ValueId v = add_tensor(g, Dtype::kFloat, "t" + std::to_string(i));
    const DomainId d = add_domain(g, g[v].tensor, IterDomain{});
    g.tensor_of(v).logical = {d};
    if (i == 0) continue;
    IterDomain stand_in;
    stand_in.stands_for = g.tensors[i - 1].logical[0];
    g.tensor_of(v).loop_broadcasts = {add_domain(g, g[v].tensor, stand_in)};
  }
  append(g, Graph::body(), Op{OpKind::kExp, {}, {g.tensors.back().value}, {}, {}});
  const Module m = module_of(g);
  EXPECT_TRUE(decode_module_structure(bytes_of(encode(m))) == m);
}

TEST(Structure, LayoutsOfInputsAreChecked) {
  const auto refused = [](const char* field, std::function<void(InputSpec&)> damage) {
    Module m = good();
    damage(m.input_specs[0].specs[0]);
    const std::string place = "module.input_specs[0].specs[0]." + std::string(field);
    expect_error(ErrorCode::kInvalidField, place, [&] { decode_module_structure(bytes_of(encode_unchecked(m))); });
    expect_error(ErrorCode::kInvalidField, place, [&] { encode(m); });
  };
  refused("shape[1]", [](InputSpec& s) { s.shape[1] = -1; });
  refused("shape[1]", [](InputSpec& s) { s.shape = {int64_t{1} << 62, 4}; });
  refused("strides", [](InputSpec& s) { s.strides.pop_back(); });
}

}  // namespace
}  // namespace fusebox
