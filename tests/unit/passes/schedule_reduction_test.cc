// The schedulers of reductions: which fusions they take, and what they choose.
#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "passes/plan/plan_stages.h"
#include "tests/support/automatic.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

using testing::program_text;

using Shapes = std::vector<std::vector<int64_t>>;

// The schedulers' view of a program whose tensor inputs have these shapes.
struct View {
  Graph fusion;
  SizeClasses sizes;
  MemoryClasses memory;
  ScheduleView view() const { return {fusion, sizes, memory, default_device()}; }
};

View view_of(std::string_view program, const Shapes& shapes) {
  View v;
  v.fusion = canonical_order(parse_module(program).graphs[0]);
  std::vector<BoundInput> inputs;
  for (const auto& shape : shapes) inputs.push_back({.shape = shape});
  v.sizes = SizeClasses(v.fusion, bind_sizes(v.fusion, inputs));
  return v;
}

// The choices of a scheduler, or the reason why it declines.
std::string ask(std::string_view scheduler, std::string_view program, const Shapes& shapes) {
  const View v = view_of(program, shapes);
  const Scheduler& s = *find_scheduler(scheduler);
  if (const auto why = s.declines(v.view())) return "declines: " + *why;
  return text(s.choose(v.view()));
}

std::string steps_of(std::string_view scheduler, std::string_view program, const Shapes& shapes) {
  const View v = view_of(program, shapes);
  const Scheduler& s = *find_scheduler(scheduler);
  return print_steps(s.plan(v.view(), s.choose(v.view())));
}

std::string sum_over(const std::string& axes) {
  return "fusion @f {\n  %m, %n = size\n  %x = input bf16[%m, %n] contiguous\n  %xf = cast %x as f32\n  %y = sum %xf "
         "over " +
         axes + "\n  output %y\n}\n";
}
const std::string kRowSum = sum_over("[1]");
const std::string kColumnSum = sum_over("[0]");
const std::string kTotalSum = sum_over("[0, 1]");
const std::string kSoftmax = program_text("softmax_bf16");

TEST(ReductionScheduler, ChoosesBySize) {
  EXPECT_EQ(ask("reduction", kRowSum, {{16384, 4096}}),
            "reduction axes inner form passes vector 8 in_vectors x merge last lanes 128 warps 1 unroll 4 rows 4 "
            "slices 1 threads 512 blocks 2");
  // Few long rows: several blocks share one.
  EXPECT_EQ(ask("reduction", kRowSum, {{8, 1 << 20}}),
            "reduction axes inner form passes vector 8 in_vectors x merge last lanes 256 warps 1 unroll 4 rows 1 "
            "slices 66 threads 256 blocks 4");
  // An odd number of columns: no vectors.
  EXPECT_EQ(ask("reduction", kRowSum, {{16384, 4099}}),
            "reduction axes inner form passes vector 1 in_vectors , merge last lanes 256 warps 1 unroll 4 rows 2 "
            "slices 1 threads 512 blocks 2");
  EXPECT_EQ(ask("reduction", kColumnSum, {{16384, 4096}}),
            "reduction axes outer form passes vector 4 in_vectors x merge last lanes 16 warps 8 unroll 4 rows 1 slices "
            "24 threads 128 blocks 1");
  // Single bf16 numbers: sixteen of a thread are under way, which takes the registers that two blocks leave it.
  EXPECT_EQ(
      ask("reduction", kColumnSum, {{768, 106977}}),
      "reduction axes outer form passes vector 1 in_vectors , merge last lanes 64 warps 8 unroll 16 rows 1 slices "
      "1 threads 512 blocks 2");
  EXPECT_EQ(ask("reduction", kColumnSum, {{128, 70767}}),
            "reduction axes outer form passes vector 1 in_vectors , merge last lanes 64 warps 4 unroll 8 rows 1 slices "
            "1 threads 256 blocks 4");
  EXPECT_EQ(ask("reduction", kTotalSum, {{16384, 4096}}),
            "reduction axes inner form passes vector 8 in_vectors x merge first lanes 256 warps 1 unroll 4 rows 1 "
            "slices 528 threads 256 blocks 4");
}

