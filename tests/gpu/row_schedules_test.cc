// Automatic schedules of rows on a GPU: each gives the host executor's bits. They are those whose blocks work together:
// column sums that the last blocks combine, long rows that several blocks share in a cluster or behind a barrier of the
// grid, and losses whose gathers read the input beside its copies.
#include <algorithm>
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "tests/support/gpu_device.h"
#include "tests/support/program_text.h"
#include "tests/support/run_compiled.h"

namespace fusebox {
namespace {

using testing::output_digests;
using testing::program_text;
using testing::replaced;

// The gradients of the weights, and of a bias beside them.
std::string gradients() {
  std::string text = program_text("gradients");
  text.insert(text.find("  output %dx"), "  %dbf = sum %dyf over [0]\n  %db = cast %dbf as bf16\n");
  text.insert(text.rfind('}'), "  output %db\n");
  return text;
}

const std::string kGradients = gradients() + R"(inputs @f host {
  %dy = bf16[ROWS, COLUMNS] integers -2 3 seed 1
  %x = bf16[ROWS, COLUMNS] integers -2 3 seed 2
  %rstd = f32[ROWS] integers -1 2 seed 3
  %w = bf16[COLUMNS] integers -1 2 seed 4
}
)";
const std::string kLoss = program_text("loss") + R"(inputs @f host {
  %x = bf16[ROWS, COLUMNS] normal seed 1
  %label = i64[ROWS] integers 0 COLUMNS seed 2
}
)";
const std::string kSoftmax = program_text("softmax") + R"(inputs @f host {
  %x = f32[ROWS, COLUMNS] normal seed 1
}
)";

// Nothing but casts and products lies between the input and what later passes need of it.
const std::string kNorm = R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %xf = cast %x as f32
  %sq = mul %xf, %xf
  %ss = sum %sq over [1]
  %nf = cast %n as f32
  %ms = truediv %ss, %nf
  %shifted = add %ms, 0.00001_f32
  %r = rsqrt %shifted
  %rb = broadcast %r mask [0, 1]
  %xn = mul %xf, %rb
  %y = cast %xn as bf16
  output %y
}
inputs @f host {
  %x = bf16[ROWS, COLUMNS] normal seed 1
}
)";

// Columns: the reciprocal and the weights are made once for each.
constexpr const char* kColumnNorm = R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %w = input bf16[%n] contiguous
  %f = cast %x as f32
  %s = sum %f over [0]
  %a = mul %s, 0.001_f32
  %ab = broadcast %a mask [1, 0]
  %d = sub %f, %ab
  %q = mul %d, %d
  %t = sum %q over [0]
  %e = add %t, 0.5_f32
  %r = rsqrt %e
  %rb = broadcast %r mask [1, 0]
  %p = mul %d, %rb
  %v = cast %w as f32
  %vb = broadcast %v mask [1, 0]
  %u = mul %p, %vb
  %y = cast %u as bf16
  output %y
}
inputs @f host {
  %x = bf16[ROWS, COLUMNS] normal seed 1
  %w = bf16[COLUMNS] normal seed 2
}
)";

constexpr const char* kSoftmaxOfPairs = R"(fusion @f {
  %m, %k = size
  %x = input f32[%m, %k, 2] contiguous
  %mx = max %x over [1]
  %mb = broadcast %mx mask [0, 1, 0]
  %d = sub %x, %mb
  %e = exp %d
  %s = sum %e over [1]
  %sb = broadcast %s mask [0, 1, 0]
  %p = truediv %e, %sb
  output %p
}
inputs @f host {
  %x = f32[ROWS, COLUMNS, 2] normal seed 1
}
)";

// Each row, and each part of PART elements of it.
constexpr const char* kScaledParts = R"(fusion @f {
  %m, %k = size
  %x = input bf16[%m, %k, PART] contiguous
  %f = cast %x as f32
  %q = mul %f, %f
  %s = sum %q over [1, 2]
  %e = add %s, 0.5_f32
  %r = rsqrt %e
  %rb = broadcast %r mask [0, 1, 1]
  %y = mul %f, %rb
  %a = abs %y
  %l = max %a over [2]
  %c = maximum %l, 0.001_f32
  %cb = broadcast %c mask [0, 0, 1]
  %z = truediv %y, %cb
  %o = cast %z as f8e4m3
  output %o
  output %c
  output %r
}
inputs @f host {
  %x = bf16[ROWS, COLUMNS, PART] normal seed 1
}
)";

