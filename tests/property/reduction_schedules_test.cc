// The law of the schedulers of reductions: they take random fusions with reductions, and the kernels run on the host
// executor without a finding. The results have the bits of the unfused plan where all arithmetic is exact, and lie
// within the bounds of the reference otherwise.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/run.h"
#include "tests/support/program_text.h"
#include "tests/support/reduction_fusions.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

using testing::replaced;
using testing::setting;

RunOptions automatic() {
  RunOptions options;
  options.device = default_device();
  options.keep_sources = false;
  return options;
}

std::string reasons(const Compiled& c) {
  std::string text;
  if (!c.automatic) return text;
  for (const Decision& d : c.automatic->decisions) text += "taken: " + fusebox::text(d.heuristics) + "\n";
  for (const Decision& d : c.automatic->decisions)
    for (const Declined& no : d.declined) text += no.scheduler + ": " + no.why + "\n";
  return text;
}

bool is_in_two_passes(const fusebox::Run& run) {
  return print_steps(run.steps).find("two_pass_moments") != std::string::npos;
}

// The automatic schedule of a whole fusion, as a scheduler makes it. Empty: none takes it.
std::string scheduler_of(const Compiled& c) {
  if (!c.automatic || c.automatic->decisions.size() != 1) return {};
  return c.automatic->decisions[0].heuristics.scheduler;
}

// The automatic schedules of random fusions for a device of which small rows ask as much as long ones of a real one. Each
// must be right by the reference. Counts the schedules whose choices have each of the words.
std::vector<int> right_with(const RunOptions& options, const std::vector<std::string>& words) {
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1), count = setting("FUSEBOX_SCHEDULES", 2000);
  std::vector<int> found(words.size());
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const testing::ReductionCase c = testing::make_reduction_case(seed);
    const auto is_long = [](const InputSpec& s) { return !s.shape.empty() && s.shape.back() > 100; };
    if (std::ranges::none_of(c.module.input_specs[0].specs, is_long)) continue;
    std::vector<Argument> inputs;
    for (const InputSpec& s : c.module.input_specs[0].specs) inputs.push_back(make_argument(s));
    const fusebox::Run run = run_program(c.module, inputs, options);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(c.module) + print_steps(run.steps) +
                 reasons(run.compiled));
    EXPECT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
    if (run.failure) return found;
    bool has_any = false;
    for (size_t i = 0; i < words.size(); ++i)
      if (reasons(run.compiled).find(words[i]) != std::string::npos) has_any = ++found[i] > 0;
    if (!has_any) continue;
    for (const CheckedOutput& out : check_outputs(run, inputs))
      EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
    if (::testing::Test::HasFailure()) return found;
  }
  for (size_t i = 0; i < words.size(); ++i) std::printf("  %d with %s\n", found[i], words[i].c_str());
  return found;
}

// Blocks of one warp with few registers: rows of a few hundred elements are shared by clusters.
TEST(ReductionSchedules, GiveWhatTheReferenceGivesInClusters) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  RunOptions options = automatic();
  options.device->block_threads = 32;
  options.device->registers = 32 * 41;
  options.device->multiprocessors = 4096;  // so rows are few
  const auto found = right_with(options, {" cluster 8"});
  if (setting("FUSEBOX_SCHEDULES", 2000) < 2000) return;
  EXPECT_GE(found[0], 60);
}

// One multiprocessor, which rows fill, with registers for one block of a warp or for two.
TEST(ReductionSchedules, GiveWhatTheReferenceGivesForManyLongRows) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  RunOptions options = automatic();
  options.device->block_threads = 32;
  options.device->multiprocessors = 1;
  int in_clusters = 0, kept = 0;
  for (const int registers : {1600, 3200}) {
    options.device->registers = registers;
    const auto found = right_with(options, {" cluster ", " keep inputs"});
    in_clusters += found[0];
    kept += found[1];
  }
  if (setting("FUSEBOX_SCHEDULES", 2000) < 2000) return;
  EXPECT_GE(in_clusters, 30);
  EXPECT_GE(kept, 15);
}