// Short columns in blocks of more than a wave: smaller blocks begin sooner.
TEST(ReductionScheduler, ShortColumnsOfManyWavesHaveSmallBlocks) {
  const std::string in_f32 = testing::replaced(kColumnSum, "bf16", "f32");
  EXPECT_NE(ask("reduction", in_f32, {{40, 120000}}).find("lanes 16 warps 8 "), std::string::npos);
  EXPECT_NE(ask("reduction", in_f32, {{40, 8000}}).find("warps 16 "), std::string::npos)
      << ask("reduction", in_f32, {{40, 8000}});
}

// All rows of moments are on the GPU at once, if warps are few enough.
TEST(ReductionScheduler, MomentsOfAllRowsRunAtOnce) {
  const std::string moments =
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n] contiguous\n"
      "  %mean, %m2, %count = welford %x over [1]\n  output %mean\n  output %m2\n}\n";
  const auto lanes = [&](int64_t rows) {
    const std::string choices = ask("reduction", moments, {{rows, 17480}});
    return choices.substr(choices.find("lanes "), choices.find(" warps") - choices.find("lanes "));
  };
  EXPECT_EQ(lanes(400), "lanes 256");
  EXPECT_EQ(lanes(1732), "lanes 64");
  EXPECT_EQ(lanes(3000), "lanes 32");
  EXPECT_EQ(lanes(60000), "lanes 64");
}

// The last blocks of two sums may differ, so an op that needs both makes all blocks wait, and the GPU must hold them at once.
TEST(ReductionScheduler, BlocksThatWaitAreHeldAtOnce) {
  const auto joined = [](const std::string& axes, const std::string& reduction) {
    return "fusion @f {\n  %m, %n = size\n  %x = input f16[%m, %n] contiguous\n  %xx = mul %x, %x\n  %s" + reduction +
           " %x over " + axes + "\n  %t" + reduction + " %xx over " + axes + "\n  %y = sub %t, %s\n  output %y\n}\n";
  };
  const int64_t held = default_device().multiprocessors;
  size_t sliced = 0, clusters = 0;
  for (const std::string axes : {"[0]", "[1]", "[0, 1]"})
    for (const std::string reduction : {" = sum", ", %d, %k = welford"})
      for (int64_t m : {1, 7, 64, 140, 200, 4099, 1 << 20})
        for (int64_t n : {1, 3, 64, 200, 4099, 1 << 20}) {
          std::string program = joined(axes, reduction);
          if (reduction != " = sum") program.replace(program.find("%t, %d, %k"), 10, "%t, %e, %l");
          const View v = view_of(program, {{m, n}});
          const Scheduler& s = *find_scheduler("reduction");
          if (s.declines(v.view())) continue;
          const Heuristics h = s.choose(v.view());
          SCOPED_TRACE(axes + reduction + " of " + std::to_string(m) + "x" + std::to_string(n) + ": " + text(h));
          if (h.number("slices") == 1) continue;
          // The blocks of a cluster wait for one another alone.
          if (h.has("cluster")) {
            ++clusters;
            EXPECT_FALSE(h.has("most_rows"));
            EXPECT_EQ(h.number("cluster"), h.number("slices"));
            continue;
          }
          ++sliced;
          const int64_t width = h.number("vector") * h.number("lanes"), bound = h.number("most_rows");
          const int64_t columns = h.number_or("most_columns", 1);
          EXPECT_LE(h.number("slices") * bound * ((columns + width - 1) / width), h.number("blocks") * held);
          EXPECT_GE(bound * columns, axes == "[0]" ? n : axes == "[1]" ? m : 1);
          EXPECT_EQ(print_steps(s.plan(v.view(), h)).find("dependent_launch"), std::string::npos);
        }
  EXPECT_GT(sliced, 20u);
  EXPECT_GT(clusters, 10u);
}

// Running moments of narrow accesses are bound by arithmetic: more loads at once, and no other row in the block.
TEST(ReductionScheduler, NarrowMomentsLoadMoreAtOnce) {
  std::string moments = kRowSum;
  moments.replace(moments.find("%y = sum"), 8, "%y, %s, %k = welford");
  EXPECT_EQ(
      ask("reduction", moments, {{2880, 118954}}),
      "reduction axes inner form passes vector 2 in_vectors x merge last lanes 256 warps 1 unroll 8 rows 1 slices "
      "1 threads 256 blocks 1");
}

