#include "ir/infer/concretize.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "tests/unit/ir/shape_text.h"

namespace fusebox {
namespace {

class Concretize : public testing::Test, protected SizedFusion {
 protected:
  Bindings sizes(int64_t a, int64_t b, int64_t c) const {
    Bindings bindings(g.values.size());
    bindings[m.index] = ConstantBits{static_cast<uint64_t>(a), 0};
    bindings[n.index] = ConstantBits{static_cast<uint64_t>(b), 0};
    bindings[k.index] = ConstantBits{static_cast<uint64_t>(c), 0};
    return bindings;
  }
  // The steps as text, in one line.
  static std::string describe(const std::vector<Step>& steps) {
    std::string text;
    for (const Step& s : steps) {
      text += (text.empty() ? "" : "; ") + std::string("%") + s.operands[0].value;
      if (!s.operands[0].domain.empty()) text += "." + s.operands[0].domain;
      if (s.attrs.has(AttrKey::kIterType))
        text += " " + std::string(fusebox::text(s.attrs.enumerator<IterType>(AttrKey::kIterType)));
      if (s.attrs.integer(AttrKey::kWidth) == 1) text += " of one";
      for (int64_t i : s.attrs.ints(AttrKey::kOrder)) text += " " + std::to_string(i);
    }
    return text;
  }
  static void carry_out(Graph& g, const std::vector<Step>& steps) {
    for (const Step& s : steps) {
      const TensorId t = g[*find_value(g, s.operands[0].value)].tensor;
      if (s.kind == StepKind::kConcretize)
        concretize_domain(g, *find_domain(g, t, s.operands[0].domain),
                          {s.attrs.enumerator<IterType>(AttrKey::kIterType), s.attrs.integer(AttrKey::kWidth) == 1});
      else
        concretize_reshape(g, t, s.attrs.ints(AttrKey::kOrder));
    }
  }
  // The plan. Checks that it resolves everything and that the result verifies.
  std::string plan(const Bindings& b, Graph* result = nullptr) const {
    const auto steps = plan_concretize(g, b);
    EXPECT_EQ(steps, plan_concretize(g, b));
    Graph copy = g;
    carry_out(copy, steps);
    verify(copy);
    for (size_t i = 0; i < copy.tensors.size(); ++i)
      for (DomainId d : copy.tensors[i].logical) EXPECT_NE(copy[d].iter_type, IterType::kSymbolic);
    EXPECT_TRUE(plan_concretize(copy, b).empty());
    if (result) *result = copy;
    return describe(steps);
  }
  std::string refusal(const Bindings& b) const {
    try {
      plan_concretize(g, b);
    } catch (const Error& e) {
      return code_text(e.code) + " " + e.place;
    }
    return "accepted";
  }
};

TEST_F(Concretize, AProgramWithoutSymbolicAxesNeedsNothing) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  output(g, sum(g, x, {1}));
  EXPECT_EQ(plan(sizes(3, 4, 5)), "");
}

TEST_F(Concretize, ExpandIsAnIterationOrABroadcast) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  const ValueId e = expand(g, x, {k, -1}, "e"), y = unary(g, OpKind::kExp, e, "y");
  output(g, sum(g, y, {0}, {.name = "s"}));
  Graph done;
  EXPECT_EQ(plan(sizes(5, 4, 5), &done), "%e.i0 iter");
  EXPECT_EQ(shape_text(done, y), "f32[%k, %n]");
  EXPECT_EQ(plan(sizes(1, 4, 5), &done), "%e.i0 broadcast");
  EXPECT_EQ(shape_text(done, e), "f32[1*%k, %n]");
  EXPECT_EQ(shape_text(done, y), "f32[1*%k, %n]");
  EXPECT_EQ(shape_text(done, *find_value(done, "s")), "f32[reduce %k, %n]");
  EXPECT_EQ(plan(sizes(1, 4, 1)), "%e.i0 iter");
  EXPECT_EQ(plan(sizes(0, 4, 0)), "%e.i0 iter");
  EXPECT_EQ(plan(sizes(1, 4, 0)), "%e.i0 broadcast");
  EXPECT_EQ(refusal(sizes(2, 4, 5)), "E0407 %e.i0");
  EXPECT_EQ(refusal({}), "E0214 %x.i0");
}

