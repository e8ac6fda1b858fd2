// Laws of rewrites, on random fusions and on the corpus. Outputs keep their bits on the host executor (a NaN stays a
// NaN). The signature stays. The result verifies and round-trips as text. A second run changes nothing. A run that
// changes nothing leaves an equal graph. The same rewrite gives the same digest every time.
#include "passes/rewrite/rewrite.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/apply_steps.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "tests/support/random_fusion.h"
#include "tests/support/reduction_fusions.h"
#include "tests/support/reshaped_fusions.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

using testing::Random;
using testing::random_fusion;
using testing::random_inputs;
using testing::setting;

std::vector<ProgramOutput> run(const Graph& g, std::span<const Argument> inputs, const CompileOptions& options = {}) {
  const Compiled c = compile(g, bind_sizes(g, bound_inputs(inputs)), options);
  std::vector<NamedKernel> kernels;
  for (size_t k = 0; k < c.kernels.size(); ++k) kernels.push_back({c.segmentation.segments[k].name, &c.kernels[k]});
  const auto device = make_host_device();
  return run_host_program(c.host, kernels, *device, inputs).outputs;
}

bool is_nan(Dtype d, ConstantBits bits) {
  if (is_complex(d)) return std::isnan(to_complex(d, bits).real()) || std::isnan(to_complex(d, bits).imag());
  return is_floating(d) && std::isnan(to_double(d, bits));
}

// Compares element by element; two NaNs are equal.
void expect_same(const std::vector<ProgramOutput>& a, const std::vector<ProgramOutput>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].value.is_scalar, b[i].value.is_scalar);
    ASSERT_EQ(a[i].value.dtype, b[i].value.dtype);
    if (a[i].value.is_scalar) {
      ASSERT_EQ(a[i].value.bits, b[i].value.bits);
      continue;
    }
    const TensorData x = contiguous_copy(a[i].value.tensor), y = contiguous_copy(b[i].value.tensor);
    ASSERT_EQ(x.shape, y.shape);
    for (int64_t k = 0; k < element_count(x.shape); ++k) {
      const ConstantBits p = load_element(x, k), q = load_element(y, k);
      ASSERT_TRUE(p == q || (is_nan(x.dtype, p) && is_nan(x.dtype, q))) << "output " << i << ", element " << k;
    }
  }
}

std::string signature(const Graph& g) {
  std::string all;
  for (OpId op : g[Graph::body()].ops) {
    if (!demands(g[op].kind, kSignature)) continue;
    all += std::string(row_of(g[op].kind).text);
    for (ValueId v : g[op].operands) all += v ? " %" + g[v].name : " -";
    for (ValueId v : g[op].results) all += " %" + g[v].name + " " + std::string(text(g[v].dtype));
    all += "\n";
  }
  return all;
}

struct Count {
  int runs = 0, changes = 0;
};
using Counts = std::map<std::string, Count>;

// Checks every law but that of the bits. Returns the rewritten graph.
Graph rewritten(const Graph& before, const Step& step, Counts& counts) {
  EXPECT_FALSE(step_refusal(before, step));
  Graph after = before;
  apply_step(after, step);
  EXPECT_EQ(find_error(after), std::nullopt);
  EXPECT_EQ(signature(before), signature(after));
  Module m;
  m.graphs = {after};
  EXPECT_TRUE(parse_module(print(m)) == m) << print(m);
  const ParsedRewrite parsed = parse_rewrite(step);
  Graph again = after;
  EXPECT_FALSE(parsed.pass->run(again, parsed.options)) << parsed.pass->name << "\n" << print(after) << print(again);
  EXPECT_TRUE(testing::identical(again, after));
  Graph repeated = before;
  const bool changed = parsed.pass->run(repeated, parsed.options);
  EXPECT_EQ(changed, !(before == after)) << parsed.pass->name;
  EXPECT_EQ(digest(repeated), digest(after));
  if (parsed.pass->name == "dead_code") {
    EXPECT_EQ(digest(before), digest(after));
  }
  Count& count = counts[std::string(parsed.pass->name)];
  ++count.runs;
  count.changes += changed ? 1 : 0;
  return after;
}