// Reductions that are stored alone, over the rows or the columns of a matrix, of sizes by which clusters share them on the
// GPU that plans are made for. Part of the blocks of a cluster, of their threads and of their vectors have nothing.
TEST(ReductionSchedules, ReductionsThatClustersShare) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  constexpr const char* kOps[] = {
      "  %s = sum %x over AXES\n  output %s\n",
      "  %s = max %x over AXES\n  %t = sum %x over AXES\n  %y = sub %s, %t\n  output %y\n",
      "  %a, %v, %k = welford %x over AXES\n  output %v\n  output %a\n",
      "  %q = mul %x, %x\n  %s = sum %q over AXES\n  %t = sum %x over AXES\n  output %s\n  output %t\n",
      "  %w = input TYPE[KEPT] contiguous\n  %s = sum %x over AXES\n  %y = add %s, %w\n  output %y alias %w\n"};
  std::map<int, int> in_clusters;  // by axis
  for (const char* ops : kOps)
    for (const Dtype dtype : {Dtype::kFloat, Dtype::kDouble})
      for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{700, 91},
                                                                         {1025, 8},
                                                                         {2846, 40},
                                                                         {3001, 132},
                                                                         {5000, 17},
                                                                         {1, 9001},
                                                                         {3, 33004},
                                                                         {30, 8197},
                                                                         {70, 8200}}) {
        const int axis = m > n ? 0 : 1;
        std::string program =
            std::string("fusion @f {\n  %m, %n = size\n  %x = input TYPE[%m, %n] contiguous\n") + ops + "}\n";
        program =
            replaced(replaced(program, "AXES", "[" + std::to_string(axis) + "]"), "KEPT", axis == 0 ? "%n" : "%m");
        const Module module = parse_module(replaced(program, "TYPE", std::string(text(dtype))));
        std::vector<Argument> inputs;
        for (const ValueId v : fusebox::inputs(module.graphs[0])) {
          if (!module.graphs[0].is_tensor(v)) continue;
          InputSpec spec;
          spec.dtype = dtype;
          spec.shape = inputs.empty() ? std::vector<int64_t>{m, n} : std::vector<int64_t>{axis == 0 ? n : m};
          spec.seed = inputs.size() + 1;
          inputs.push_back(make_argument(spec));
        }
        const fusebox::Run run = run_program(module, inputs, automatic());
        SCOPED_TRACE(print(module) + print_steps(run.steps) + reasons(run.compiled));
        ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
        if (reasons(run.compiled).find(" form passes") != std::string::npos)
          in_clusters[axis] += reasons(run.compiled).find(" cluster ") != std::string::npos;
        for (const CheckedOutput& out : check_outputs(run, inputs))
          EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
      }
  std::printf("  %d of columns and %d of rows in clusters\n", in_clusters[0], in_clusters[1]);
  EXPECT_GE(in_clusters[0], 30);
  EXPECT_GE(in_clusters[1], 15);
}

// Batch norm in clusters, where channels are few and where they fill the GPU: one thread of each cluster reads and stores
// the running statistics. Extents that are no multiple of a vector, of a strip or of the parts of a cluster.
TEST(ReductionSchedules, BatchNormInClusters) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  Module m = parse_module(testing::file_text("corpus/programs/welford_batch_norm.fir"));
  m.step_lists.clear();
  int in_clusters = 0, in_two_passes = 0;
  for (const int multiprocessors : {4096, 1})
    for (const auto& shape : std::vector<std::vector<int64_t>>{
             {3, 5, 212}, {1, 1, 512}, {2, 3, 501}, {5, 2, 130}, {7, 9, 92}, {301, 2, 4}, {1, 5, 1023}, {3, 1, 340}}) {
      RunOptions options = automatic();
      options.device->block_threads = 32;
      options.device->registers = 32 * 84;
      options.device->multiprocessors = multiprocessors;
      std::vector<Argument> inputs;
      for (InputSpec s : find_input_specs(m, "welford_batch_norm", "host")->specs) {
        if (s.shape.size() == 3) s.shape = shape;
        if (s.shape.size() == 1) s.shape = {shape[1]};
        inputs.push_back(make_argument(s));
      }
      const fusebox::Run run = run_program(m, inputs, options);
      SCOPED_TRACE(print_steps(run.steps) + reasons(run.compiled));
      ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
      const bool is_whole = scheduler_of(run.compiled) == "persistent";
      if (is_whole && reasons(run.compiled).find(" cluster 8") != std::string::npos) ++in_clusters;
      if (is_in_two_passes(run)) ++in_two_passes;
      for (const CheckedOutput& out : check_outputs(run, inputs))
        EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
    }
  EXPECT_GE(in_clusters, 10);
  EXPECT_GE(in_two_passes, 10);
}