// A thread takes whole columns of few elements, in full vectors, as in a pointwise kernel.
TEST(ReductionScheduler, AThreadTakesAShortColumn) {
  EXPECT_EQ(ask("reduction", kColumnSum, {{1, 1 << 20}}),
            "reduction axes outer form passes vector 8 in_vectors x merge last lanes 256 warps 1 unroll 1 rows 1 "
            "slices 1 threads 256 blocks 4 longest 1");
  EXPECT_EQ(ask("reduction", kColumnSum, {{8, 1 << 20}}),
            "reduction axes outer form passes vector 8 in_vectors x merge last lanes 256 warps 1 unroll 4 rows 1 "
            "slices 1 threads 256 blocks 4 longest 8");
  // Few columns are spread over all multiprocessors.
  EXPECT_EQ(ask("reduction", kColumnSum, {{2, 4096}}),
            "reduction axes outer form passes vector 1 in_vectors , merge last lanes 32 warps 1 unroll 2 rows 1 slices "
            "1 threads 32 blocks 32 longest 2");
  EXPECT_EQ(ask("reduction", kColumnSum, {{1, 31529}}),
            "reduction axes outer form passes vector 1 in_vectors , merge last lanes 64 warps 1 unroll 1 rows 1 slices "
            "1 threads 64 blocks 16 longest 1");
}

// Nothing reads what the sum overwrites, so its result needs no loops of its own.
TEST(ReductionScheduler, AResultOverAnInputThatNothingReads) {
  const testing::Planned p = testing::plan_of(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n, 4] contiguous
  %a = neg %x
  %y = sum %a over [0, 2]
  %z = input f32[%n] contiguity [false]
  output %y alias %z
}
)",
                                              {{.shape = {8, 2, 4}}, {.shape = {2}, .strides = {4}}});
  EXPECT_EQ(p.scheduler(), "reduction") << p.why("reduction");
}

TEST(ReductionScheduler, StaysInItsClass) {
  EXPECT_EQ(ask("reduction", kRowSum, {{16000, 4000}}), ask("reduction", kRowSum, {{15000, 3872}}));
  EXPECT_EQ(steps_of("reduction", kRowSum, {{16000, 4000}}), steps_of("reduction", kRowSum, {{15000, 3872}}));
}

TEST(ReductionScheduler, DeclinesWithAReason) {
  EXPECT_EQ(ask("reduction", kSoftmax, {{64, 64}}),
            "declines: a tensor with the axes that %mx reduces depends on a reduction");
  EXPECT_EQ(ask("reduction",
                "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %y = sum %x over [1]\n  %z = sum "
                "%x over [0]\n  output %y\n  output %z\n}\n",
                {{64, 64}}),
            "declines: %z reduces other axes than %y");
  EXPECT_EQ(ask("reduction", "fusion @f {\n  %m = size\n  %x = input f32[%m]\n  %y = exp %x\n  output %y\n}\n", {{64}}),
            "declines: nothing is reduced");
  EXPECT_EQ(
      ask("reduction",
          "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %c = slice %x from [0, 1] to [%m, %n] by [1, "
          "1]\n  %y = sum %c over [1]\n  output %y\n}\n",
          {{64, 64}}),
      "declines: %c is a slice, which changes the axes");
  EXPECT_EQ(ask("persistent",
                "fusion @f {\n  %x = input f32[1]\n  %z = input f32[33]\n  %s = sum %x over [0]\n  %b = broadcast %s "
                "mask [1]\n  %y = add %b, %z\n  output %y\n}\n",
                {{1}, {33}}),
            "declines: %y has an axis that %s lacks");
  EXPECT_EQ(ask("persistent",
                "fusion @f {\n  %x = input f32[1]\n  %z = input f32[33]\n  %s = sum %x over [0]\n  %b = broadcast %s "
                "mask [1]\n  %p = mul %x, %b\n  %y = add %p, %z\n  output %y\n}\n",
                {{1}, {33}}),
            "declines: %z stretches an axis of one element that %s reduces");
}

