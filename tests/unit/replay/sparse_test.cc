// Tensors with few elements at strides of gigabytes take the memory of their elements only, and run like others.
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/record/record.h"
#include "replay/run/judge.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

TensorData made(const std::string& spec) { return make_argument(parse_input_spec("x", spec), 1).tensor; }

// The memory of touched pages, reserved ranges included.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::vector<int64_t> integers(const TensorData& t) {
  std::vector<int64_t> result;
  for (int64_t p : positions_of(t)) result.push_back(static_cast<int64_t>(load_element(t, p).low));
  return result;
}

TEST(SparseTensor, ElementsAreThoseOfAnyLayout) {
  const TensorData far = made("i8[3, 2] strides [2147483648, 1000000000] offset 5 integers -100.0 100.0 seed 3");
  ASSERT_TRUE(is_sparse(far));
  EXPECT_EQ(integers(far), integers(made("i8[3, 2] integers -100.0 100.0 seed 3")));
  EXPECT_EQ(integers(deep_copy(far)), integers(far));
  EXPECT_EQ(positions_of(far).back(), 5 + 2 * int64_t{2147483648} + 1000000000);
  EXPECT_FALSE(is_sparse(made("f32[64] strides [3] normal")));
  EXPECT_FALSE(is_sparse(made("i8[20000000] normal")));
}

TEST(SparseTensor, FlagsAreOfItsElements) {
  const TensorData far = made("i8[3] strides [2147483648] integers -100.0 100.0");
  DefinedElements d = DefinedElements::none(far);
  EXPECT_EQ(d.first_missing(far), 0);
  d.define(far);
  EXPECT_FALSE(d.first_missing(far));
  EXPECT_TRUE(d[int64_t{2} * 2147483648]);
  EXPECT_FALSE(d[int64_t{2} * 2147483648 - 1]);
}

TEST(SparseTensor, TakesTheMemoryOfItsElements) {
  const int64_t before = resident_bytes();
  const TensorData far = made("i8[4] strides [2147483648] integers -100.0 100.0");
  const TensorData copy = deep_copy(far);
  const DefinedElements defined = DefinedElements::of_elements(copy);
  EXPECT_LT(resident_bytes() - before, int64_t{1} << 22);
}

TEST(SparseTensor, ALimitOfDataDoesNotCountIt) {
  const auto within_limit = [] {
    const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) _exit(2);
    try {
      const TensorData far = made("i8[3] strides [2147483648] integers 1.0 2.0");
      _exit(integers(deep_copy(far)) == std::vector<int64_t>{1, 1, 1} ? 0 : 3);
    } catch (...) {
      _exit(4);
    }
  };
  EXPECT_EXIT(within_limit(), ::testing::ExitedWithCode(0), "");
}

// Reads, and stores in place; elements lie below 2^31, so 32-bit indices suffice.
TEST(SparseTensor, RunsLikeAContiguousOne) {
  constexpr std::string_view kProgram = R"(fusion @f {
  %x = input i8[40] contiguity [false]
  %y = neg %x
  %z = add %y, %y
  output %y alias %x
  output %z
}
inputs @f host {
  %x = i8[40] strides [4000000] integers -100.0 100.0 seed 4
}
)";
  const Module m = parse_module(kProgram);
  std::vector<std::vector<Argument>> outputs;
  const int64_t before = resident_bytes();
  for (const std::string spec :
       {"x=i8[40] strides [4000000] integers -100.0 100.0 seed 4", "x=i8[40] integers -100.0 100.0 seed 4"})
    for (int threads : {1, 4}) {
      const auto arguments = make_arguments(m.graphs[0], &m.input_specs[0], std::vector<std::string>{spec});
      const auto run = run_program(m, arguments, {.threads = threads, .keep_sources = false});
      ASSERT_FALSE(run.failure) << run.failure->message;
      ASSERT_EQ(run.outputs.size(), 2u);
      outputs.push_back({run.outputs[0].value, run.outputs[1].value});
      EXPECT_EQ(run.outputs[0].value.tensor.strides[0], spec.find("strides") == std::string::npos ? 1 : 4000000);
    }
  EXPECT_LT(resident_bytes() - before, int64_t{1} << 27);
  for (const auto& other : outputs)
    for (size_t i = 0; i < 2; ++i) EXPECT_FALSE(first_difference(other[i].tensor, outputs[0][i].tensor)) << i;
}

}  // namespace
}  // namespace fusebox