// Columns in the registers of several blocks of a multiprocessor, which keep what they load and make it again in each pass.
// What has an element for each column is made once by a thread.
TEST(ReductionSchedules, ColumnsOfKeptInputs) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  const std::string normalized =
      "  %f = cast %x as f32\n  %s = sum %f over [0]\n  %sb = broadcast %s mask KEPT\n  %d = sub %f, %sb\n"
      "  %q = mul %d, %d\n  %t = sum %q over [0]\n  %e = add %t, 0.5\n  %r = rsqrt %e\n"
      "  %rb = broadcast %r mask KEPT\n  %n = mul %d, %rb\n";
  struct Program {
    std::string head, tail, mask;
    size_t kept;           // axes
    bool is_of_last_axis;  // the weight
  };
  const Program programs[] = {
      {"  %m, %c = size\n  %x = input TYPE[%m, %c] contiguous\n  %w = input TYPE[%c] contiguous\n",
       "  %v = cast %w as f32\n  %vb = broadcast %v mask KEPT\n  %y = mul %n, %vb\n  %o = cast %y as TYPE\n  output "
       "%o\n",
       "[1, 0]", 1, false},
      {"  %m, %a, %c = size\n  %x = input TYPE[%m, %a, %c] contiguous\n  %w = input TYPE[%a, %c] contiguous\n",
       "  %v = cast %w as f32\n  %g = sigmoid %v\n  %vb = broadcast %g mask KEPT\n  %y = mul %n, %vb\n"
       "  %o = cast %y as TYPE\n  output %o\n  output %r\n",
       "[1, 0, 0]", 2, false},
      {"  %m, %a, %c = size\n  %x = input TYPE[%m, %a, %c] contiguous\n  %w = input TYPE[%c] contiguous\n",
       "  %v = cast %w as f32\n  %g = sqrt %v\n  %vb = broadcast %g mask [1, 1, 0]\n  %y = add %n, %vb\n  output %y\n",
       "[1, 0, 0]", 2, true}};
  int kept = 0, made_once = 0;
  for (const Program& p : programs)
    for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kHalf, Dtype::kFloat})
      for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{
               {40, 96}, {63, 64}, {130, 40}, {7, 264}, {300, 24}, {513, 8}, {33, 65}, {1, 500}, {520, 72}}) {
        const std::string program = replaced("fusion @f {\n" + p.head + normalized + p.tail + "}\n", "KEPT", p.mask);
        const Module module = parse_module(replaced(program, "TYPE", std::string(text(dtype))));
        const std::vector<int64_t> columns = p.kept == 1 ? std::vector<int64_t>{n} : std::vector<int64_t>{3, n};
        std::vector<int64_t> rows = columns;
        rows.insert(rows.begin(), m);
        RunOptions options = automatic();
        options.device->multiprocessors = 1;
        options.device->registers = 8192;
        std::vector<Argument> inputs;
        uint64_t seed = 0;
        for (const std::vector<int64_t>& shape : {rows, p.is_of_last_axis ? std::vector<int64_t>{n} : columns}) {
          InputSpec spec;
          spec.dtype = dtype;
          spec.shape = shape;
          spec.seed = ++seed;
          inputs.push_back(make_argument(spec));
        }
        const fusebox::Run run = run_program(module, inputs, options);
        const std::string steps = print_steps(run.steps);
        SCOPED_TRACE(print(module) + steps + reasons(run.compiled));
        ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
        kept += reasons(run.compiled).find(" keep inputs") != std::string::npos;
        made_once += steps.find("inline_at") != std::string::npos;
        for (const CheckedOutput& out : check_outputs(run, inputs))
          EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
      }
  std::printf("  %d keep inputs, %d make what is of columns once\n", kept, made_once);
  EXPECT_GE(kept, 20);
  EXPECT_GE(made_once, 20);
}