TEST(PersistentScheduler, KeepsARowInRegisters) {
  EXPECT_EQ(ask("persistent", kSoftmax, {{16384, 4096}}),
            "persistent axes inner form registers vector 8 in_vectors x,y merge last lanes 32 warps 4 chunks 4 unroll "
            "1 rows 1 slices 1 threads 128 blocks 1 longest 4096 least 3585");
  // Sixteen elements a thread, neighbouring threads side by side.
  EXPECT_EQ(ask("persistent", kSoftmax, {{16384, 4099}}),
            "persistent axes inner form registers vector 1 in_vectors , merge last lanes 32 warps 5 chunks 32 unroll 1 "
            "rows 1 slices 1 threads 160 blocks 1 longest 5120 least 4097");
  // Short rows share a block.
  EXPECT_EQ(ask("persistent", kSoftmax, {{65536, 256}}),
            "persistent axes inner form registers vector 8 in_vectors x,y merge last lanes 32 warps 1 chunks 1 unroll "
            "1 rows 8 slices 1 threads 256 blocks 1 longest 256");
}

TEST(PersistentScheduler, WalksALongRowInPasses) {
  EXPECT_EQ(ask("persistent", kSoftmax, {{4096, 524288}}),
            "persistent axes inner form passes vector 8 in_vectors x,y merge last lanes 1024 warps 1 unroll 8 rows 1 "
            "slices 1 threads 1024 blocks 1");
  // Few long rows are shared by blocks that are on the GPU together.
  EXPECT_EQ(ask("persistent", kSoftmax, {{8, 524288}}),
            "persistent axes inner form passes vector 8 in_vectors x,y merge last lanes 512 warps 1 unroll 2 rows 1 "
            "slices 16 most_rows 8 threads 512 blocks 1");
  EXPECT_NE(steps_of("persistent", kSoftmax, {{8, 524288}}).find("assume [%m] at_most 8"), std::string::npos);
  EXPECT_EQ(ask("persistent", kRowSum, {{64, 64}}),
            "declines: nothing with the axes that are reduced depends on a reduction");
}

TEST(PersistentScheduler, SharesALongRowInACluster) {
  EXPECT_EQ(
      ask("persistent", kSoftmax, {{8, 131072}}),
      "persistent axes inner form registers vector 8 in_vectors x,y merge last lanes 32 warps 32 chunks 2 unroll 1 "
      "rows 1 slices 1 threads 1024 blocks 1 longest 131072 cluster 8");
  // Rows that leave a quarter of the multiprocessors idle have the smallest cluster that holds one. Rows that leave fewer
  // idle, and do not fill the GPU in clusters, are read again.
  EXPECT_NE(ask("persistent", kSoftmax, {{96, 131072}}).find("cluster"), std::string::npos);
  EXPECT_EQ(ask("persistent", kSoftmax, {{112, 131072}}).find("cluster"), std::string::npos);
  // A few rows lie in clusters, though one block holds a row.
  EXPECT_EQ(
      ask("persistent", kSoftmax, {{1, 29350}}),
      "persistent axes inner form registers vector 2 in_vectors x,y merge last lanes 32 warps 16 chunks 4 unroll 1 "
      "rows 1 slices 1 threads 512 blocks 1 longest 32768 cluster 8");
  // So do shorter ones that take each thread of a block several narrow accesses.
  EXPECT_NE(ask("persistent", kSoftmax, {{4, 7001}}).find("cluster 8"), std::string::npos);
  EXPECT_EQ(ask("persistent", kSoftmax, {{40, 7001}}).find("cluster"), std::string::npos);
  EXPECT_EQ(ask("persistent", kSoftmax, {{4, 7000}}).find("cluster"), std::string::npos);
  const std::string steps = steps_of("persistent", kSoftmax, {{8, 131072}});
  for (const char* step :
       {"split %mx.c by 8 outer -> g, p", "parallelize %mx.g on grid.y", "assume [%n] at_most 131072",
        "cluster of [] blocks 8 on grid.y", "bound_launch of [] threads 1024 blocks 1"})
    EXPECT_NE(steps.find(step), std::string::npos) << step << "\n" << steps;
}

