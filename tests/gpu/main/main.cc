// The main of GPU tests. Exits with kSkipped if a test was skipped and none failed, so that CTest shows a skip only then.
#include <gtest/gtest.h>

namespace {
constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const int failed = RUN_ALL_TESTS()) return failed;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