constexpr const char* kWindows = R"(fusion @f {
  %m, %k = size
  %x = input bf16[%m, 2, %k, 2] contiguous
  %f = cast %x as f32
  %s = sum %f over [1, 3]
  %y = mul %s, 0.25_f32
  output %y
}
inputs @f host {
  %x = bf16[ROWS, 2, COLUMNS, 2] normal seed 1
}
)";

// Between views of what is in memory: groups of channels, whose size is a quotient, and halves of rows.
constexpr const char* kGroupsOfChannels = R"(fusion @f {
  %n, %p, %c, %d = size
  %x = input bf16[%n, %p, %c] contiguous
  %w = input bf16[%d] contiguous
  %g = floor_div %c, 8
  %f = cast %x as f32
  %r = reshape %f to [%n, %p, 8, %g]
  %s = sum %r over [1, 3]
  %a = mul %s, 0.001_f32
  %ab = broadcast %a mask [0, 1, 0, 1]
  %z = sub %r, %ab
  %t = reshape %z to [%n, %p, %c]
  %wf = cast %w as f32
  %wb = broadcast %wf mask [1, 1, 0]
  %u = mul %t, %wb
  %y = cast %u as bf16
  output %y
}
inputs @f host {
  %x = bf16[64, ROWS, COLUMNS] normal seed 1
  %w = bf16[COLUMNS] normal seed 2
}
)";
constexpr const char* kScaledHalves = R"(fusion @f {
  %m, %n = size
  %h = floor_div %n, 2
  %b = floor_div %h, 128
  %x = input bf16[%m, %n] contiguous
  %x1 = slice %x from [0, 0] to [%m, %h] by [1, 1]
  %x2 = slice %x from [0, %h] to [%m, %n] by [1, 1]
  %f1 = cast %x1 as f32
  %f2 = cast %x2 as f32
  %p = mul %f1, %f2
  %r = reshape %p to [%m, %b, 128]
  %a = abs %r
  %l = max %a over [2]
  %c = maximum %l, 0.001_f32
  %cb = broadcast %c mask [0, 0, 1]
  %z = truediv %r, %cb
  %o = cast %z as f8e4m3
  %y = reshape %o to [%m, %h]
  output %y
  output %c
}
inputs @f host {
  %x = bf16[ROWS, COLUMNS] normal seed 1
}
)";

// A tensor plus the transpose of another, of which a short axis lies innermost.
std::string plus_transposed(const char* dtype) { return replaced(program_text("plus_transposed"), "TYPE", dtype); }

// Reductions that are stored alone, of a bf16 matrix over `axes`: a sum; two sums that meet; and moments.
std::string reduced(const char* axes, const char* ops) {
  return std::string("fusion @f {\n  %m, %n = size\n  %x = input bf16[%m, %n] contiguous\n  %f = cast %x as f32\n") +
         replaced(ops, "AXES", axes) + "}\ninputs @f host {\n  %x = bf16[ROWS, COLUMNS] normal seed 1\n}\n";
}
constexpr const char* kOneSum = "  %s = sum %f over AXES\n  output %s\n";
constexpr const char* kTwoSums =
    "  %s = sum %f over AXES\n  %q = mul %f, %f\n  %t = sum %q over AXES\n  %p = mul %s, %s\n  %y = sub %t, %p\n  "
    "output %y\n";
constexpr const char* kMoments = "  %a, %v, %k = welford %f over AXES\n  output %a\n  output %v\n";

struct Case {
  const char* name;
  std::string program;
  int64_t rows, columns;
  const char* choice;  // that the heuristics must name
};

class RowSchedules : public ::testing::TestWithParam<Case> {};

TEST_P(RowSchedules, GiveTheBitsOfTheHostExecutor) {
  const Case& c = GetParam();
  const Module m = parse_module(replaced(replaced(c.program, "ROWS", c.rows), "COLUMNS", c.columns));
  std::vector<Argument> inputs;
  for (const InputSpec& s : m.input_specs[0].specs) inputs.push_back(make_argument(s));
  const std::vector<BoundInput> bound = bound_inputs(inputs);
  const Graph& g = m.graphs[0];
  const Compiled compiled = compile(g, bind_sizes(g, bound), {.device = default_device(), .inputs = bound});
  const auto& decisions = compiled.automatic->decisions;
  const auto is_kernel = [](const Decision& d) { return d.heuristics.scheduler != "view"; };
  ASSERT_EQ(std::ranges::count_if(decisions, is_kernel), 1) << print_steps(compiled.automatic->steps);
  const std::string choices = text(std::ranges::find_if(decisions, is_kernel)->heuristics);
  EXPECT_NE(choices.find(c.choice), std::string::npos) << choices;
  const auto gpu = testing::gpu_or_null();
  if (!gpu) GTEST_SKIP() << "no GPU";
  const auto host = make_host_device();
  EXPECT_EQ(output_digests(compiled, *host, inputs), output_digests(compiled, *gpu, inputs)) << choices;
}

