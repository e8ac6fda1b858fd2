#include "ir/verify/verify.h"

#include <gtest/gtest.h>
#include <random>

#include "ir/build/builder.h"
#include "ir/build/composite.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain_edit.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/scalar/scalar.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

std::string found(const Graph& g) {
  const auto e = find_error(g);
  return e ? code_text(e->code) + " " + e->place : "fine";
}

Graph small_fusion() {
  Graph g = fusion("silu_mul_bias");
  const ValueId m = size(g, "m"), n = size(g, "n");
  const ValueId x = input(g, "x", Dtype::kBfloat16, {m, n}), b = input(g, "b", Dtype::kFloat, {n});
  const ValueId s = unary(g, OpKind::kSilu, x, "s");
  output(g, sum(g, add(g, s, b, "y"), {1}, {.name = "r"}));
  return g;
}

// Splits %r.i1 by 128 -> o, t; the loops are i0, o, t.
Graph scheduled_fusion() {
  Graph g = small_fusion();
  g.level = Level::kScheduled;
  const TensorId t = g[*find_value(g, "r")].tensor;
  Transform split;
  split.inputs = {g[t].logical[1]};
  split.factor = constant_index(g, 128);
  IterDomain reduced;
  reduced.iter_type = IterType::kReduction;
  reduced.name = "o";
  const DomainId o = add_domain(g, t, reduced);
  reduced.name = "t";
  const DomainId i = add_domain(g, t, reduced);
  split.outputs = {o, i};
  g[o].def = g[i].def = TransformId(g.transforms.size());
  g[t].transforms = {TransformId(g.transforms.size())};
  g.transforms.push_back(split);
  g[t].loop = {g[t].logical[0], o, i};
  return g;
}

OpId def_of(const Graph& g, std::string_view name) { return g[*find_value(g, name)].def; }

// One op of every family.
Graph many_ops() {
  Graph g = fusion("many");
  const ValueId m = size(g, "m"), n = size(g, "n"), k = size(g, "k");
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n}), row = input(g, "row", Dtype::kFloat, {1, n});
  const ValueId index = input(g, "index", Dtype::kInt64, {k}), square = input(g, "square", Dtype::kInt32, {m, n});
  output(g, softmax(g, x, -1));
  output(g, layer_norm(g, x, 1));
  output(g, reshape(g, x, {-1}));
  output(g, reshape(g, x, {n, m}));
  output(g, reshape(g, row, {n}));
  output(g, reshape(g, x, {k, -1}));
  output(g, reshape(g, sum(g, x, {}), {1, 1}));
  output(g, expand(g, x, {k, n}));
  output(g, reshape(g, expand(g, row, {k, n}), {-1}));
  output(g, broadcast_in_dim(g, row, {k, m, n}, {1, 2}));
  output(g, slice(g, x, {1, 0}, {m, k}));
  output(g, slice(g, row, {0, 0}, {0, n}));
  output(g, pad(g, row, {1, 1, 0, 2}));
  output(g, cat(g, {x, x, row}, 0));
  output(g, select(g, x, k, 1));
  output(g, index_select(g, x, index, 1));
  output(g, gather(g, x, square, 0));
  output(g, take_along_axis(g, row, square, 0));
  output(g, scatter(g, x, square, x, 1));
  output(g, triu(g, x, 1));
  output(g, stride_order(g, permute(g, x, {1, 0}), {0, 1}));
  output(g, squeeze(g, row, {0}));
  output(g, full(g, {m, 1}, constant_of(g, Dtype::kDouble, 0.5), Dtype::kHalf));
  output(g, iota(g, n));
  output(g, embedding(g, square, x));
  output(g, var(g, x, {}, {.keepdim = true}));
  output(g, unary(g, OpKind::kExp, x), x);
  return g;
}