std::optional<Error> compile_error(const Graph& g, std::span<const Argument> inputs, const CompileOptions& options) {
  try {
    compile(g, bind_sizes(g, bound_inputs(inputs)), options);
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

std::vector<Step> rewrites_of(RewrittenOutputs outputs) {
  std::vector<Step> steps;
  for (const RewriteRow& row : rewrite_rows())
    if (row.outputs == outputs) steps.push_back(rewrite_step(row.name));
  return steps;
}
std::vector<Step> exact_rewrites() { return rewrites_of(RewrittenOutputs::kKeepsBits); }

TEST(Rewrites, KeepTheBitsOfRandomFusions) {
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1), count = setting("FUSEBOX_REWRITES", 800);
  Counts counts;
  int ran = 0;
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    const Graph g = random_fusion(seed);
    ASSERT_EQ(find_error(g), std::nullopt);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(g));
    Random random(seed);
    const auto arguments = random_inputs(g, random);
    // A fusion that the unfused plan refuses says nothing about rewrites.
    std::vector<ProgramOutput> expected;
    try {
      expected = run(g, arguments);
    } catch (const Error& e) {
      ASSERT_NE(e.code, ErrorCode::kInternal) << e.what();
      continue;
    }
    ++ran;
    std::vector<Step> steps = exact_rewrites();
    for (const Step& step : steps) {
      SCOPED_TRACE(print_steps(std::span(&step, 1)));
      const Graph after = rewritten(g, step, counts);
      expect_same(expected, run(after, arguments));
      if (HasFailure()) FAIL() << print(after);
    }
    // One after another in a random order, each working on the others' results; twice.
    for (size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[random.below(i)]);
    const std::vector<Step> once = steps;
    steps.insert(steps.end(), once.begin(), once.end());
    Graph after = g;
    for (const Step& step : steps) after = rewritten(after, step, counts);
    SCOPED_TRACE(print_steps(once));
    expect_same(expected, run(g, arguments, {.steps = steps}));
    if (HasFailure()) FAIL() << print(after);
  }
  for (const auto& [pass, n] : counts) std::printf("  %-22s %6d runs, %6d changed\n", pass.c_str(), n.runs, n.changes);
  std::printf("  fusions: %d ran, of %d\n", ran, static_cast<int>(count));
  if (count < 800) return;
  EXPECT_GE(ran, static_cast<int>(count) / 2);
  for (const Step& step : exact_rewrites()) {
    const std::string name(parse_rewrite(step).pass->name);
    EXPECT_GE(counts[name].changes, 50) << name;
  }
}

// The other laws of rewrites that keep no bits. tests/property/reduction_schedules_test.cc compares values.
TEST(Rewrites, KeepTheSignatureOfRandomReductions) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 600 && !HasFailure(); ++seed) {
    const Graph g = testing::make_reduction_case(seed).module.graphs[0];
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(g));
    for (const Step& step : rewrites_of(RewrittenOutputs::kWithinBounds)) {
      const Graph after = rewritten(g, step, counts);
      rewritten(after, rewrite_step("dead_code"), counts);
    }
  }
  EXPECT_GE(counts["two_pass_moments"].changes, 50);
}

// Sums of integers keep their bits, although they are added in other parts.
TEST(Rewrites, FinestAxesKeepTheNumbersOfReshapedReductions) {
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1), count = setting("FUSEBOX_REWRITES", 800);
  Counts counts;
  int ran = 0, reshapes_before = 0, reshapes_after = 0;
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    const testing::ReshapedCase c = testing::ReshapedMaker(seed).run();
    ASSERT_EQ(find_error(c.graph), std::nullopt);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(c.graph));
    std::vector<ProgramOutput> expected;
    try {
      expected = run(c.graph, c.arguments);
    } catch (const Error& e) {
      ASSERT_NE(e.code, ErrorCode::kInternal) << e.what();
      continue;
    }
    ++ran;
    const Graph after = rewritten(c.graph, rewrite_step("finest_axes"), counts);
    const Graph clean = rewritten(after, rewrite_step("dead_code"), counts);
    if (HasFailure()) FAIL() << print(after);
    SCOPED_TRACE(print(clean));
    try {
      expect_same(expected, run(clean, c.arguments));
    } catch (const Error& e) {
      FAIL() << e.what();
    }
    if (HasFailure()) FAIL();
    reshapes_before += static_cast<int>(
        std::ranges::count(rewritten(c.graph, rewrite_step("dead_code"), counts).ops, OpKind::kReshape, &Op::kind));
    reshapes_after += static_cast<int>(std::ranges::count(clean.ops, OpKind::kReshape, &Op::kind));
  }
  std::printf("  %d ran, %d changed; %d reshapes before, %d after\n", ran, counts["finest_axes"].changes,
              reshapes_before, reshapes_after);
  if (count < 800) return;
  EXPECT_GE(ran, 600);
  EXPECT_GE(counts["finest_axes"].changes, 100);
}

