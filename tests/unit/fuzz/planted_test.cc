// The naive checks on kernels with known faults, and the kernels that planting leaves.
#include <gtest/gtest.h>
#include <set>

#include "fuzz/planted/naive_checks.h"
#include "fuzz/planted/plants.h"
#include "ir/text/parse.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kElements = 8;

std::string kernel(const std::string& body) {
  return "kernel @k index 32 {\n  %y = input f32[?] global\n  %s = allocate 8 at 0 in shared align 16 : f32[iter 8] "
         "shared\n  %l = allocate 2 in local : f32[iter 2] local\n  %t = thread_index on block.x\n"
         "  %p = eq %t, 0 : bool\n" +
         body + "}\n";
}

// The verdicts of both on a launch of 8 threads, for example `E0414 %s[3]`.
struct Verdicts {
  std::set<std::string> naive;
  std::string host;
  std::string wrong_mark;
};
Verdicts judge(const std::string& body, int64_t blocks = 1) {
  const Bytecode code = compile_bytecode(parse_graph(kernel(body)));
  const LaunchDims dims = {.grid = {blocks, 1, 1}, .block = {kElements, 1, 1}, .shared_bytes = 64};
  const auto run = [&](const HostOptions& options) {
    std::vector<float> y(kElements);
    std::vector<uint8_t> written(kElements, 0);
    const HostArgument args[] = {HostArgument::memory(Dtype::kFloat, y.data(), kElements, written)};
    const HostResult r = run_kernel(code, dims, args, options);
    return r.finding ? code_text(r.finding->code) + " " + r.finding->place() : "";
  };
  Verdicts v;
  v.host = run({});
  NaiveChecks naive;
  try {
    run({.checks = {.unwritten = false, .races = false, .index_overflow = false}, .observer = &naive});
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kStepLimit);
  }
  naive.finish();
  for (const auto& found : naive.found()) v.naive.insert(code_text(found.code) + " " + found.place);
  v.wrong_mark = naive.wrong_mark();
  return v;
}

void expect(const std::string& body, const std::string& wanted, int64_t blocks = 1) {
  SCOPED_TRACE(body);
  const Verdicts v = judge(body, blocks);
  EXPECT_EQ(v.host, wanted);
  EXPECT_EQ(v.naive.contains(wanted), !wanted.empty());
  EXPECT_EQ(v.naive.empty(), wanted.empty());
  EXPECT_EQ(v.wrong_mark, "");
}

TEST(NaiveChecks, SayWhatIsWrong) {
  const std::string exchange = "  %o = sub 7, %t : index\n  %v = load %s at %o : f32\n  store %y at %t, %v\n";
  const std::string own = "  store %s at %t, 1.0_f32\n";
  expect(own + "  barrier\n" + exchange, "");
  expect(own + exchange, "E0414 %s[7]");
  expect("  barrier\n" + exchange, "E0412 %s[7]");
  expect("  store %y at 0, 1.0_f32\n", "E0413 %y[0]");
  expect("  store %y at %t, 1.0_f32\n", "");
  expect("  store %y at %t, 1.0_f32\n", "E0413 %y[0]", 2);
  expect("  %n = add %t, 1 : index\n  store %y at %n, 1.0_f32\n", "E0410 %y[8]");
  expect("  %v = load %l at 1 : f32\n", "E0412 %l[1]");
  expect("  store %l at 1, 1.0_f32\n  %v = load %l at 1 : f32\n", "");
  const Verdicts divergent = judge("  if %p {\n    barrier\n  }\n");
  EXPECT_TRUE(divergent.host.starts_with("E0415 line ")) << divergent.host;
  EXPECT_EQ(divergent.naive, std::set<std::string>{divergent.host});
}

TEST(NaiveChecks, OneElementThatAllRead) {
  const std::string begin = "  if %p {\n    store %s at 0, 1.0_f32\n  }\n  barrier\n  %v = load %s at 0 : f32\n";
  expect(begin + "  barrier\n  if %p {\n    store %s at 0, 2.0_f32\n  }\n", "");
  expect(begin + "  if %p {\n    store %s at 0, 2.0_f32\n  }\n", "E0414 %s[0]");
}

TEST(Plants, LeaveKernelsThatVerify) {
  const Graph g =
      parse_graph(kernel("  if %p {\n    store %s at 0, 1.0_f32\n  }\n  barrier\n  for 0, 4, 1 { index %i\n"
                         "    %v = load %s at 0 : f32\n    store %y at %t, %v\n  }\n"));
  std::set<std::string_view> changes;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomSource random(seed);
    Graph planted = g;
    const std::string_view change = plant(random, planted);
    EXPECT_FALSE(find_error(planted));
    EXPECT_EQ(change.empty(), planted == g) << change;
    changes.insert(change);
  }
  EXPECT_GE(changes.size(), 7u);
}

}  // namespace
}  // namespace fusebox::fuzz