// for i in n: t[i % 64] = x[i], with a buffer, a reduction and a vector copy.
Graph kernel_program() {
  Graph g;
  g.name = "k";
  g.level = Level::kKernel;
  const ValueId x = input_buffer(g, "x", Dtype::kFloat), n = input_scalar(g, "n", Dtype::kIndex);
  const ValueId zero = constant_index(g, 0), one = constant_index(g, 1), four = constant_index(g, 4);
  Attrs shared;
  shared.set_enum(AttrKey::kMemory, MemoryType::kShared);
  const ValueId t =
      g[add_op(g, Graph::body(), OpKind::kAllocate, {constant_index(g, 64), zero}, shared, {"t"}, Dtype::kFloat)]
          .results[0];
  Attrs block;
  block.set_enum(AttrKey::kParallel, ParallelType::kBlockX);
  const ValueId thread = g[add_op(g, Graph::body(), OpKind::kThreadIndex, {}, block)].results[0];
  const OpId loop = add_op(g, Graph::body(), OpKind::kFor, {zero, n, one});
  const RegionId r = g[loop].regions[0];
  const ValueId inside = scalar::lt(g, r, g[r].index, n);
  const OpId guard = add_op(g, r, OpKind::kIf, {inside});
  const RegionId then = g[guard].regions[0];
  const ValueId v = g[add_op(g, then, OpKind::kLoad, {x, g[r].index, inside})].results[0];
  add_op(g, then, OpKind::kStore, {t, thread, v});
  Attrs width;
  width.set(AttrKey::kWidth, int64_t{4});
  add_op(g, then, OpKind::kCopy, {t, zero, x, four}, width);
  add_op(g, Graph::body(), OpKind::kBarrier, {});
  const ValueId w = g[add_op(g, Graph::body(), OpKind::kLoad, {t, zero})].results[0];
  Attrs sum;
  sum.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
  sum.set(AttrKey::kThreads, std::vector<int64_t>{static_cast<int64_t>(ParallelType::kBlockX)});
  add_op(g, Graph::body(), OpKind::kBlockReduce, {w, constant(g, Dtype::kFloat, {}), t, ValueId(), ValueId()}, sum);
  return g;
}

TEST(Verify, AcceptsWhatBuildersMake) {
  EXPECT_EQ(found(small_fusion()), "fine");
  EXPECT_EQ(found(scheduled_fusion()), "fine");
  EXPECT_EQ(found(compact(scheduled_fusion())), "fine");
  EXPECT_EQ(found(kernel_program()), "fine");
  const Graph g = many_ops();
  EXPECT_EQ(found(g), "fine") << find_error(g)->what();
}

TEST(Verify, IdsOutOfRange) {
  const auto broken = [](auto change) {
    Graph g = scheduled_fusion();
    change(g);
    return found(g);
  };
  EXPECT_EQ(broken([](Graph& g) { g.ops[0].results = {ValueId(999u)}; }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "s")].operands = {ValueId(999u)}; }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "s")].kind = static_cast<OpKind>(5000); }), "E0201 ");
  EXPECT_EQ(broken([](Graph& g) { g.values[0].dtype = static_cast<Dtype>(99); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.values[0].tensor = TensorId(0u); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.domains[0].tensor = TensorId(); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.domains[0].parallel = static_cast<ParallelType>(77); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.transforms[0].inputs = {DomainId(999u)}; }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.regions[0].ops.push_back(OpId(999u)); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.regions.clear(); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.tensors[1].inline_at = DomainId(999u); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g.index_bits = 48; }), "E0210 ");
  // Regions that the body does not reach may refer to its values.
  const auto beside_the_body = [](auto change) {
    Graph g = kernel_program();
    g.regions.emplace_back();
    change(g);
    return found(g);
  };
  EXPECT_EQ(beside_the_body([](Graph&) {}), "fine");
  EXPECT_EQ(beside_the_body([](Graph& g) { g.regions.back().ops = {g[Graph::body()].ops[0]}; }), "E0210 ");
  EXPECT_EQ(beside_the_body([](Graph& g) {
              Op dead;
              dead.kind = OpKind::kFor;
              dead.regions = {RegionId(1u)};
              g.ops.push_back(dead);
            }),
            "E0210 ");
}

TEST(Verify, OrderAndNames) {
  const auto broken = [](auto change) {
    Graph g = small_fusion();
    change(g);
    return found(g);
  };
  EXPECT_EQ(broken([](Graph& g) { std::swap(g.regions[0].ops[4], g.regions[0].ops[6]); }), "E0209 %s");
  EXPECT_EQ(broken([](Graph& g) { g.regions[0].ops.push_back(g.regions[0].ops[0]); }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g[*find_value(g, "s")].name = "x"; }), "E0103 %x");
  EXPECT_EQ(broken([](Graph& g) { g[*find_value(g, "s")].name = ""; }), "E0210 ");
  EXPECT_EQ(broken([](Graph& g) { g[*find_value(g, "s")].def = OpId(0u); }), "E0210 %s");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "s")].results.clear(); }), "E0209 %s");
  EXPECT_EQ(broken([](Graph& g) { g.regions[0].ops.erase(g.regions[0].ops.begin()); }),
            "E0209 %x");  // an extent that nothing defines
  // A region that contains itself, and one that two ops own.
  Graph kernel;
  kernel.level = Level::kKernel;
  const ValueId zero = constant_index(kernel, 0);
  const OpId a = add_op(kernel, Graph::body(), OpKind::kFor, {zero, zero, constant_index(kernel, 1)});
  EXPECT_EQ(found(kernel), "fine");
  const RegionId inner = kernel[a].regions[0];
  kernel[inner].ops.push_back(a);
  EXPECT_EQ(found(kernel), "E0210 ");
  kernel[inner].ops.clear();
  kernel[a].regions[0] = Graph::body();
  EXPECT_EQ(found(kernel), "E0210 ");
}

