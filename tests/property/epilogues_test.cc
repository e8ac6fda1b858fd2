// A product of matrices and what follows it as one call of ATen (ir/infer/product_call.h): on inputs that lie in memory in
// many ways, the results are within the reference's bounds, and as close as those of the ops one by one.
// tests/gpu/epilogues_test.cc has the same on a GPU.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "replay/run/run.h"
#include "tests/support/epilogue_law.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

TEST(Epilogues, AreWithinBounds) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const auto device = make_host_device();
  test::check_epilogues(*device, 72, 1);
}

Argument given(const std::string& spec) { return make_argument(parse_input_option(spec), Dtype::kFloat, false); }

// One call leaves out the rounding of the product to 16 bits, so its results are not those of the ops one by one.
TEST(Epilogues, RoundOnce) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const Graph fusion = main_graph(parse_module(testing::program_text("mlp")));
  const std::vector<Argument> inputs = {given("x=bf16[64, 96] normal seed 1"), given("w=bf16[80, 96] normal seed 2"),
                                        given("b=bf16[80] normal seed 3")};
  const Graph form = aten_form(fusion);
  const std::optional<ProductCall> call = product_call(form);
  ASSERT_TRUE(call);
  const Bindings sizes = bind_sizes(fusion, bound_inputs(inputs));
  std::vector<AtenValue> values;
  size_t next = 0;
  for (ValueId v : fusebox::inputs(form)) {
    AtenValue value{.is_scalar = !form.is_tensor(v), .dtype = form[v].dtype};
    if (value.is_scalar) {
      value.bits = *sizes[find_value(fusion, form[v].name)->index];
    } else {
      const TensorData& t = inputs[next++].tensor;
      value.layout = {t.shape, t.strides};
      value.data = t.data();
    }
    values.push_back(value);
  }
  const Evaluation expected = load_aten().evaluate(fusion, inputs);
  std::vector<std::vector<uint64_t>> elements;
  for (const ProductCall* c : {&*call, static_cast<const ProductCall*>(nullptr)}) {
    const std::vector<AtenValue> made = load_aten().run(form, values, {}, c);
    const TensorData t =
        external_tensor(made[0].dtype, made[0].data, made[0].layout.shape, made[0].layout.strides, made[0].keeper);
    EXPECT_TRUE(compare(t, expected.outputs[0], 1).ok);
    auto& list = elements.emplace_back();
    for (const int64_t position : positions_of(t)) list.push_back(load_element(t, position).low);
  }
  EXPECT_NE(elements[0], elements[1]);
}

}  // namespace
}  // namespace fusebox
