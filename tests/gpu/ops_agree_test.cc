// Every op on every dtype that it accepts, over boundary shapes, strides and values, as whole programs on a GPU,
// compared with the reference evaluator. The cases are those of tests/property/ops_agree_test.cc. Each op has a test of
// its own, so that CTest's shards (tests/CMakeLists.txt) compile their kernels in parallel. FUSEBOX_ON=host runs the
// cases on the host executor.
#include <cstdlib>
#include <gtest/gtest.h>

#include "ir/table/error.h"
#include "replay/device/module_loader.h"
#include "tests/support/op_agreement.h"

namespace fusebox {
namespace {

class OpsOnGpu : public testing::TestWithParam<OpKind> {
 protected:
  // One device for all ops, because opening one takes longer than many kernels.
  static void SetUpTestSuite() {
    try {
      load_aten();
      const char* on = std::getenv("FUSEBOX_ON");
      device_ = on && std::string(on) == "host" ? make_host_device() : make_cuda_device();
      law_ = std::make_unique<test::OpAgreement>(*device_);
    } catch (const Error& e) {
      why_not_ = e.what();
      std::printf("SKIPPED: %s\n", e.what());
    }
  }
  static void TearDownTestSuite() {
    if (!law_) return;
    std::printf("%s\n", law_->summary().c_str());
    for (const auto& [kind, count] : law_->per_op) std::printf("  failed: %-32s %d cases\n", kind.c_str(), count);
    law_ = nullptr;
    device_ = nullptr;
  }

  static inline std::unique_ptr<Device> device_;
  static inline std::unique_ptr<test::OpAgreement> law_;
  static inline std::string why_not_;
};

TEST_P(OpsOnGpu, AgreesWithTheReference) {
  if (!law_) GTEST_SKIP() << why_not_;
  ASSERT_FALSE(law_->is_device_lost) << "the GPU failed in a test before this one";
  const int before = law_->ran;
  for (const test::OpCase& c : test::op_cases(GetParam()).cases) {
    law_->check(c);
    ASSERT_FALSE(law_->is_device_lost) << "the GPU failed in " << c.name;
  }
  EXPECT_GT(law_->ran, before) << "never run";
}

std::string name_of(const testing::TestParamInfo<OpKind>& info) { return std::string(row_of(info.param).text); }

INSTANTIATE_TEST_SUITE_P(Ops, OpsOnGpu, testing::ValuesIn(test::ops_with_cases()), name_of);

}  // namespace
}  // namespace fusebox