TEST(Verify, ScopesEndWithTheirRegion) {
  Graph kernel;
  kernel.level = Level::kKernel;
  const ValueId n = input_scalar(kernel, "n", Dtype::kIndex), zero = constant_index(kernel, 0);
  const OpId loop = add_op(kernel, Graph::body(), OpKind::kFor, {zero, n, constant_index(kernel, 1)});
  const RegionId region = kernel[loop].regions[0];
  const ValueId inside = scalar::add(kernel, region, kernel[region].index, n);
  EXPECT_EQ(found(kernel), "fine");
  scalar::add(kernel, Graph::body(), inside, n);
  EXPECT_EQ(found(kernel), "E0209 %" + kernel[inside].name);
}

TEST(Verify, DomainsOfTensors) {
  const auto broken = [](auto change) {
    Graph g = scheduled_fusion();
    Tensor& t = g.tensor_of(*find_value(g, "r"));
    change(g, t);
    return found(g);
  };
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.loop.pop_back(); }), "E0210 %r.i1");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.loop.push_back(t.loop[0]); }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.loop.push_back(t.logical[1]); }), "E0210 %r.i1");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.loop = {t.loop[0], t.loop[1]}; }), "E0210 %r.i1");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { t.loop[0] = g.tensors[0].logical[0]; }), "E0210 %x.i0");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.loop[1]].name = "t"; }), "E0103 %r.t");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.loop[1]].name = ""; }), "E0210 %r");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.loop[1]].extent = constant_index(g, 3); }), "E0210 %r.o");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.logical[0]].extent = ValueId(); }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.logical[0]].extent = constant_index(g, -1); }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.logical[0]].expanded = constant_index(g, 4); }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.logical[0]].iter_type = IterType::kBroadcast; }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.contiguity = {Contiguity::kTrue, Contiguity::kTrue}; }), "E0210 %r");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.contiguity = {Contiguity::kNone}; }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.allocation = {t.loop[1]}; }), "E0210 %r.i0");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.inline_at = t.logical[1]; }), "E0210 %r");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.devices = {1, 1}; }), "E0210 %r");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.transforms.clear(); }), "E0210 %r.o");
  EXPECT_EQ(broken([](Graph&, Tensor& t) { t.transforms.push_back(t.transforms[0]); }), "E0210 %r.o");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.transforms[0]].factor = ValueId(); }), "E0210 %r");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.transforms[0]].inputs = {t.loop[1]}; }), "E0210 %r.o");  // a cycle
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.transforms[0]].kind = TransformKind::kMerge; }), "E0210 %r");
  EXPECT_EQ(broken([](Graph& g, Tensor&) { g.level = Level::kMath; }), "E0208 %r");
  EXPECT_EQ(broken([](Graph& g, Tensor& t) { g[t.logical[0]].stands_for = g.tensors[0].logical[0]; }), "E0210 %r.i0");
  const auto stands_for = [&](auto choose) {
    return broken([&](Graph& g, Tensor& t) {
      const TensorId id = g[t.value].tensor;
      const DomainId b = add_loop_broadcast(g, id, g.tensors[0].logical[0], "b");
      g[b].stands_for = choose(b, g[b].stands_for);
    });
  };
  EXPECT_EQ(stands_for([](DomainId, DomainId other) { return other; }), "fine");
  EXPECT_EQ(stands_for([](DomainId b, DomainId) { return b; }), "E0210 %r.b");
}

