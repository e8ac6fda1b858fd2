#include "ir/canonical/canonical.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/build/composite.h"
#include "ir/scalar/scalar.h"
#include "ir/verify/verify.h"

namespace fusebox {
namespace {

// y = exp(x) * b, r = sum(y), built in either order.
Graph program(bool other_order, bool renamed = false) {
  Graph g = fusion(renamed ? "h" : "f");
  const auto name = [&](const char* n) { return renamed ? std::string("my_") + n : std::string(n); };
  ValueId m, n;
  if (other_order) {
    n = size(g, name("n"));
    m = size(g, name("m"));
  } else {
    const auto both = sizes(g, {name("m"), name("n")});
    m = both[0], n = both[1];
  }
  const ValueId x = input(g, name("x"), Dtype::kFloat, {m, n});
  const ValueId b = input(g, name("b"), Dtype::kFloat, {n});
  ValueId e, w;
  if (other_order) {
    unary(g, OpKind::kCos, x);  // dead
    w = broadcast(g, b, {true, false});
    e = unary(g, OpKind::kExp, x, name("e"));
  } else {
    e = unary(g, OpKind::kExp, x, name("e"));
    w = broadcast(g, b, {true, false});
  }
  const ValueId y = mul(g, e, w, name("y"));
  output(g, y);
  output(g, sum(g, y, {1}, {.name = name("r")}));
  return g;
}

TEST(Digest, Text) {
  EXPECT_EQ(text(digest_bytes("")), "99aa06d3014798d86001c324468d497f");
  const Digest d = digest(std::string_view("kernel"));
  EXPECT_EQ(parse_digest(text(d)), d);
  EXPECT_NE(d, digest(std::string_view("kernel ")));
  EXPECT_FALSE(parse_digest("99aa06d3014798d86001c324468d497"));
  EXPECT_FALSE(parse_digest("99aa06d3014798d86001c324468d497G"));
}

TEST(Canonical, OrderNamesAndDeadNodesDoNotCount) {
  const Graph a = program(false), b = program(true), c = program(true, true);
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(same_program(a, b));
  EXPECT_TRUE(same_program(a, c));
  EXPECT_EQ(digest(a), digest(c));
  EXPECT_TRUE(canonicalize(a) == canonicalize(c));
  EXPECT_TRUE(same_program(a, compact(a)));
}

TEST(Canonical, IsAFixedPointThatVerifies) {
  const Graph a = canonicalize(program(true, true));
  verify(a);
  EXPECT_TRUE(canonicalize(a) == a);
  EXPECT_EQ(a.name, "");
  EXPECT_EQ(a[inputs(a)[0]].name, "v2");  // after its two sizes
}

TEST(Canonical, NamesLeadBack) {
  const Graph g = program(true, true);
  const auto names = canonical_names(g);
  const Graph c = canonicalize(g);
  const auto y = find_value(c, names[find_value(g, "my_y")->index]);
  ASSERT_TRUE(y);
  EXPECT_EQ(c[c[*y].def].kind, OpKind::kMul);
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    const bool dead = v.def && g[v.def].kind == OpKind::kCos;
    EXPECT_EQ(names[i].empty(), v.constant.has_value() || dead) << v.name;
  }
}

TEST(Canonical, SizesCountByTheirUse) {
  // The order of size ops is not part of a program; the size of each axis is.
  const auto square = [](bool swapped) {
    Graph g = fusion("f");
    const ValueId a = size(g, "a"), b = size(g, "b");
    const ValueId x = input(g, "x", Dtype::kFloat, {swapped ? b : a, swapped ? a : b});
    output(g, unary(g, OpKind::kExp, x));
    return g;
  };
  EXPECT_TRUE(same_program(square(false), square(true)));
  Graph g = square(false);
  const Tensor& t = g.tensor_of(inputs(g)[0]);
  g[t.logical[1]].extent = g[t.logical[0]].extent;
  EXPECT_FALSE(same_program(g, square(false)));
}

TEST(Canonical, TheOrderOfTheSignatureCounts) {
  const auto two = [](bool swapped) {
    Graph g = fusion("f");
    const ValueId n = size(g, "n");
    const ValueId x = input(g, "x", Dtype::kFloat, {n}), y = input(g, "y", Dtype::kFloat, {n});
    output(g, sub(g, swapped ? y : x, swapped ? x : y));
    return g;
  };
  EXPECT_FALSE(same_program(two(false), two(true)));
}

TEST(Canonical, UnusedInputsCount) {
  Graph a = program(false), b = program(false);
  input(b, "unused", Dtype::kFloat, {});
  EXPECT_FALSE(same_program(a, b));
}

TEST(Canonical, EffectsKeepTheirOrder) {
  const auto kernel = [](bool swapped) {
    Graph g;
    g.level = Level::kKernel;
    const ValueId x = input_buffer(g, "x", Dtype::kFloat), n = input_scalar(g, "n", Dtype::kIndex);
    const ValueId zero = constant_index(g, 0), one = constant_index(g, 1);
    const OpId loop = add_op(g, Graph::body(), OpKind::kFor, {zero, n, one});
    const RegionId r = g[loop].regions[0];
    const ValueId i = g[r].index;
    const ValueId next = scalar::add(g, r, i, one);
    const ValueId outside = scalar::mul(g, Graph::body(), n, n);  // after the loop, so it is dead there
    (void)outside;
    const ValueId v = g[add_op(g, r, OpKind::kLoad, {x, i})].results[0];
    add_op(g, r, OpKind::kStore, {x, swapped ? i : next, v});
    add_op(g, r, OpKind::kStore, {x, swapped ? next : i, v});
    return g;
  };
  verify(kernel(false));
  verify(canonicalize(kernel(false)));
  EXPECT_TRUE(canonicalize(canonicalize(kernel(false))) == canonicalize(kernel(false)));
  EXPECT_FALSE(same_program(kernel(false), kernel(true)));
  EXPECT_EQ(canonicalize(kernel(false)).ops.size(), kernel(false).ops.size() - 1);
}

TEST(Canonical, EqualConstantsAndWrittenDefaultsAreOne) {
  Graph a = program(false), b = program(false);
  // A repeated constant, and a layout that equals the default.
  Value copy;
  copy.constant = ConstantBits{1, 0};
  b.values.push_back(copy);
  for (IterDomain& d : b.domains)
    if (d.iter_type == IterType::kBroadcast) d.extent = ValueId(b.values.size() - 1);
  Tensor& t = b.tensor_of(inputs(b)[0]);
  t.contiguity = {Contiguity::kTrue, Contiguity::kTrue};
  t.allocation = t.logical;
  t.root = t.logical;
  EXPECT_TRUE(same_program(a, b));
}

// A schedule that uses every member of every node. Changing any member makes another program.
Graph rich() {
  Graph g = program(false);
  g.level = Level::kScheduled;
  const TensorId t = g[*find_value(g, "r")].tensor;
  const auto derive = [&](Transform f, const char* a, const char* b) {
    const TransformId id(g.transforms.size());
    for (const char* n : {a, b}) {
      if (!n) continue;
      IterDomain d;
      d.name = n;
      d.def = id;
      d.iter_type = IterType::kIteration;
      f.outputs.push_back(add_domain(g, t, d));
    }
    g[t].transforms.push_back(id);
    g.transforms.push_back(f);
    return f.outputs;
  };
  Transform split;
  split.inputs = {g[t].logical[0]};
  split.factor = constant_index(g, 128);
  const auto ot = derive(split, "o", "t");
  Transform swizzle;
  swizzle.kind = TransformKind::kSwizzle;
  swizzle.inputs = ot;
  const auto sw = derive(swizzle, "p", "q");
  g[t].loop = {sw[0], sw[1], g[t].logical[1]};
  g[t].inline_at = sw[0];
  return g;
}

TEST(Canonical, EveryFieldCounts) {
  const Graph original = rich();
  verify(original);
  const Digest before = digest(original);
  const auto changed = [&](auto change) {
    Graph g = original;
    change(g, g.tensor_of(*find_value(g, "r")));
    return digest(g) != before;
  };
  const auto y = [](Graph& g) -> Op& { return g[g[*find_value(g, "y")].def]; };
  EXPECT_FALSE(changed([](Graph& g, Tensor&) { g.name = "other"; }));
  EXPECT_FALSE(changed([](Graph& g, Tensor&) { g.values[0].name = "other"; }));
  EXPECT_FALSE(changed([](Graph& g, Tensor& t) { g[t.loop[1]].name = "other"; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g.level = Level::kMath; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g.index_bits = 32; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g[*find_value(g, "y")].dtype = Dtype::kHalf; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g[*find_value(g, "x")].dtype = Dtype::kHalf; }));
  EXPECT_TRUE(changed([&](Graph& g, Tensor&) { y(g).kind = OpKind::kAdd; }));
  EXPECT_TRUE(changed([&](Graph& g, Tensor&) { std::swap(y(g).operands[0], y(g).operands[1]); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g[g[*find_value(g, "r")].def].attrs.set(AttrKey::kAxes, Axes{0}); }));
  EXPECT_TRUE(
      changed([](Graph& g, Tensor&) { g[g[*find_value(g, "r")].def].attrs.set(AttrKey::kDtypeAttr, Dtype::kFloat); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g[g[Graph::body()].ops.back()].operands[1] = *find_value(g, "b"); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) { g[Graph::body()].ops.pop_back(); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.transforms[0]].factor = constant_index(g, 64); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.transforms[0]].inner_split = false; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.transforms[0]].right = constant_index(g, 1); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.transforms[0]].inputs = {t.logical[1]}; }));
  EXPECT_TRUE(
      changed([](Graph& g, Tensor& t) { std::swap(g[t.transforms[1]].inputs[0], g[t.transforms[1]].inputs[1]); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.transforms[1]].swizzle = SwizzleType::kCyclic; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.loop[1]].iter_type = IterType::kReduction; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.loop[1]].parallel = ParallelType::kBlockX; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.logical[0]].extent = constant_index(g, 7); }));
  EXPECT_TRUE(changed([](Graph& g, Tensor& t) { g[t.logical[0]].expanded = constant_index(g, 7); }));
  EXPECT_TRUE(
      changed([](Graph& g, Tensor& t) { g[t.logical[0]].stands_for = g.tensor_of(*find_value(g, "x")).logical[0]; }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { std::swap(t.loop[1], t.loop[2]); }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { t.memory = MemoryType::kShared; }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { t.devices = {0, 1}; }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { t.inline_at = DomainId(); }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { t.circular_depth = 2; }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { t.contiguity = {Contiguity::kFalse}; }));
  EXPECT_TRUE(changed([](Graph& g, Tensor&) {
    Tensor& x = g.tensor_of(*find_value(g, "x"));
    x.allocation = {x.logical[1], x.logical[0]};
  }));
  EXPECT_TRUE(changed([](Graph&, Tensor& t) { t.loop_broadcasts = {t.loop[1]}; }));
}

