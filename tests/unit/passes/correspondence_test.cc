// Loops that a producer may share with its consumer, and threads that are the same, in the nest and at elements.
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/lower/lower.h"
#include "tests/support/program_text.h"
#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

const std::string kCopy = program_text("copy");

// A tile of 64 with a domain b of extent 1 that is split again: in its holes the index leaves the tile.
constexpr std::string_view kTile = "split %y.i0 by 64 -> o, a\nsplit %y.a by 64 -> b, c\nsplit %y.b by 8 -> f, g\n";

std::string steps(std::string_view first, std::string_view second) { return std::string(first) + std::string(second); }

std::string refusal(const Graph& g) {
  const auto error = legal(g);
  return error ? std::string(row_of(error->code).name) + " " + error->place : "legal";
}

size_t barriers(const Graph& g) {
  const Graph kernel = lower(g).kernel;
  size_t count = 0;
  for (const Op& op : kernel.ops) count += op.kind == OpKind::kBarrier;
  return count;
}

TEST(Correspondence, ALoopIsSharedWhereItIsOneAtElements) {
  EXPECT_EQ(refusal(scheduled(kCopy, steps(kTile, "split %s.i0 by 64 -> o, a\ninline_at %s.o"))), "legal");
  EXPECT_EQ(refusal(scheduled(kCopy, steps(kTile,
                                           "split %s.i0 by 64 -> o, a\nsplit %s.a by 64 -> b, c\n"
                                           "split %s.b by 8 -> f, g\ninline_at %s.f"))),
            "legal");
}

// A file may say what the step would refuse: %s has `loops` and shares them up to `last`, with %y as above.
Graph shared(const std::string& transforms, const std::string& loops, const std::string& last) {
  return parse_module(
             "scheduled @copy {\n  %x = input f32[i0 iter 64] contiguous\n  %s = set %x : f32[i0 iter 64] {\n" +
             transforms + "    loop [" + loops + "]\n    inline_at " + last +
             "\n  }\n  %y = neg %s : f32[i0 iter 64] {\n    o iter, a iter = split i0 by 32 inner\n"
             "    b iter, c iter = split a by 32 inner\n    f iter, g iter = split b by 8 inner\n"
             "    loop [o, f, g, c]\n  }\n  output %y\n}\n")
      .graphs[0];
}

TEST(Correspondence, ALoopIsNotSharedWhereItIsAnother) {
  const std::string tile = "    o iter, a iter = split i0 by 32 inner\n";
  EXPECT_EQ(refusal(shared(tile, "o, a", "o")), "legal");
  // The same number of iterations over other elements.
  EXPECT_EQ(refusal(shared("    a iter, o iter = split i0 by 2 inner\n", "o, a", "o")), "IllegalInline %s.o");
  // Both are 0 at elements, but the extents differ.
  const std::string thin = tile + "    b iter, c iter = split a by 32 inner\n";
  EXPECT_EQ(refusal(shared(thin + "    f iter, g iter = split b by 8 inner\n", "o, f, g, c", "f")), "legal");
  EXPECT_EQ(refusal(shared(thin + "    f iter, g iter = split b by 8 inner\n", "o, g, f, c", "g")),
            "IllegalInline %s.g");
}

// The threads of a tile, e of them for each d. Through local memory, a thread reads what it wrote itself.
constexpr std::string_view kThreads =
    "merge %y.f with %y.g -> fg\nmerge %y.fg with %y.c -> t\nparallelize %y.o grid.x\nparallelize %y.t block.x\n";

TEST(Correspondence, AThreadIsTheSameWhereItIsOneAtElements) {
  const std::string like =
      "split %s.i0 by 64 -> o, t\nparallelize %s.o grid.x\nparallelize %s.t block.x\ninline_at %s.o\n";
  EXPECT_EQ(refusal(scheduled(kCopy, steps(kTile, steps(kThreads, like)))), "legal");
  const Graph shared = scheduled(kCopy, steps(kTile, steps(kThreads, like + "set_memory_type %s in shared\n")));
  EXPECT_EQ(barriers(shared), 0u);
  // The threads in another order: shared memory with a barrier works, local memory does not.
  const std::string other =
      "split %s.i0 by 64 -> o, a\nsplit %s.a by 8 -> d, e\nmerge %s.e with %s.d -> t\n"
      "parallelize %s.o grid.x\nparallelize %s.t block.x\ninline_at %s.o\n";
  EXPECT_EQ(refusal(scheduled(kCopy, steps(kTile, steps(kThreads, other)))), "IllegalExchange %s.t");
  EXPECT_EQ(barriers(scheduled(kCopy, steps(kTile, steps(kThreads, other + "set_memory_type %s in shared\n")))), 1u);
}

}  // namespace
}  // namespace fusebox::testing