// Each pass computes anew what it needs of the row as it was loaded, so that a multiprocessor holds more blocks.
TEST(PersistentScheduler, KeepsManyLongRowsAsTheyWereLoaded) {
  std::string fast = kSoftmax;
  fast.replace(fast.find("exp %d"), 6, "exp %d fast");
  EXPECT_EQ(
      ask("persistent", fast, {{4096, 131072}}),
      "persistent axes inner form registers vector 8 in_vectors x,y merge last lanes 32 warps 8 chunks 8 unroll 1 "
      "rows 1 slices 1 threads 256 blocks 4 longest 131072 cluster 8 keep inputs");
  const std::string steps = steps_of("persistent", fast, {{4096, 131072}});
  for (const char* step : {"recompute %e for %q", "bound_launch of [] threads 256 blocks 4"})
    EXPECT_NE(steps.find(step), std::string::npos) << step << "\n" << steps;
  EXPECT_EQ(steps.find("recompute %x"), steps.find("recompute %xf")) << steps;
  // An exact exponential is not computed twice. The values of such rows fill the registers, so blocks read rows again.
  EXPECT_NE(ask("persistent", kSoftmax, {{4096, 131072}}).find("form passes"), std::string::npos);
}

// The loss of a row is no row, so nothing but its inputs is in the L2 cache when they are read again.
TEST(PersistentScheduler, FindsRowsAgainThatAreNotStored) {
  std::string loss = program_text("loss_of_input");
  loss.replace(loss.find("exp %d"), 6, "exp %d fast");
  EXPECT_EQ(ask("persistent", loss, {{8192, 50304}, {8192}}),
            "persistent axes inner form passes vector 8 in_vectors x merge last lanes 512 warps 1 unroll 8 rows 1 "
            "slices 1 threads 512 blocks 2");
  EXPECT_NE(steps_of("persistent", loss, {{8192, 50304}, {8192}}).find("bound_launch of [] threads 512 blocks 2"),
            std::string::npos);
  // Rows that a multiprocessor holds twice stay in registers, and so do rows that are read in narrow accesses.
  EXPECT_NE(ask("persistent", loss, {{8192, 32768}, {8192}}).find("form registers"), std::string::npos);
  EXPECT_NE(ask("persistent", loss, {{8192, 50257}, {8192}}).find("form registers"), std::string::npos);
  // Rows that the cache does not hold twice stay in clusters.
  std::string wide = loss;
  for (size_t i = wide.find("bf16"); i != std::string::npos; i = wide.find("bf16")) wide.replace(i, 4, "f32");
  EXPECT_NE(ask("persistent", wide, {{6336, 35676}, {6336}}).find("form registers"), std::string::npos);
  EXPECT_NE(ask("persistent", wide, {{6336, 35676}, {6336}}).find("cluster 8"), std::string::npos);
  // Few rows leave multiprocessors with one block in any case.
  EXPECT_NE(ask("persistent", loss, {{132, 50304}, {132}}).find("blocks 1"), std::string::npos);
  // Longer rows are in clusters too. Blocks that read a row again which no cluster holds have all threads that they can have.
  EXPECT_NE(ask("persistent", loss, {{8192, 131072}, {8192}}).find("cluster 8"), std::string::npos);
  EXPECT_NE(ask("persistent", loss, {{8192, 1048576}, {8192}}).find("threads 1024 blocks 1"), std::string::npos);
}