// Host programs with other names call their kernels by other names. It matters which kernel is launched.
TEST(Canonical, NamesOfLaunchedKernels) {
  const auto launches = [](const std::vector<std::string>& names) {
    Graph g;
    g.level = Level::kHost;
    const ValueId one = constant_index(g, 1);
    for (const std::string& name : names) {
      Op op{OpKind::kLaunch, std::vector<ValueId>(7, one), {}, {}, {}};
      op.attrs.set(AttrKey::kName, name);
      append(g, Graph::body(), op);
    }
    return digest(g);
  };
  EXPECT_EQ(launches({"f_0", "f_1", "f_0"}), launches({"h_0", "h_1", "h_0"}));
  EXPECT_NE(launches({"f_0", "f_1", "f_0"}), launches({"f_0", "f_1", "f_1"}));
}

TEST(Canonical, StepsAndSegmentations) {
  const Graph a = program(false), b = program(true, true);
  const auto steps = [](const char* value) {
    Step split;
    split.operands = {StepOperand::domain_of(value, "i1"), StepOperand::number(128)};
    split.results = {"o", "t"};
    return std::vector<Step>{split};
  };
  EXPECT_EQ(digest(a, steps("y")), digest(b, steps("my_y")));
  EXPECT_NE(digest(steps("y")), digest(steps("my_y")));
  EXPECT_NE(digest(a, steps("y")), digest(a, steps("e")));
  // A step's result may have a name that the canonical form gives to another value.
  const std::string taken = canonical_names(a)[find_value(a, "y")->index];
  const auto in_shared = [&](const std::string& value) {
    Step copy{StepKind::kCacheAfter, {StepOperand::of("y")}, {taken}, {}};
    Step memory{StepKind::kSetMemoryType, {StepOperand::of(value)}, {}, {}};
    return std::vector<Step>{copy, memory};
  };
  EXPECT_NE(digest(a, in_shared("y")), digest(a, in_shared(taken)));
  auto other = steps("y");
  other[0].operands[1].integer = 64;
  EXPECT_NE(digest(steps("y")), digest(other));
  other = steps("y");
  other[0].attrs.set_flag(AttrKey::kOuter);
  EXPECT_NE(digest(steps("y")), digest(other));
  const auto segmentation = [](const std::string& prefix, bool swapped) {
    Segment s, t;
    s.name = swapped ? "second" : "first";
    s.ops = {prefix + "e", prefix + "y"};
    if (swapped) std::swap(s.ops[0], s.ops[1]);
    t.name = "last";
    t.ops = {prefix + "r"};
    t.executor = SegmentExecutor::kAten;
    Segmentation result;
    result.graph = prefix;
    result.segments = {s, t};
    return result;
  };
  EXPECT_EQ(digest(a, segmentation("", false)), digest(b, segmentation("my_", true)));
  Segmentation changed = segmentation("", false);
  changed.segments[1].executor = SegmentExecutor::kKernel;
  EXPECT_NE(digest(a, segmentation("", false)), digest(a, changed));
}

}  // namespace
}  // namespace fusebox