INSTANTIATE_TEST_SUITE_P(
    All, RowSchedules,
    ::testing::Values(
        Case{"gradients", kGradients, 1031, 520, "inner_outer"},
        Case{"gradients_odd", kGradients, 300, 2051, "inner_outer"},
        Case{"gradients_short", kGradients, 4099, 32, "inner_outer"},
        Case{"gradients_of_one_column", kGradients, 700, 1, "inner_outer"},
        Case{"loss", kLoss, 129, 4096, "form registers"}, Case{"loss_long", kLoss, 70, 50304, "slices 1 "},
        Case{"loss_of_one_row", kLoss, 1, 88512, "cluster 8"}, Case{"loss_of_three_rows", kLoss, 3, 70001, "cluster 8"},
        Case{"softmax_of_two_rows", kSoftmax, 2, 40000, "cluster 8"},
        Case{"softmax_of_many_long_rows", kSoftmax, 264, 40000, "cluster 8"},
        Case{"norm_of_many_rows", kNorm, 264, 24576, "blocks 2 longest 24576 least 20481 keep"},
        Case{"norm_of_many_long_rows", kNorm, 264, 73736, "cluster 8 keep inputs"},
        Case{"softmax_of_many_rows", kSoftmax, 200, 40001, "cluster 4"},
        Case{"columns_of_kept_inputs", kColumnNorm, 128, 65536, "keep inputs"},
        Case{"columns_of_clusters", kColumnNorm, 7007, 1584, "cluster 8 keep inputs"},
        Case{"columns_of_f32", kColumnNorm, 300, 4096, "blocks 6"},
        Case{"pairs", kSoftmaxOfPairs, 10001, 16, "places lanes"},
        Case{"pairs_of_odd_places", kSoftmaxOfPairs, 3000, 37, "places lanes"},
        Case{"parts", replaced(kScaledParts, "PART", 128), 300, 33, "nested"},
        Case{"parts_in_part_of_their_lanes", replaced(kScaledParts, "PART", 24), 200, 7, "tail 1"},
        Case{"parts_of_long_rows", replaced(kScaledParts, "PART", 32), 150, 500, "warps 32"},
        Case{"windows", kWindows, 3001, 56, "lanes 1 "},
        Case{"groups_of_channels", kGroupsOfChannels, 100, 80, "vector 2"},
        Case{"groups_of_more_channels", kGroupsOfChannels, 70, 128, "vector 8"},
        Case{"scaled_halves", kScaledHalves, 300, 1536, "vector 8"},
        Case{"plus_transposed", plus_transposed("f32"), 12, 20000, "unroll 12 outer 1 reuse 1 walk"},
        Case{"plus_transposed_halves", plus_transposed("bf16"), 13, 40002, "walk i0 %a_in 2"},
        Case{"plus_transposed_of_two", plus_transposed("f64"), 2, 17001, "unroll 2 outer 1 reuse 1 walk"},
        Case{"sums_of_columns", reduced("[0]", kOneSum), 2846, 91, "lanes 8 warps 32 unroll 16 rows 1 slices 8"},
        Case{"sums_of_wide_columns", reduced("[0]", kOneSum), 1201, 3000, "slices 4 threads 256 blocks 1 cluster 4"},
        Case{"sums_of_columns_meet", reduced("[0]", kTwoSums), 3001, 96, "cluster 8"},
        Case{"moments_of_columns", reduced("[0]", kMoments), 5003, 130, "cluster 8"},
        Case{"sums_of_few_rows", reduced("[1]", kOneSum), 30, 70001, "cluster 4"},
        Case{"sums_of_rows_meet", reduced("[1]", kTwoSums), 9, 100000, "cluster 8"},
        Case{"moments_of_few_rows", reduced("[1]", kMoments), 63, 98312, "cluster 2"},
        Case{"sum_of_all", reduced("[0, 1]", kOneSum), 300, 1001, "cluster 8"},
        Case{"loss_of_one_longer_row", kLoss, 1, 300001, "most_rows 1"},
        Case{"softmax_of_two_longer_rows", kSoftmax, 2, 300000, "most_rows 2"}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace fusebox