// Columns of few places, of which few lie side by side: neighbouring threads take neighbouring places.
TEST(ReductionSchedules, LanesOfPlaces) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  const std::string softmax =
      "  %mx = max %x over [OVER]\n  %mb = broadcast %mx mask MASK\n  %d = sub %x, %mb\n  %e = exp %d\n"
      "  %s = sum %e over [OVER]\n  %sb = broadcast %s mask MASK\n  %o = truediv %e, %sb\n  output %o\n}\n";
  struct Axes {
    std::string head, over, mask;
    size_t rank;
  };
  const Axes axes[] = {
      {"  %a, %p, %c = size\n  %x = input TYPE[%a, %p, %c] contiguous\n", "1", "[0, 1, 0]", 3},
      {"  %a, %p, %q, %c = size\n  %x = input TYPE[%a, %p, %q, %c] contiguous\n", "1, 2", "[0, 1, 1, 0]", 4},
      {"  %a, %p, %c, %h = size\n  %x = input TYPE[%a, %p, %c, %h] contiguous\n", "1", "[0, 1, 0, 0]", 4}};
  int found = 0;
  for (const Axes& of : axes)
    for (const Dtype dtype : {Dtype::kFloat, Dtype::kHalf, Dtype::kDouble})
      for (const auto& shape : std::vector<std::vector<int64_t>>{
               {70, 16, 2}, {33, 8, 1}, {50, 9, 3}, {129, 64, 2}, {40, 33, 4}, {21, 63, 7}, {300, 10, 2}, {5, 32, 5}}) {
        const std::string program =
            replaced(replaced("fusion @f {\n" + of.head + softmax, "OVER", of.over), "MASK", of.mask);
        const Module module = parse_module(replaced(program, "TYPE", std::string(text(dtype))));
        InputSpec spec;
        spec.dtype = dtype;
        spec.shape = shape;
        if (of.rank == 4) spec.shape.insert(spec.shape.begin() + 2, 2);
        spec.seed = 1;
        const std::vector<Argument> inputs = {make_argument(spec)};
        RunOptions options = automatic();
        options.device->multiprocessors = 2;
        const fusebox::Run run = run_program(module, inputs, options);
        SCOPED_TRACE(print(module) + print_steps(run.steps) + reasons(run.compiled));
        ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
        found += reasons(run.compiled).find(" places lanes") != std::string::npos;
        for (const CheckedOutput& out : check_outputs(run, inputs))
          EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
      }
  std::printf("  %d with lanes of places\n", found);
  EXPECT_GE(found, 30);
}