// Long rows of f32, of which a thread keeps the input alone. A few more rows than multiprocessors fill the GPU in clusters,
// and a thread keeps as much of a row as lets a multiprocessor hold two blocks.
TEST(PersistentScheduler, SharesRowsThatAClusterHoldsTwice) {
  const std::string program = R"(fusion @f {
  %n, %c, %l = size
  %x = input f32[%n, %c, %l] contiguous
  %s = sum %x over [0, 2]
  %b = broadcast %s mask [1, 0, 1]
  %y = sub %x, %b
  output %y
}
)";
  EXPECT_EQ(ask("persistent", program, {{32, 256, 3136}}),
            "persistent axes inner form registers vector 4 in_vectors x,y merge last lanes 32 warps 14 chunks 8 unroll "
            "1 rows 1 slices 1 threads 448 blocks 2 longest 114688 cluster 8");
  EXPECT_EQ(ask("persistent", program, {{32, 256, 1568}}),
            "persistent axes inner form registers vector 4 in_vectors x,y merge last lanes 32 warps 14 chunks 4 unroll "
            "1 rows 1 slices 1 threads 448 blocks 2 longest 57344 cluster 8");
  const std::string steps = steps_of("persistent", program, {{32, 140, 3136}});
  for (const char* step : {"split %s.i2 by 4 -> c, v", "merge %s.i0 with %s.c -> i", "split %s.i by 8 outer -> g, p",
                           "assume [%n, %l] at_most 114688", "bound_launch of [] threads 448 blocks 2"})
    EXPECT_NE(steps.find(step), std::string::npos) << step << "\n" << steps;
  // Narrow accesses are more for each thread.
  EXPECT_EQ(
      ask("persistent", program, {{32, 256, 1571}}),
      "persistent axes inner form registers vector 1 in_vectors , merge last lanes 32 warps 14 chunks 32 unroll 1 "
      "rows 1 slices 1 threads 448 blocks 2 longest 57344 cluster 4");
  // Fewer rows, and rows that fill the registers of eight blocks.
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{32, 100, 3136}, {32, 256, 6272}})
    EXPECT_NE(ask("persistent", program, {shape}).find("form passes"), std::string::npos)
        << shape[1] << " " << shape[2];
}

// No cluster where a GPU has none.
TEST(PersistentScheduler, KnowsWhereClustersDoNotServe) {
  View v = view_of(kSoftmax, {{8, 131072}});
  DeviceProperties old = *find_device("a100");
  const ScheduleView on_old{v.fusion, v.sizes, v.memory, old};
  EXPECT_NE(text(find_scheduler("persistent")->choose(on_old)).find("form passes"), std::string::npos);
}

// One thread of a cluster reads and stores what a small output overwrites.
TEST(PersistentScheduler, OneThreadOfAClusterOverwrites) {
  std::string program = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %t = input f32[%m] contiguous
  %s = sum %x over [1]
  %u = add %s, %t
  %b = broadcast %s mask [0, 1]
  %y = sub %x, %b
  output %y
  output %u alias %t
}
)";
  EXPECT_NE(ask("persistent", program, {{8, 65536}, {8}}).find("cluster 8"), std::string::npos);
  const std::string steps = steps_of("persistent", program, {{8, 65536}, {8}});
  for (const char* step : {"parallelize %u.n on grid.x", "parallelize %u.gx on grid.y", "parallelize %u.y on block.y"})
    EXPECT_NE(steps.find(step), std::string::npos) << step << "\n" << steps;
  EXPECT_EQ(testing::plan_of(program, testing::contiguous({{8, 65536}, {8}})).scheduler(), "persistent");
  // All threads need what is made of the input, so the kernel makes the output beside it.
  program.replace(program.find("broadcast %s"), 12, "broadcast %u");
  const testing::Planned beside = testing::plan_of(program, testing::contiguous({{8, 65536}, {8}}));
  EXPECT_EQ(beside.scheduler(), "persistent");
  EXPECT_NE(beside.why("in place"), "");
}

// The rows of all heads that read the same row of the mask run side by side, and find it in the cache.
TEST(PersistentScheduler, OrdersRowsByWhatInputsShare) {
  const std::string program =
      "fusion @f {\n  %b, %h, %s, %t = size\n  %x = input bf16[%b, %h, %s, %t] contiguous\n"
      "  %m = input bf16[1, 1, %s, %t] contiguity [none, none, true, true]\n  %y = add %x, %m\n  %z = cast %y as f32\n"
      "  %w = max %z over [3]\n  output %w\n}\n";
  const auto merges = [&](const Shapes& shapes) {
    const std::string steps = steps_of("reduction", program, shapes);
    std::string result;
    for (size_t i = steps.find("merge"); i != std::string::npos; i = steps.find("merge", i + 1))
      result += steps.substr(i, steps.find('\n', i) - i) + "; ";
    return result;
  };
  EXPECT_EQ(merges({{2, 32, 512, 2048}, {1, 1, 512, 2048}}),
            "merge %w.i2 with %w.i0 -> row; merge %w.row with %w.i1 -> rowx; ");
  // Short rows share sectors with their neighbours in memory.
  EXPECT_EQ(merges({{2, 32, 512, 64}, {1, 1, 512, 64}}),
            "merge %w.i0 with %w.i1 -> row; merge %w.row with %w.i2 -> rowx; ");
}