TEST_F(Concretize, OneStepResolvesWhatFollows) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  const ValueId a = broadcast_in_dim(g, x, {k, n}, {0, 1}, "a");
  const ValueId b = expand(g, unary(g, OpKind::kExp, a), {k, n}, "b");
  const ValueId c = expand(g, b, {m, -1}, "c");
  output(g, c);
  EXPECT_EQ(plan(sizes(5, 4, 5)), "%a.i0 iter; %c.i0 iter");
  EXPECT_EQ(plan(sizes(1, 4, 1)), "%a.i0 iter; %c.i0 iter");
  EXPECT_EQ(refusal(sizes(1, 4, 5)), "E0407 %c.i0");
}

TEST_F(Concretize, InputsThatMayBeBroadcasts) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n}, {.contiguity = {Contiguity::kTrue, Contiguity::kFalse}});
  g[g.tensor_of(x).logical[0]].iter_type = IterType::kSymbolic;
  const ValueId y = input(g, "y", Dtype::kFloat, {k, n});
  output(g, add_op(g, Graph::body(), OpKind::kAdd, {x, y}, {}, {"z"}) ? *find_value(g, "z") : ValueId());
  Graph done;
  EXPECT_EQ(plan(sizes(1, 4, 5), &done), "%x.i0 broadcast");
  EXPECT_EQ(shape_text(done, x), "f32[1, %n]");
  EXPECT_EQ(shape_text(done, *find_value(done, "z")), "f32[%k, %n]");
  EXPECT_EQ(done.tensor_of(x).contiguity[0], Contiguity::kNone);
  EXPECT_EQ(plan(sizes(5, 4, 5), &done), "%x.i0 iter");
}

// An axis of one element that an op expands to 1 is a broadcast of one element if a reader stretches it.
TEST_F(Concretize, AnAxisExpandedToOneStretches) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  const ValueId y = input(g, "y", Dtype::kFloat, {Scalar(3), n});
  const ValueId e = expand(g, x, {k, -1}, "e");
  const ValueId z = binary(g, OpKind::kAdd, unary(g, OpKind::kExp, e), y, "z");
  output(g, z);
  Graph done;
  EXPECT_EQ(plan(sizes(1, 4, 1), &done), "%e.i0 broadcast of one");
  EXPECT_EQ(shape_text(done, e), "f32[1, %n]");
  EXPECT_EQ(shape_text(done, z), "f32[3, %n]");
  EXPECT_NO_THROW(check_sizes(done, sizes(1, 4, 1)));
  // The concretized program holds for these sizes alone.
  EXPECT_THROW(check_sizes(done, sizes(1, 4, 3)), Error);
  EXPECT_THROW(check_sizes(done, sizes(3, 4, 1)), Error);
  EXPECT_THROW(check_sizes(done, sizes(3, 4, 3)), Error);
  // Sizes that fit otherwise need no broadcast of one element, and it would not make others fit.
  EXPECT_EQ(plan(sizes(1, 4, 3)), "%e.i0 broadcast");
  EXPECT_EQ(plan(sizes(3, 4, 3)), "%e.i0 iter");
  EXPECT_EQ(plan(sizes(1, 4, 2)), "%e.i0 broadcast");
  // Inference keeps the axis.
  infer(done, done[e].def);
  EXPECT_EQ(shape_text(done, e), "f32[1, %n]");
}

// The operand of an op that stretches turned out to be a broadcast, and the op expands it to a size that another input
// has.
TEST_F(Concretize, ASymbolicInputExpandedToOneStretches) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m});
  g[g.tensor_of(x).logical[0]].iter_type = IterType::kSymbolic;
  const ValueId y = input(g, "y", Dtype::kFloat, {Scalar(3)}), other = input(g, "other", Dtype::kFloat, {m});
  const ValueId a = expand(g, x, {m}, "a"), b = broadcast_in_dim(g, a, {m}, {0}, "b");
  const ValueId z = binary(g, OpKind::kAdd, y, b, "z");
  output(g, z);
  output(g, other);
  Graph done;
  EXPECT_EQ(plan(sizes(1, 4, 5), &done), "%x.i0 broadcast; %a.i0 broadcast of one; %b.i0 broadcast of one");
  EXPECT_EQ(shape_text(done, b), "f32[1]");
  EXPECT_EQ(shape_text(done, z), "f32[3]");
  EXPECT_NO_THROW(check_sizes(done, sizes(1, 4, 5)));
  EXPECT_THROW(check_sizes(done, sizes(3, 4, 5)), Error);
  EXPECT_EQ(plan(sizes(3, 4, 5)), "%x.i0 iter");
}