// Gradients with sums of columns in two stages: few blocks, so that each takes several groups of rows, and more groups than
// blocks. One kernel with a barrier of the grid.
TEST(ReductionSchedules, ColumnsInParts) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  const std::string rows =
      "  %wb = broadcast %w mask [1, 0]\n  %g = mul %dy, %wb\n  %p = mul %g, %x\n  %s = sum %p over [1]\n"
      "  %sb = broadcast %s mask [0, 1]\n  %c = mul %x, %sb\n  %dx = sub %g, %c\n  %e = mul %dy, %x\n";
  const std::string columns[] = {
      "  %dw = sum %e over [0]\n  output %dx\n  output %dw\n",
      "  %dwf = sum %e over [0]\n  %dw = mul %dwf, 0.5\n  %db = sum %dy over [0]\n  output %dx\n  output %dw\n  output "
      "%db\n",
      // A sum that is read twice and is an output itself, and a maximum.
      "  %dw = sum %e over [0]\n  %a = abs %dw\n  %b = neg %dw\n  %most = max %dy over [0]\n  output %a\n  output %dx\n"
      "  output %dw\n  output %b\n  output %most\n",
      // What two sums make, and what is made of a sum and another tensor, has the older form.
      "  %dwf = sum %e over [0]\n  %dw = mul %dwf, %w\n  output %dx\n  output %dw\n",
      "  %dw = sum %e over [0]\n  %db = sum %dy over [0]\n  %a = add %dw, %db\n  output %dx\n  output %a\n",
  };
  int in_parts = 0, others = 0;
  for (const char* dtype : {"f32", "f64"})
    for (const std::string& made : columns)
      for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{
               {64, 40}, {65, 33}, {127, 8}, {97, 1}, {71, 129}, {600, 1030}, {257, 1201}, {70, 1100}}) {
        const std::string t = dtype;
        const Module module =
            parse_module("fusion @f {\n  %m, %n = size\n  %dy = input " + t + "[%m, %n] contiguous\n  %x = input " + t +
                         "[%m, %n] contiguous\n  %w = input " + t + "[%n] contiguous\n" + rows + made + "}\n");
        RunOptions options = automatic();
        options.device->multiprocessors = n > 1000 ? 2 : 16;  // so that a block has one row at a time
        std::vector<Argument> inputs;
        uint64_t seed = 0;
        for (const std::vector<int64_t>& shape : {std::vector<int64_t>{m, n}, {m, n}, {n}}) {
          InputSpec spec;
          spec.dtype = t == "f32" ? Dtype::kFloat : Dtype::kDouble;
          spec.shape = shape;
          spec.seed = ++seed;
          inputs.push_back(make_argument(spec));
        }
        const fusebox::Run run = run_program(module, inputs, options);
        SCOPED_TRACE(print(module) + print_steps(run.steps) + reasons(run.compiled));
        ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
        if (scheduler_of(run.compiled) == "inner_outer")
          ++(reasons(run.compiled).find(" walkers ") != std::string::npos ? in_parts : others);
        for (const CheckedOutput& out : check_outputs(run, inputs))
          EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
      }
  std::printf("  %d in parts, %d in the older form\n", in_parts, others);
  EXPECT_GE(in_parts, 20);
  EXPECT_GE(others, 4);
}

// Rows with parts that are reduced too: parts that fill the lanes that take them or not, rows of one part and of many, in blocks of
// one warp and of more.
TEST(ReductionSchedules, Parts) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  const std::string head =
      "fusion @f {\n  %m, %n = size\n  %x = input TYPE[%m, %n, PART] contiguous\n  %f = cast %x as f32\n";
  const std::string bodies[] = {
      // Scales of blocks behind a norm.
      "  %q = mul %f, %f\n  %s = sum %q over [1, 2]\n  %e = add %s, 0.5\n  %r = rsqrt %e\n"
      "  %rb = broadcast %r mask [0, 1, 1]\n  %y = mul %f, %rb\n  %a = abs %y\n  %k = max %a over [2]\n"
      "  %l = maximum %k, 1e-6\n  %lb = broadcast %l mask [0, 0, 1]\n  %z = truediv %y, %lb\n  %o = cast %z as TYPE\n"
      "  output %o\n  output %l\n",
      // The parts come first, and two reductions of each; a full output on the side.
      "  %a = sum %f over [2]\n  %b = max %f over [2]\n  %ab = broadcast %a mask [0, 0, 1]\n  %d = sub %f, %ab\n"
      "  %s = max %d over [1, 2]\n  %sb = broadcast %s mask [0, 1, 1]\n  %z = mul %d, %sb\n  %g = neg %f\n"
      "  output %z\n  output %g\n  output %b\n  output %s\n",
      // A sum of the parts' results, and small outputs alone.
      "  %a = sum %f over [2]\n  %s = sum %f over [1, 2]\n  %sb = broadcast %s mask [0, 1]\n  %p = mul %a, %sb\n"
      "  output %p\n",
  };
  int found = 0, tails = 0, several = 0;
  for (const std::string& body : bodies)
    for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat, Dtype::kDouble})
      for (const int64_t part : {2, 7, 8, 24, 32, 96, 128, 200})
        for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{5, 1}, {3, 4}, {2, 33}, {1, 70}}) {
          const std::string program =
              replaced(replaced(head + body + "}\n", "PART", std::to_string(part)), "TYPE", std::string(text(dtype)));
          const Module module = parse_module(program);
          RunOptions options = automatic();
          if (n % 2 == 0) options.device->block_threads = 256;
          InputSpec spec;
          spec.dtype = dtype;
          spec.shape = {m, n, part};
          spec.seed = 1;
          const std::vector<Argument> inputs = {make_argument(spec)};
          const fusebox::Run run = run_program(module, inputs, options);
          const std::string why = reasons(run.compiled);
          SCOPED_TRACE(print(module) + print_steps(run.steps) + why);
          ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
          if (scheduler_of(run.compiled) == "nested") {
            ++found;
            tails += why.find(" tail 1") != std::string::npos;
            several += why.find(" chunks 1 ") == std::string::npos;
          }
          for (const CheckedOutput& out : check_outputs(run, inputs))
            EXPECT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
        }
  std::printf("  %d with parts, %d with lanes without elements, %d of several chunks\n", found, tails, several);
  EXPECT_GE(found, 150);
  EXPECT_GE(tails, 20);
  EXPECT_GE(several, 10);
}