// What only later passes read is loaded before the threads wait for one another, if a thread has one access of it.
TEST(PersistentScheduler, LoadsEarlyWhatIsReadLate) {
  const std::string program =
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n] contiguous\n  %w = input f32[%n] contiguous\n"
      "  %s = sum %x over [1]\n  %sb = broadcast %s mask [0, 1]\n  %wb = broadcast %w mask [1, 0]\n"
      "  %y = sub %x, %sb\n  %z = mul %y, %wb\n  output %z\n}\n";
  const auto inlined = [&](int64_t columns) {
    const std::string steps = steps_of("persistent", program, {{64, columns}, {columns}});
    const size_t begin = steps.find("inline_most");
    return steps.substr(begin, steps.find('\n', begin) - begin);
  };
  EXPECT_EQ(inlined(256), "inline_most of [%s, %sb, %y, %wb, %z, %x_1, %z_1]");
  EXPECT_EQ(inlined(16384), "inline_most of []");
}

TEST(PersistentScheduler, StatesTheLongestRowThatFits) {
  const std::string steps = steps_of("persistent", kSoftmax, {{16384, 4096}});
  EXPECT_NE(steps.find("assume [%n] at_most 4096"), std::string::npos) << steps;
  EXPECT_NE(steps.find("bound_launch of [] threads 128 blocks 1"), std::string::npos) << steps;
}

// The gradients of a layer norm, of rows of %n elements.
const std::string kBackward = program_text("gradients");

TEST(InnerOuterScheduler, WalksRowsAndSumsColumns) {
  EXPECT_EQ(ask("inner_outer", kBackward, {{16384, 4096}, {16384, 4096}, {16384}, {4096}}),
            "inner_outer axes inner form registers vector 8 in_vectors dy,x,w,dx merge last lanes 32 warps 16 chunks 1 "
            "unroll 1 rows 1 slices 1 walk 32 walkers 264 threads 512 blocks 2 longest 4096");
  // Short rows share a block.
  EXPECT_EQ(ask("inner_outer", kBackward, {{16384, 256}, {16384, 256}, {16384}, {256}}),
            "inner_outer axes inner form registers vector 8 in_vectors dy,x,w,dx merge last lanes 32 warps 1 chunks 1 "
            "unroll 1 rows 8 slices 1 walk 8 threads 256 blocks 1 longest 256");
  const std::string steps = steps_of("inner_outer", kBackward, {{16384, 4096}, {16384, 4096}, {16384}, {4096}});
  EXPECT_NE(steps.find("assume [%n] at_most 4096"), std::string::npos) << steps;
  EXPECT_NE(steps.find("bound_launch of [] threads 512 blocks 2"), std::string::npos) << steps;
  // The parts of the sums are stored for each group of rows, and rows are loaded ahead.
  for (const char* step : {"rfactor %dwf over [%dwf.s] -> dwf_1", "set_memory_type %dwf_1 in global",
                           "circular_buffer %dy_1 depth 2", "circular_buffer %x_1 depth 2"})
    EXPECT_NE(steps.find(step), std::string::npos) << step << "\n" << steps;
  EXPECT_EQ(steps.find("circular_buffer %w_1"), std::string::npos) << steps;
}