TEST(Verify, LoopsOfSiblings) {
  const auto changed = [](auto change) {
    Graph g = fusion("f");
    const WelfordResult w = welford(g, input(g, "x", Dtype::kFloat, {Scalar(4), Scalar(6)}), {1}, {"a", "b", "c"});
    output(g, w.avg);
    g.level = Level::kScheduled;
    change(g, g.tensor_of(w.var_sum));
    return found(g);
  };
  EXPECT_EQ(changed([](Graph&, Tensor&) {}), "fine");
  EXPECT_EQ(changed([](Graph&, Tensor& t) { t.loop = t.logical; }), "fine");
  EXPECT_EQ(changed([](Graph&, Tensor& t) { t.loop = {t.logical[1], t.logical[0]}; }), "E0210 %b");
  EXPECT_EQ(changed([](Graph& g, Tensor& t) {
              const TensorId id = g[t.value].tensor;
              Transform split;
              split.inputs = {t.logical[0]};
              split.factor = constant_index(g, 2);
              const std::string names[] = {"o", "t"};
              const auto& made = g[add_transform(g, id, split, names)].outputs;
              set_loop(g, id, {made[0], made[1], g[id].logical[1]});
            }),
            "E0210 %b");
}

// The remaining extent may be 1, but its type does not say so.
TEST(Verify, AResizeMakesNoBroadcast) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {Scalar(8)});
  const ValueId y = slice(g, x, {Scalar(7)}, {Scalar(8)}, {}, "y");
  output(g, y);
  EXPECT_FALSE(find_error(g).has_value());
  g[g.tensor_of(y).logical[0]].iter_type = IterType::kBroadcast;
  const auto error = find_error(g);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kInvalidGraph);
  EXPECT_EQ(error->place, "%y.i0");
}

TEST(Verify, TypesAndShapes) {
  const auto broken = [](auto change) {
    Graph g = small_fusion();
    change(g);
    return found(g);
  };
  EXPECT_EQ(broken([](Graph& g) { g[*find_value(g, "y")].dtype = Dtype::kHalf; }), "E0204 %y");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "s")].kind = OpKind::kAdd; }), "E0202 %x");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "s")].kind = OpKind::kBarrier; }), "E0208 %s");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "r")].attrs.set(AttrKey::kAxes, Axes{2}); }), "E0206 %r");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "r")].attrs.set(AttrKey::kAxes, Axes{0}); }), "E0210 %r");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "r")].attrs.set(AttrKey::kAxes, int64_t{0}); }), "E0207 %y");
  EXPECT_EQ(broken([](Graph& g) { g[def_of(g, "r")].attrs.set(AttrKey::kMask, Axes{0}); }), "E0207 %y");
  EXPECT_EQ(broken([](Graph& g) { g.tensor_of(*find_value(g, "y")).logical.pop_back(); }), "E0205 %y");
  EXPECT_EQ(broken([](Graph& g) {
              const Tensor& t = g.tensor_of(*find_value(g, "y"));
              g[t.logical[0]].extent = constant_index(g, 1);
              g[t.logical[0]].iter_type = IterType::kBroadcast;
            }),
            "E0203 %y.i0");
  EXPECT_EQ(broken([](Graph& g) {
              const Tensor& t = g.tensor_of(*find_value(g, "y"));
              g[t.logical[0]].iter_type = IterType::kReduction;
            }),
            "E0210 %y");
  EXPECT_EQ(broken([](Graph& g) { g[g.regions[0].ops.back()].operands[1] = *find_value(g, "x"); }), "E0213 %x");
}

TEST(Verify, ABroadcastOfAReshapeHasExtent1) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {constant_index(g, 128)});
  output(g, reshape(g, x, {constant_index(g, 2), constant_index(g, 64)}, "y"));
  EXPECT_FALSE(find_error(g));
  g[g.tensor_of(*find_value(g, "y")).logical[1]].iter_type = IterType::kBroadcast;
  EXPECT_EQ(found(g), "E0203 %y");
}