// The bits of the elements. A minimum of both zeros is either.
std::vector<uint64_t> without_zero_signs(const TensorData& t) {
  std::vector<uint64_t> result;
  const uint64_t negative_zero = uint64_t{1} << (8 * size_bytes(t.dtype) - 1);
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = load_element(t, position + i * stride).low;
      result.push_back(is_floating(t.dtype) && bits == negative_zero ? 0 : bits);
    }
  });
  return result;
}

TEST(ReductionSchedules, GiveWhatTheUnfusedPlanGives) {
  const bool has_reference = find_aten() != nullptr;
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1), count = setting("FUSEBOX_SCHEDULES", 2000);
  std::map<std::string, int> taken;
  int exact = 0, compared = 0, in_two_passes = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const testing::ReductionCase c = testing::make_reduction_case(seed);
    std::vector<Argument> inputs;
    for (const InputSpec& s : c.module.input_specs[0].specs) inputs.push_back(make_argument(s));
    const fusebox::Run run = run_program(c.module, inputs, automatic());
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(c.module) + print_steps(run.steps) +
                 reasons(run.compiled));
    ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
    const std::string scheduler = scheduler_of(run.compiled);
    ++taken[scheduler.empty() ? "none" : scheduler];
    if (scheduler.empty()) continue;
    // The distances from a mean are one more tensor with the reduced axes.
    if (is_in_two_passes(run)) {
      ++in_two_passes;
    } else if (scheduler == "reduction" || scheduler == "persistent") {
      ASSERT_EQ(scheduler == "persistent", c.feeds_back);
    }
    if (has_reference) {
      for (const CheckedOutput& out : check_outputs(run, inputs))
        ASSERT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
      ++compared;
    }
    if (!c.is_exact) continue;
    RunOptions unfused;
    unfused.unfused = true;
    unfused.keep_sources = false;
    const fusebox::Run expected = run_program(c.module, inputs, unfused);
    ASSERT_FALSE(expected.failure);
    ASSERT_EQ(expected.outputs.size(), run.outputs.size());
    for (size_t i = 0; i < run.outputs.size(); ++i)
      ASSERT_EQ(without_zero_signs(run.outputs[i].value.tensor), without_zero_signs(expected.outputs[i].value.tensor))
          << run.outputs[i].name;
    ++exact;
  }
  for (const auto& [name, n] : taken) std::printf("  %s: %d\n", name.c_str(), n);
  std::printf("  %d exact, %d compared with the reference, %d in two passes\n", exact, compared, in_two_passes);
  if (count < 2000) return;
  EXPECT_GE(taken["reduction"], 500);
  EXPECT_GE(taken["persistent"], 450);
  EXPECT_GE(taken["inner_outer"], 10);
  EXPECT_GE(exact, 500);
  EXPECT_GE(in_two_passes, 50);
}

}  // namespace
}  // namespace fusebox