// Cat stretches nothing: an axis that it joins stays expanded, and another one stretches.
TEST_F(Concretize, AnAxisThatCatJoinsIsNotOneElement) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m});
  const ValueId y = input(g, "y", Dtype::kFloat, {Scalar(3)}), w = input(g, "w", Dtype::kFloat, {k});
  const ValueId joined = expand(g, x, {k}, "joined"), stretched = expand(g, x, {k}, "stretched");
  output(g, cat(g, {joined, w}, 0, "c"));
  output(g, binary(g, OpKind::kAdd, stretched, y, "z"));
  Graph done;
  plan(sizes(1, 4, 1), &done);
  EXPECT_EQ(shape_text(done, stretched), "f32[1]");
  EXPECT_NO_THROW(check_sizes(done, sizes(1, 4, 1)));
}

TEST_F(Concretize, TheStepSaysOneElementByItsWidth) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  const ValueId e = expand(g, x, {k, -1}, "e");
  output(g, unary(g, OpKind::kExp, e));
  const Step step = parse_step("concretize %e.i0 became broadcast width 1");
  EXPECT_EQ(parse_step(print(step)), step);
  EXPECT_FALSE(inapplicable(g, step));
  // An expanded axis can be resolved once more, a plain one cannot.
  Graph expanded = g;
  apply(expanded, parse_step("concretize %e.i0 became broadcast"));
  EXPECT_EQ(shape_text(expanded, e), "f32[1*%k, %n]");
  apply(expanded, step);
  EXPECT_EQ(shape_text(expanded, e), "f32[1, %n]");
  EXPECT_TRUE(inapplicable(expanded, step));
  for (const char* wrong : {"concretize %e.i0 became broadcast width 2", "concretize %e.i0 became iter width 1",
                            "concretize %x.i0 became broadcast width 1", "concretize %e.i1 became broadcast width 1"})
    EXPECT_EQ(inapplicable(g, parse_step(wrong)).value_or(StepRefusal{}).code, ErrorCode::kStepNotApplicable) << wrong;
}

// Until both axes of the input are resolved, its size is no constant. Then the slice of the expanded axis repeats one element, and
// the next op copies that. Once the size is 1, the slice has an element for each place, and here none.
TEST_F(Concretize, AnAxisThatCopiedABroadcastBecomesAnIterationWithIt) {
  g = main_graph(parse_module(R"(fusion @f {
  %m = size
  %x = input f32[symbolic %m, symbolic %m] contiguous
  %p = maximum %m, 0 : index
  %e = expand %x to [%p, %p] : f32[symbolic %p, symbolic %p]
  %a = input index
  %b = input index
  %least = sub 0, %p : index
  %a1 = minimum %a, %p : index
  %a2 = maximum %a1, %least : index
  %a3 = lt %a2, 0 : bool
  %a4 = add %a2, %p : index
  %from = where %a3, %a4, %a2 : index
  %b1 = minimum %b, %p : index
  %b2 = maximum %b1, %least : index
  %b3 = lt %b2, 0 : bool
  %b4 = add %b2, %p : index
  %b5 = where %b3, %b4, %b2 : index
  %to = maximum %from, %b5 : index
  %left = sub 0, %from : index
  %right = sub %to, %p : index
  %s = slice %e from [%a, 0] to [%b, %p] by [1, 1] : f32[?, symbolic %p]
  %n = sub %to, %from : index
  %n2 = add %n, 2 : index
  %l = sub %n2, 2 : index
  %y = expand %s to [%l, 4] : f32[%n, symbolic 4]
  output %y
}
)"));
  const auto bound = [&](int64_t size, int64_t from, int64_t to) {
    Bindings b(g.values.size());
    for (const auto& [name, value] : {std::pair("m", size), std::pair("a", from), std::pair("b", to)})
      b[find_value(g, name)->index] = ConstantBits{static_cast<uint64_t>(value), 0};
    return b;
  };
  for (const auto& [from, to, rows] : {std::tuple(1, 1, 0), std::tuple(0, 1, 1), std::tuple(0, 5, 1)}) {
    Graph done;
    const Bindings b = bound(1, from, to);
    plan(b, &done);
    EXPECT_NO_THROW(check_sizes(done, b)) << from << " " << to;
    EXPECT_EQ(evaluate_shape(done, *find_value(done, "y"), b), (std::vector<int64_t>{rows, 4}));
  }
}

