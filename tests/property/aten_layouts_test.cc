// Every op as an ATen segment, on inputs that lie in memory in many ways: its strides are those that were inferred before
// any data, and its values are within the reference's bounds. tests/gpu/aten_layouts_test.cc has the same on a GPU.
#include <gtest/gtest.h>
#include <set>

#include "replay/data/file.h"
#include "tests/support/aten_law.h"

namespace fusebox {
namespace {

TEST(AtenLayouts, AreInferredForEveryOp) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const auto device = make_host_device();
  test::AtenLaw(*device).check_every_op(5);
}

TEST(AtenLayouts, AreInferredBesideNumbers) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const auto device = make_host_device();
  test::AtenLaw law(*device);
  law.check_numbers();
  EXPECT_GE(law.ran, 60);
}

// tests/property/aten_referred.txt lists, for each op, the dtypes that no kernel of ATen's computes by this project's rules.
// On a GPU their elements go to the CPU and back.
TEST(AtenLayouts, TheReferenceServesFewOps) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  std::string served;
  for (const OpKind kind : test::ops_with_cases()) {
    std::set<Dtype> dtypes;
    for (const test::OpCase& c : test::some_cases(kind, 5)) {
      std::vector<Argument> inputs;
      for (const InputSpec& s : c.inputs) inputs.push_back(make_argument(s));
      const Graph form = aten_form(c.fusion);
      std::vector<BoundInput> given;
      const Bindings sizes = bind_sizes(c.fusion, bound_inputs(inputs));
      size_t next = 0;
      for (ValueId v : fusebox::inputs(form)) {
        if (!form.is_tensor(v)) {
          given.push_back({.is_scalar = true, .bits = *sizes[find_value(c.fusion, form[v].name)->index]});
          continue;
        }
        const TensorData& t = inputs[next++].tensor;
        given.push_back({.shape = t.shape, .strides = t.strides});
      }
      for (const std::string& name : load_aten().referred(form, given))
        if (form[form[*find_value(form, name)].def].kind == kind) dtypes.insert(c.dtype);
    }
    if (dtypes.empty()) continue;
    served += std::string(row_of(kind).text) + ":";
    for (Dtype d : dtypes) served += " " + std::string(text(d));
    served += "\n";
  }
  const auto listed = read_file("tests/property/aten_referred.txt");
  EXPECT_EQ(served, std::string(reinterpret_cast<const char*>(listed.data()), listed.size()));
}

}  // namespace
}  // namespace fusebox