// Random damage to valid graphs: the verifier always answers and never crashes, and accepted graphs work for later
// code.
class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  void once(Graph& g) {
    const uint32_t id = pick(30) == 0 ? 0xffffffffu : pick(20) == 0 ? 100000 : pick(40);
    const auto value = [&]() -> Value& { return g.values[pick(g.values.size())]; };
    const auto op = [&]() -> Op& { return g.ops[pick(g.ops.size())]; };
    const auto tensor = [&]() -> Tensor& { return g.tensors[pick(g.tensors.size())]; };
    const auto domain = [&]() -> IterDomain& { return g.domains[pick(g.domains.size())]; };
    switch (pick(24)) {
      case 0:
        value().def = OpId(id);
        break;
      case 1:
        value().kind = static_cast<ValueKind>(pick(9));
        break;
      case 2:
        value().dtype = static_cast<Dtype>(pick(23));
        break;
      case 3:
        value().tensor = TensorId(id);
        break;
      case 4:
        replace(op().operands, id);
        break;
      case 5:
        op().kind = static_cast<OpKind>(pick(170));
        break;
      case 6:
        replace(op().results, id);
        break;
      case 7:
        replace(g.regions[pick(g.regions.size())].ops, id);
        break;
      case 8:
        domain().def = TransformId(id);
        break;
      case 9:
        domain().extent = ValueId(id);
        break;
      case 10:
        domain().tensor = TensorId(id);
        break;
      case 11:
        replace(tensor().logical, id);
        break;
      case 12:
        replace(tensor().loop, id);
        break;
      case 13:
        domain().iter_type = static_cast<IterType>(pick(8));
        break;
      case 14:
        damage_attr(op().attrs);
        break;
      case 15:
        replace(tensor().root, id);
        break;
      case 16:
        replace(tensor().allocation, id);
        break;
      case 17:
        replace(tensor().transforms, id % 8);
        break;
      case 18:
        value().constant = ConstantBits{pick(5), 0};
        break;
      case 19:
        domain().expanded = ValueId(id);
        break;
      case 20:
        replace(op().regions, id % 6);
        break;
      case 21:
        g.level = static_cast<Level>(pick(5));
        break;
      case 22:
        damage_transform(g);
        break;
      case 23:
        domain().name = "i0";
        break;
    }
  }
  uint32_t pick(size_t n) { return n == 0 ? 0 : static_cast<uint32_t>(random_() % n); }

 private:
  template <class Tag>
  void replace(std::vector<Id<Tag>>& list, uint32_t id) {
    const uint32_t how = pick(4);
    if (list.empty() || how == 0)
      list.push_back(Id<Tag>(id));
    else if (how == 1)
      list.erase(list.begin() + pick(list.size()));
    else if (how == 2)
      std::swap(list[pick(list.size())], list[pick(list.size())]);
    else
      list[pick(list.size())] = Id<Tag>(id);
  }
  void damage_attr(Attrs& attrs) {
    const auto key = static_cast<AttrKey>(pick(attr_rows().size() + 1));
    switch (pick(4)) {
      case 0:
        attrs.set(key, int64_t{pick(12)} - 3);
        break;
      case 1:
        attrs.set(key, std::vector<int64_t>{int64_t{pick(5)} - 2, int64_t{pick(5)} - 2});
        break;
      case 2:
        attrs.set(key, static_cast<Dtype>(pick(22)));
        break;
      case 3:
        if (!attrs.empty()) attrs.erase(attrs.list()[0].key);
        break;
    }
  }
  void damage_transform(Graph& g) {
    if (g.transforms.empty()) return;
    Transform& t = g.transforms[pick(g.transforms.size())];
    switch (pick(5)) {
      case 0:
        t.kind = static_cast<TransformKind>(pick(5));
        break;
      case 1:
        replace(t.inputs, pick(40));
        break;
      case 2:
        replace(t.outputs, pick(40));
        break;
      case 3:
        t.factor = ValueId(pick(40));
        break;
      case 4:
        t.right = ValueId(pick(40));
        break;
    }
  }
  std::mt19937 random_;
};

TEST(Verify, AnswersForDamagedGraphs) {
  Damage damage(7);
  const Graph bases[] = {small_fusion(), scheduled_fusion(), many_ops(), kernel_program()};
  int fine = 0, wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    Graph g = bases[round % 4];
    const uint32_t times = 1 + damage.pick(3);
    for (uint32_t k = 0; k < times; ++k) damage.once(g);
    if (const auto e = find_error(g)) {
      ++wrong;
      EXPECT_NE(e->code, ErrorCode::kInternal) << e->what();
      continue;
    }
    ++fine;
    EXPECT_TRUE(compact(g) == compact(compact(g)));
    EXPECT_FALSE(find_error(compact(g)));
    const Graph c = canonicalize(g);
    const auto e = find_error(c);
    EXPECT_FALSE(e) << e->what() << " at " << e->place;
    EXPECT_EQ(digest(c), digest(g));
    try {
      check_sizes(g, {});
      plan_concretize(g, {});
    } catch (const Error& error) {
      EXPECT_NE(error.code, ErrorCode::kInternal) << error.what();
    }
  }
  EXPECT_GT(wrong, 10000);
  EXPECT_GT(fine, 500);
}