TEST(InnerOuterScheduler, DeclinesWithAReason) {
  EXPECT_EQ(ask("inner_outer", kSoftmax, {{16384, 4096}}), "declines: nothing is reduced over the axes that %mx keeps");
  EXPECT_EQ(ask("inner_outer", kBackward, {{64, 4096}, {64, 4096}, {64}, {4096}}),
            "declines: the rows that %s reduces are too few for threads that walk several each");
  EXPECT_EQ(ask("inner_outer", kBackward, {{16384, 131072}, {16384, 131072}, {16384}, {131072}}),
            "declines: the registers of a block do not hold a row that %s reduces and the sums of its columns");
  // The column sums would have to be complete before any row is.
  EXPECT_EQ(ask("inner_outer",
                "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %a = sum %x over [1]\n  %b = sum %x over "
                "[0]\n  %bb = broadcast %b mask [1, 0]\n  %ab = broadcast %a mask [0, 1]\n  %c = add %x, %bb\n  %d = "
                "add %c, %ab\n  output %d\n}\n",
                {{16384, 64}}),
            "declines: %c depends on a sum of columns");
  // The last blocks of two column sums may differ.
  EXPECT_EQ(ask("inner_outer",
                "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %a = sum %x over [1]\n  %b = sum %x over "
                "[0]\n  %c = max %x over [0]\n  %d = add %b, %c\n  output %a\n  output %d\n}\n",
                {{16384, 64}}),
            "declines: an op depends on two sums of columns, for which all blocks would wait");
  // The op behind the sum would have copies of 18 tensors.
  std::string program =
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %w = input f32[%n]\n  %a0 = neg %w\n";
  for (int i = 1; i < 18; ++i) program += "  %a" + std::to_string(i) + " = neg %a" + std::to_string(i - 1) + "\n";
  program +=
      "  %b = broadcast %a17 mask [1, 0]\n  %d = mul %x, %b\n  %c = sum %d over [0]\n  %o = add %c, %a17\n  %r = sum "
      "%d "
      "over [1]\n  output %o\n  output %r\n}\n";
  EXPECT_EQ(ask("inner_outer", program, {{16384, 64}, {64}}),
            "declines: few copies do not keep what ops behind sums of columns read apart from the rows");
}

TEST(InnerOuterScheduler, OpsBehindAColumnSumReadTheirOwn) {
  const std::string steps = steps_of("inner_outer",
                                     "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %w = input f32[%n]\n  "
                                     "%b = broadcast %w mask [1, 0]\n  %d = sub %x, %b\n  %c = sum %d over [0]\n  %o = "
                                     "add %c, %w\n  %r = sum %x over [1]\n  output %o\n  output %r\n}\n",
                                     {{16384, 64}, {64}});
  for (const std::string step : {"recompute %w_1 for %o -> w_1_1\n", "transform_like %r to [%c, %d, %b, %x_1, %w_1]\n",
                                 "transform_like %c to [%o, %w_1_1]\n", "parallelize_like %c to [%o, %w_1_1]\n"})
    EXPECT_NE(steps.find(step), std::string::npos) << step << "in\n" << steps;
}

// An output over an input lies in the input's memory, whose rows may stand apart.
TEST(PersistentScheduler, StoresOverAnInputWithItsStrides) {
  constexpr std::string_view program = R"(fusion @f {
  %m, %n = size
  %x = input f16[%m, %n] contiguity [false, true]
  %p = input f16[%m, %n] contiguous
  %xf = cast %x as f32
  %pf = cast %p as f32
  %s = sum %xf over [1]
  %sb = broadcast %s mask [0, 1]
  %d = sub %xf, %sb
  %z = add %pf, %d
  %y = cast %z as f16
  output %y alias %x
}
)";
  View v = view_of(program, {{64, 64}, {64, 64}});
  const Scheduler& s = *find_scheduler("persistent");
  EXPECT_EQ(s.choose(v.view()).word("in_vectors"), "x,p,y");
  v.memory["x"] = {.align = 16, .stride_divisors = {1, 1}};
  EXPECT_EQ(s.choose(v.view()).word("in_vectors"), "p");
}

TEST(PersistentScheduler, LeavesGathersWithTheInput) {
  const std::string program = program_text("loss_of_input");
  EXPECT_EQ(ask("persistent", program, {{16384, 4096}, {16384}}),
            "persistent axes inner form registers vector 8 in_vectors x merge last lanes 32 warps 4 chunks 4 unroll 1 "
            "rows 1 slices 1 threads 128 blocks 1 longest 4096 least 3585");
}

}  // namespace
}  // namespace fusebox