// The moments of rows far from 0, in two passes, against sums in long double. The error of the mean is a few roundings of
// the largest element; the squares are off by n times its square, and by roundings of themselves.
TEST(Rewrites, TwoPassMomentsAreWithinBounds) {
  const Graph g = parse_module(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %avg, %squares, %count = welford %x over [1]
  %a = neg %avg
  %s = neg %squares
  output %a
  output %s
}
)")
                      .graphs[0];
  Counts counts;
  const Graph after = rewritten(g, rewrite_step("two_pass_moments"), counts);
  EXPECT_EQ(counts["two_pass_moments"].changes, 1);
  constexpr double kRoundoff = 0x1p-24, kOffset = 1000;
  for (const int64_t n : {0, 1, 2, 3, 31, 1024, 5000}) {
    TensorData x = allocate_tensor(Dtype::kFloat, {3, n});
    Random random(static_cast<uint64_t>(n) + 1);
    std::vector<std::vector<double>> rows(3);
    for (int64_t i = 0; i < 3 * n; ++i) {
      const float value = static_cast<float>(kOffset + static_cast<double>(random.below(1 << 16)) * 0x1p-16);
      store_element(x, i, constant_bits(Dtype::kFloat, value));
      rows[static_cast<size_t>(i / n)].push_back(value);
    }
    const Argument arguments[] = {Argument::of(x)};
    const auto made = run(after, arguments);
    for (size_t r = 0; r < 3; ++r) {
      long double mean = 0, squares = 0;
      for (double v : rows[r]) mean += v;
      mean /= static_cast<long double>(std::max<int64_t>(n, 1));
      for (double v : rows[r]) squares += (v - mean) * (v - mean);
      const auto at = [&](size_t output) {
        return -to_double(Dtype::kFloat,
                          load_element(contiguous_copy(made[output].value.tensor), static_cast<int64_t>(r)));
      };
      const double mean_bound = 16 * kRoundoff * kOffset;
      EXPECT_NEAR(at(0), static_cast<double>(mean), n == 1 ? 0 : mean_bound) << n;
      const double bound =
          static_cast<double>(n) * mean_bound * mean_bound + 64 * kRoundoff * static_cast<double>(squares);
      EXPECT_NEAR(at(1), static_cast<double>(squares), n == 1 ? 0 : bound) << n;
    }
  }
}

// A count that is read is the number of elements, also where there is none.
TEST(Rewrites, TwoPassMomentsCountElements) {
  const Graph g = parse_module(R"(fusion @f {
  %n, %c, %l = size
  %x = input f32[%n, %c, %l] contiguous
  %avg, %squares, %count = welford %x over [0, 2]
  %a, %s, %k = welford %x over [0, 1, 2]
  %cf = cast %count as f32
  %var = truediv %squares, %cf
  %more = add %k, 1
  %less = neg %a
  output %cf
  output %var
  output %more
  output %less
}
)")
                      .graphs[0];
  Counts counts;
  const Graph after = rewritten(g, rewrite_step("two_pass_moments"), counts);
  EXPECT_EQ(counts["two_pass_moments"].changes, 1);
  EXPECT_EQ(std::ranges::count(after.ops, OpKind::kFull, &Op::kind), 2);
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {3, 2, 5}, {0, 2, 5}, {3, 2, 0}, {0, 2, 0}, {3, 0, 5}, {1, 1, 1}, {1, 3, 7}, {5, 1, 1}}) {
    TensorData x = allocate_tensor(Dtype::kFloat, shape);
    Random random(7);
    // Small integers, whose sums are exact.
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; ++i)
      store_element(x, i, constant_bits(Dtype::kFloat, static_cast<double>(random.below(9)) - 4));
    const Argument arguments[] = {Argument::of(x)};
    const auto before = run(g, arguments), made = run(after, arguments);
    const auto at = [](const auto& results, size_t output, int64_t i) {
      const TensorData t = contiguous_copy(results[output].value.tensor);
      return to_double(t.dtype, load_element(t, i));
    };
    for (int64_t c = 0; c < shape[1]; ++c) {
      EXPECT_EQ(at(made, 0, c), static_cast<double>(shape[0] * shape[2]));
      const double want = at(before, 1, c), is = at(made, 1, c);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(is) : std::abs(is - want) <= 1e-5 * std::abs(want) + 1e-5)
          << is << " for " << want;
    }
    EXPECT_EQ(at(made, 2, 0), at(before, 2, 0));
    EXPECT_EQ(at(made, 2, 0), static_cast<double>(shape[0] * shape[1] * shape[2] + 1));
    EXPECT_NEAR(at(made, 3, 0), at(before, 3, 0), 1e-5);
  }
}

