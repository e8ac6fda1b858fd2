// Every op, on every dtype that it accepts, agrees with the reference evaluator. Runs the unfused plan on the host
// executor with all checks. tests/gpu/ops_agree_test.cc has the same cases on a GPU.
#include <gtest/gtest.h>

#include "ir/table/error.h"
#include "replay/device/module_loader.h"
#include "tests/support/op_agreement.h"

namespace fusebox {
namespace {

TEST(Ops, AgreeWithTheReference) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const auto device = make_host_device();
  test::OpAgreement law(*device);
  int refused_by_type = 0;
  for (const OpKind kind : test::ops_with_cases()) {
    const int before = law.ran;
    const test::OpCases of_op = test::op_cases(kind);
    for (const test::OpCase& c : of_op.cases) law.check(c);
    refused_by_type += of_op.refused;
    EXPECT_GT(law.ran, before) << row_of(kind).text << " was never run";
  }
  std::printf("%s; %zu ops, %d more refused by the type rules\n", law.summary().c_str(), test::ops_with_cases().size(),
              refused_by_type);
}

}  // namespace
}  // namespace fusebox