TEST(Verify, Modules) {
  Module m;
  m.graphs = {small_fusion()};
  m.step_lists = {{"", "silu_mul_bias", {}}};
  const auto found_in = [&] {
    const auto e = find_error(m);
    return e ? code_text(e->code) + " " + e->place : std::string("fine");
  };
  EXPECT_EQ(found_in(), "fine");
  Step like{StepKind::kParallelizeLike, {StepOperand::of("y")}, {}, {}};
  like.attrs.set(AttrKey::kThreads, std::vector<int64_t>{static_cast<int64_t>(enum_texts<ParallelType>().size()) - 1});
  m.step_lists[0].steps = {like};
  EXPECT_EQ(found_in(), "fine");
  for (const int64_t no_row : {int64_t{-1}, static_cast<int64_t>(enum_texts<ParallelType>().size())}) {
    m.step_lists[0].steps[0].attrs.set(AttrKey::kThreads, std::vector<int64_t>{no_row});
    EXPECT_EQ(found_in(), "E0207 @silu_mul_bias");
  }
  m.step_lists[0].steps.clear();
  m.step_lists[0].graph = "other";
  EXPECT_EQ(found_in(), "E0102 @other");
  m.step_lists.clear();
  InputSpec spec;
  spec.name = "x";
  m.input_specs = {{"silu_mul_bias", "host", {spec}}};
  EXPECT_EQ(found_in(), "fine");
  m.input_specs[0].specs[0].value.high = 1;
  EXPECT_EQ(found_in(), "E0403 %x");
  m.input_specs[0].specs[0].value = {uint64_t{1} << 32, 0};
  EXPECT_EQ(found_in(), "E0403 %x");
  m.input_specs[0].specs[0].value = {0x3f800000, 0};
  EXPECT_EQ(found_in(), "fine");
  m.input_specs[0].specs[0].name = "s";
  EXPECT_EQ(found_in(), "E0102 %s");
  m.input_specs.clear();
  Segment first, second;
  first.name = "a";
  first.ops = {"s", "y"};
  second.name = "b";
  second.ops = {"r"};
  m.segmentations = {{"silu_mul_bias", {first, second}}};
  EXPECT_EQ(found_in(), "fine");
  m.segmentations[0].segments[1].ops = {"nothing"};
  EXPECT_EQ(found_in(), "E0102 %nothing");
  m.segmentations.clear();
  m.graphs.push_back(small_fusion());
  EXPECT_EQ(found_in(), "E0103 @silu_mul_bias");
  // A launch and its kernel.
  Graph kernel;
  kernel.name = "k";
  kernel.level = Level::kKernel;
  input_buffer(kernel, "x", Dtype::kFloat);
  Graph host;
  host.name = "h";
  host.level = Level::kHost;
  const ValueId n = size(host, "n"), x = input(host, "x", Dtype::kFloat, {n}), one = constant_index(host, 1);
  Attrs name;
  name.set(AttrKey::kName, std::string("k"));
  add_op(host, Graph::body(), OpKind::kLaunch, {one, one, one, one, one, one, one, x}, name);
  m.graphs = {kernel, host};
  EXPECT_EQ(found_in(), "fine");
  m.graphs[0].values[0].dtype = Dtype::kHalf;
  EXPECT_EQ(found_in(), "E0204 @k.%x");
  m.graphs.erase(m.graphs.begin());
  EXPECT_EQ(found_in(), "E0102 @k");
}

// A host program reads strides by the axis: one that the tensor does not have is no stride of it.
TEST(Verify, TensorStrideNamesAnAxisOfTheTensor) {
  const auto with_axis = [](int64_t axis) {
    Graph host;
    host.name = "h";
    host.level = Level::kHost;
    const ValueId n = size(host, "n"), x = input(host, "x", Dtype::kFloat, {n, n});
    Attrs attrs;
    attrs.set(AttrKey::kAxis, axis);
    add_op(host, Graph::body(), OpKind::kTensorStride, {x}, attrs);
    verify(host);
  };
  with_axis(0);
  with_axis(1);
  for (const int64_t axis : {int64_t{2}, int64_t{-1}, int64_t{1} << 32})
    testing::expect_error(ErrorCode::kBadAxis, "%x", [&] { with_axis(axis); });
}

}  // namespace
}  // namespace fusebox