TEST_F(Concretize, ReshapeGroups) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  const ValueId r = reshape(g, x, {k, -1}, "r");
  output(g, unary(g, OpKind::kExp, r, "y"));
  Graph done;
  EXPECT_EQ(plan(sizes(6, 4, 6), &done), "%r 1 1 1 1");
  EXPECT_EQ(shape_text(done, r), "f32[%m, %n]");
  EXPECT_EQ(plan(sizes(6, 4, 3), &done), "%r 2 2");
  EXPECT_EQ(plan(sizes(6, 4, 24), &done), "%r 2 2");
  EXPECT_EQ(plan(sizes(0, 4, 3), &done), "%r 2 2");
  EXPECT_EQ(plan(sizes(1, 1, 1), &done), "%r 1 1 1 1");
  EXPECT_EQ(evaluate_shape(done, *find_value(done, "y"), sizes(1, 1, 1)), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(refusal(sizes(6, 4, 5)), "E0407 %r");
}

// The other extent can only be 1, and bind_sizes checks that, so there is nothing to resolve.
TEST_F(Concretize, ReshapeToAndFromOneElement) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m});
  const ValueId r = reshape(g, x, {1, 1}, "r");
  const ValueId back = reshape(g, sum(g, x, {}), {k}, "back");
  output(g, r);
  output(g, back);
  Graph done;
  EXPECT_EQ(plan(sizes(1, 4, 1), &done), "");
  EXPECT_EQ(shape_text(done, r), "f32[1, 1]");
  EXPECT_EQ(root_text(done, r), "r0:1");
  EXPECT_EQ(shape_text(done, back), "f32[1]");
  EXPECT_THROW(check_sizes(g, sizes(2, 4, 1)), Error);
  EXPECT_THROW(check_sizes(g, sizes(1, 4, 2)), Error);
  EXPECT_NO_THROW(check_sizes(g, sizes(1, 4, 1)));
}

TEST_F(Concretize, WrongStepsAreRefused) {
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  const ValueId e = expand(g, x, {k, -1}, "e"), r = reshape(g, x, {k, -1}, "r"), y = unary(g, OpKind::kExp, e, "y");
  const auto code = [](const std::optional<Error>& error) {
    return error ? code_text(error->code) : std::string("fine");
  };
  const DomainId symbolic = g.tensor_of(e).logical[0], plain = g.tensor_of(e).logical[1],
                 follower = g.tensor_of(y).logical[0];
  EXPECT_EQ(code(concretize_domain_error(g, symbolic, {IterType::kBroadcast})), "fine");
  EXPECT_EQ(code(concretize_domain_error(g, symbolic, {IterType::kReduction})), "E0302");
  EXPECT_EQ(code(concretize_domain_error(g, plain, {IterType::kIteration})), "E0302");
  EXPECT_EQ(code(concretize_domain_error(g, follower, {IterType::kIteration})), "E0302");
  EXPECT_EQ(code(concretize_domain_error(g, symbolic, {IterType::kBroadcast, true})), "fine");
  EXPECT_EQ(code(concretize_domain_error(g, symbolic, {IterType::kIteration, true})), "E0302");
  EXPECT_EQ(code(concretize_domain_error(g, plain, {IterType::kBroadcast, true})), "E0302");
  const TensorId t = g[r].tensor;
  EXPECT_EQ(code(concretize_reshape_error(g, t, std::vector<int64_t>{2, 2})), "fine");
  EXPECT_EQ(code(concretize_reshape_error(g, t, std::vector<int64_t>{2, 1})), "E0302");
  EXPECT_EQ(code(concretize_reshape_error(g, t, std::vector<int64_t>{2})), "E0302");
  EXPECT_EQ(code(concretize_reshape_error(g, t, std::vector<int64_t>{-1, 0, 3, 2})), "E0302");
  EXPECT_EQ(code(concretize_reshape_error(g, g[e].tensor, std::vector<int64_t>{2, 2})), "E0302");
  g.level = Level::kScheduled;
  EXPECT_EQ(code(concretize_domain_error(g, symbolic, {IterType::kBroadcast})), "E0302");
}

}  // namespace
}  // namespace fusebox