TEST(Rewrites, TwoPassMomentsLeaveOtherWelfords) {
  const auto changes = [](const std::string& body) {
    Graph g = parse_module("fusion @f {\n  %m, %n = size\n" + body + "}\n").graphs[0];
    return two_pass_moments(g);
  };
  const std::string x = "  %x = input f32[%m, %n]\n", w = "  %a, %s, %c = welford %x over [1]\n";
  EXPECT_TRUE(changes(x + w + "  %y = neg %a\n  output %y\n"));
  // A count is a number of elements.
  EXPECT_TRUE(changes(x + w + "  %z = neg %c\n  output %z\n"));
  EXPECT_TRUE(changes(x + w + "  %y = neg %a\n  %z = neg %c\n  output %y\n  output %z\n"));
  // An output keeps its op, and the mean of narrow floats would be rounded.
  EXPECT_FALSE(changes(x + w + "  output %a\n"));
  EXPECT_FALSE(changes(x + w + "  %y = neg %a\n  output %y\n  output %c\n"));
  EXPECT_FALSE(changes("  %x = input bf16[%m, %n]\n" + w + "  %y = neg %a\n  output %y\n"));
  // Merged sets.
  EXPECT_FALSE(changes(x + "  %q = input f32[%m, %n]\n  %k = input i64[%m, %n]\n  %a, %s, %c = welford %x, %q, %k over "
                           "[1]\n  %y = neg %a\n  output %y\n"));
}

TEST(Rewrites, ALimitMakesThemSmallSteps) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Graph g = random_fusion(seed);
    for (const RewriteRow& row : rewrite_rows()) {
      Graph none = g, all = g, slowly = g;
      EXPECT_FALSE(row.run(none, {.limit = 0}));
      EXPECT_TRUE(testing::identical(none, g));
      row.run(all, {});
      for (int i = 0; i < 1000 && row.run(slowly, {.limit = 1}); ++i) {
      }
      EXPECT_EQ(digest(all), digest(slowly)) << row.name << "\n" << print(g) << print(all) << print(slowly);
    }
  }
}

TEST(Rewrites, KeepTheBitsOfTheCorpus) {
  Counts counts;
  int programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("corpus/programs")) {
    if (entry.path().extension() != ".fir") continue;
    ++programs;
    std::ostringstream source;
    source << std::ifstream(entry.path()).rdbuf();
    const Module m = parse_module(source.str());
    const Graph& g = main_graph(m);
    SCOPED_TRACE(entry.path().string());
    std::vector<Argument> arguments;
    for (const InputSpec& s : find_input_specs(m, g.name, "host")->specs) arguments.push_back(make_argument(s));
    const auto expected = run(g, arguments);
    for (const Step& step : exact_rewrites()) {
      const Graph after = rewritten(g, step, counts);
      expect_same(expected, run(after, arguments));
    }
    expect_same(expected, run(g, arguments, {.steps = exact_rewrites()}));
    // Before the program's own schedule, which finds the values it names or reports them missing.
    const StepList* own = find_steps(m, g.name);
    if (own == nullptr) continue;
    const auto scheduled = run(g, arguments, {.steps = own->steps});
    for (const Step& step : exact_rewrites()) {
      std::vector<Step> steps = {step};
      steps.insert(steps.end(), own->steps.begin(), own->steps.end());
      const auto error = compile_error(g, arguments, {.steps = steps});
      if (error) {
        EXPECT_NE(row_of(error->code).outcome, Outcome::kInternal) << error->what();
        EXPECT_FALSE(error->place.empty());
        continue;
      }
      expect_same(scheduled, run(g, arguments, {.steps = steps}));
    }
  }
  EXPECT_GE(programs, 12);
}

}  // namespace
}  // namespace fusebox
