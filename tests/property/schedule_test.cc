// The law of schedules: if `legal` accepts a schedule, it lowers, runs on the host executor without a finding, and
// gives the bits of the unfused plan. The graphs after the steps and after lowering survive writing and reading. A
// refusal of `legal` has a code.
#include <gtest/gtest.h>
#include <map>

#include "ir/infer/bind.h"
#include "ir/text/print.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/run_compiled.h"
#include "tests/support/schedule_cases.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

using testing::setting;

std::vector<ProgramOutput> run(const Graph& g, std::span<const Argument> inputs, const CompileOptions& options) {
  return testing::run_compiled(compile(g, bind_sizes(g, bound_inputs(inputs)), options), inputs);
}

std::string print_kernels(const Compiled& c) {
  std::string text;
  for (const Graph& kernel : c.kernels) text += print(kernel);
  return text;
}

// The graphs of a stage can be recorded in a bundle.
void expect_recordable(const std::vector<Graph>& graphs, const char* stage) {
  Module m;
  for (const Graph& g : graphs)
    if (!g.ops.empty()) m.graphs.push_back(g);
  try {
    EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m) << stage;
  } catch (const Error& e) {
    FAIL() << stage << ": " << code_text(e.code) << " " << e.place << ": " << e.what() << "\n" << print(m);
  }
}

TEST(Schedules, LegalOnesAgreeWithTheUnfusedPlan) {
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1), count = setting("FUSEBOX_SCHEDULES", 3000);
  std::map<std::string, int> legal_kinds, refusals, launch_refusals;
  int legal_count = 0, ran = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const test::ScheduleCase c = test::make_schedule_case(seed);
    const Graph& g = c.module.graphs[0];
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + c.family + "\n" + print(c.module) + print_steps(c.steps));
    std::vector<Argument> inputs;
    for (const InputSpec& s : c.module.input_specs[0].specs) inputs.push_back(make_argument(s));
    Compiled compiled;
    try {
      compiled = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = c.steps});
    } catch (const Error& e) {
      ASSERT_NE(row_of(e.code).outcome, Outcome::kInternal) << e.what() << " " << e.place;
      ASSERT_FALSE(e.place.empty()) << e.what();
      ++refusals[std::string(row_of(e.code).name)];
      continue;
    }
    ++legal_count;
    expect_recordable({compiled.concretized}, "concretized");
    expect_recordable(compiled.scheduled, "scheduled");
    std::vector<Graph> host = compiled.kernels;
    host.insert(host.begin(), compiled.host);
    expect_recordable(host, "host and kernels");
    ASSERT_FALSE(HasFailure());
    for (const std::vector<Step>& steps : {c.steps, compiled.concretize})
      for (const Step& s : steps) {
        std::string kind(row_of(s.kind).text);
        if (s.kind == StepKind::kParallelize)
          kind += " " + std::string(text(s.attrs.enumerator<ParallelType>(AttrKey::kParallel)));
        ++legal_kinds[kind];
      }
    const auto expected = run(g, inputs, {});
    std::vector<ProgramOutput> actual;
    try {
      actual = run(g, inputs, {.steps = c.steps});
    } catch (const Error& e) {
      // Only the launch can find these: too many threads, too many blocks for the checks to number, a layout that does
      // not allow vector access, or a build without ATen.
      const bool at_launch = e.code == ErrorCode::kLaunchLimit || e.code == ErrorCode::kStepLimit ||
                             e.code == ErrorCode::kUnalignedVector || e.code == ErrorCode::kModuleMissing;
      ASSERT_TRUE(at_launch) << code_text(e.code) << " " << e.place << ": " << e.what() << "\n"
                             << print_kernels(compiled);
      ++launch_refusals[std::string(row_of(e.code).name)];
      continue;
    }
    ++ran;
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      // Layouts may differ (set_allocation), elements may not.
      const TensorData a = contiguous_copy(expected[i].value.tensor), b = contiguous_copy(actual[i].value.tensor);
      ASSERT_EQ(digest(a), digest(b)) << "output " << i << "\n" << print_kernels(compiled);
    }
  }
  for (const auto& [kind, n] : legal_kinds) std::printf("  in legal schedules: %-22s %d\n", kind.c_str(), n);
  for (const auto& [code, n] : refusals) std::printf("  refused: %-22s %d\n", code.c_str(), n);
  for (const auto& [code, n] : launch_refusals) std::printf("  refused at launch: %-16s %d\n", code.c_str(), n);
  std::printf("  schedules: %d legal, %d ran, of %d\n", legal_count, ran, static_cast<int>(count));
  if (count >= 3000) {
    EXPECT_GE(ran, 300);
    EXPECT_GE(static_cast<int>(count) - legal_count, 100);
  }
}

}  // namespace
}  // namespace fusebox
