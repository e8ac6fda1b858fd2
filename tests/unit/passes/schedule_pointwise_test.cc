// The choices of the scheduler of pointwise fusions, and how much its kernels move at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/automatic.h"
#include "tests/support/program_text.h"

namespace fusebox::testing {
namespace {

const std::string kAdd = program_text("add_row");

TEST(Pointwise, VectorsAreAsWideAsTheInnermostExtentAllows) {
  const std::pair<int64_t, int64_t> cases[] = {{64, 4}, {63, 1}, {62, 2}, {68, 4}};
  for (const auto& [n, width] : cases) {
    const Planned p = plan_of(kAdd, contiguous({{511, n}, {n}}));
    ASSERT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
    EXPECT_EQ(p.choice("vector"), width) << n;
    const int vectors = width > 1 ? 3 : 0;
    EXPECT_EQ(p.vectors(), width > 1 ? (std::map<int64_t, int>{{width * 4, vectors}}) : (std::map<int64_t, int>{}));
  }
}

// Of rows that no vector divides, all together may have whole vectors. The row that is broadcast is read by single elements.
TEST(Pointwise, OddRowsThatLieInOrderAreCutIntoVectorsTogether) {
  const Planned p = plan_of(kAdd, contiguous({{512, 63}, {63}}));
  EXPECT_EQ(p.choice("axes"), 2);
  EXPECT_EQ(p.choice("vector"), 4);
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 2}}));
  // Vectors of 8 bytes stay in their rows.
  EXPECT_EQ(plan_of(kAdd, contiguous({{512, 62}, {62}})).choice("axes"), 1);
}

// Without a broadcast all axes are one loop, so only the number of elements counts.
TEST(Pointwise, AxesThatLieInOrderAreOneLoop) {
  constexpr const char* kProgram = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = exp %x
  output %y
}
)";
  const Planned p = plan_of(kProgram, contiguous({{64, 33}}));
  EXPECT_EQ(p.choice("axes"), 2);
  EXPECT_EQ(p.choice("vector"), 4);
  EXPECT_EQ(plan_of(kAdd, contiguous({{63, 33}, {33}})).choice("axes"), 1);
}

TEST(Pointwise, AnInputThatIsNotAlignedIsReadElementByElement) {
  auto inputs = contiguous({{64, 64}, {64}});
  inputs[1].align = 4;
  const Planned p = plan_of(kAdd, inputs);
  EXPECT_EQ(p.choice("vector"), 4);
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 2}}));
  EXPECT_EQ(p.choice("%b_in"), 0);
}

// A thread walks a short axis along which another input lies, and reads what lies side by side.
TEST(Pointwise, AShortAxisOfATransposeIsWalked) {
  const auto plan = [](int64_t m, int64_t n, const char* dtype) {
    std::string program = replaced(program_text("plus_transposed"), "TYPE", dtype);
    return plan_of(program.substr(0, program.find("inputs")), contiguous({{m, n}, {n, m}}));
  };
  const auto walks = [](const Planned& p) {
    return text(p.compiled.automatic->decisions.at(0).heuristics).find("walk i0") != std::string::npos;
  };
  Planned p = plan(12, 74880, "f32");
  ASSERT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
  EXPECT_TRUE(walks(p));
  EXPECT_EQ(p.choice("vector"), 1);
  EXPECT_EQ(p.choice("unroll"), 12);
  // What lies along the other axis is moved by 4 bytes.
  p = plan(13, 76306, "bf16");
  EXPECT_TRUE(walks(p));
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{4, 2 * 2}}));
  EXPECT_EQ(plan(3, 74880, "f64").choice("vector"), 1);
  // Too few threads, and too long an axis.
  EXPECT_FALSE(walks(plan(12, 9000, "f32")));
  EXPECT_FALSE(walks(plan(15, 74880, "f64")));
  EXPECT_FALSE(walks(plan(12, 40000, "i8")));  // by vectors of 4
  // The threads lie along a long axis, and others move less than twice as much as the input.
  EXPECT_FALSE(
      walks(plan_of("fusion @f {\n  %m, %n, %o = size\n  %b = input f32[%o, %n, %m] contiguous\n"
                    "  %t = permute %b dims [0, 2, 1]\n  %y = neg %t\n  output %y\n}\n",
                    contiguous({{262144, 3, 3}}))));
  EXPECT_FALSE(
      walks(plan_of("fusion @f {\n  %m, %n = size\n  %a = input f32[%m, %n] contiguous\n"
                    "  %c = input f32[%m, %n] contiguous\n  %b = input f32[%n, %m] contiguous\n"
                    "  %t = permute %b dims [1, 0]\n  %s = add %a, %t\n  %y = add %s, %c\n  output %y\n}\n",
                    contiguous({{12, 74880}, {12, 74880}, {74880, 12}}))));
}

TEST(Pointwise, StridesThatAVectorDoesNotDivideNarrowIt) {
  constexpr const char* kProgram = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguity [false, true]
  %y = exp %x
  output %y
}
)";
  const std::pair<int64_t, int64_t> cases[] = {{72, 4}, {66, 2}, {65, 0}};
  for (const auto& [stride, width] : cases) {
    std::vector<BoundInput> inputs = {{.shape = {64, 64}, .strides = {stride, 1}, .align = 256}};
    const Planned p = plan_of(kProgram, inputs);
    EXPECT_EQ(p.choice("%x_in"), width) << stride;
    EXPECT_EQ(p.choice("%y"), 4) << stride;
  }
}

TEST(Pointwise, TheWidestElementDecidesTheChunk) {
  constexpr const char* kProgram = R"(fusion @f {
  %n = size
  %x = input bf16[%n] contiguous
  %m = input bool[%n] contiguous
  %f = cast %x as f32
  %y = where %m, %f, 0.0_f32
  output %y
}
)";
  const Planned p = plan_of(kProgram, contiguous({{4096}, {4096}}));
  EXPECT_EQ(p.choice("vector"), 4);
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{4, 1}, {8, 1}, {16, 1}}));
}

// Where threads by whole chunks fill the GPU once or a few times; three tensors gain already from a part of it.
TEST(Pointwise, SeveralTensorsOfHalvesHaveShorterChunks) {
  const auto vector = [](int streams, int64_t rows) {
    std::string text = "fusion @f {\n  %m = size\n  %x1 = input bf16[%m, 1024] contiguous\n  %y1 = neg %x1\n";
    for (int i = 2; i < streams; ++i)
      text += fmt::format("  %x{0} = input bf16[%m, 1024] contiguous\n  %y{0} = add %y{1}, %x{0}\n", i, i - 1);
    text += fmt::format("  output %y{}\n}}\n", streams - 1);
    const std::vector<std::vector<int64_t>> shapes(static_cast<size_t>(streams - 1), {rows, 1024});
    return plan_of(text, contiguous(shapes)).choice("vector");
  };
  EXPECT_EQ(vector(2, 4096), 8);
  EXPECT_EQ(vector(3, 1024), 8);
  EXPECT_EQ(vector(3, 1536), 4);
  EXPECT_EQ(vector(3, 4096), 8);
  EXPECT_EQ(vector(5, 1024), 8);
  EXPECT_EQ(vector(5, 4096), 4);
  EXPECT_EQ(vector(5, 65536), 8);
}

TEST(Pointwise, LaunchesFollowTheSize) {
  const Planned small = plan_of(kAdd, contiguous({{4, 8}, {8}}));
  EXPECT_EQ(small.choice("threads"), 32);
  const Planned large = plan_of(kAdd, contiguous({{16384, 4096}, {4096}}));
  EXPECT_EQ(large.choice("threads"), 256);
  // Odd rows: no vectors, so a thread has several elements.
  const Planned odd = plan_of(kAdd, contiguous({{16383, 4097}, {4097}}));
  EXPECT_EQ(odd.choice("vector"), 1);
  EXPECT_EQ(odd.choice("unroll"), 4);
}

TEST(Pointwise, DeclinesWithAReason) {
  const Planned p = plan_of(program_text("row_sum"), contiguous({{8, 8}}));
  EXPECT_EQ(p.scheduler(), "reduction");
}

// The automatic plan has at least as many vector accesses as the schedule made by hand, and none that is narrower.
TEST(Pointwise, MovesTheCorpusLikeItsHandSchedules) {
  struct Case {
    const char* name;
    std::vector<std::vector<int64_t>> shapes;
  };
  const Case cases[] = {
      {"silu_mul_bias", {{16384, 4096}, {16384, 4096}, {4096}}},
      {"gelu_dropout_mask", {{8192, 8192}, {8192, 8192}}},
  };
  for (const Case& c : cases) {
    const Module m = read_program("corpus/schedules/" + std::string(c.name) + ".fir");
    const Graph& g = main_graph(m);
    auto inputs = contiguous(c.shapes);
    while (inputs.size() < fusebox::inputs(g).size()) inputs.push_back({.is_scalar = true, .bits = {0x3f800000, 0}});
    const Planned p = plan_of(g, inputs);
    ASSERT_EQ(p.scheduler(), "pointwise") << c.name << " " << p.why("pointwise");
    CompileOptions by_hand;
    by_hand.steps = find_steps(m, g.name)->steps;
    by_hand.inputs = inputs;
    const Planned hand{g, compile(g, bind_sizes(g, inputs), by_hand)};
    EXPECT_EQ(p.vectors(), hand.vectors()) << c.name;
  }
}

TEST(Pointwise, RowsOfATableAreGathered) {
  const Module m = read_program("corpus/schedules/embedding_gather.fir");
  std::vector<BoundInput> inputs = contiguous({{50304, 4096}, {16384}, {16384, 4096}});
  inputs.push_back({.is_scalar = true, .bits = {0x3f800000, 0}});
  const Planned p = plan_of(main_graph(m), inputs);
  ASSERT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
  EXPECT_EQ(p.choice("%position_in"), 8);
  EXPECT_EQ(p.choice("%y"), 8);
}

// An input is read where it lies if an op drops one of its axes whose extent is a size: a copy would have a loop over it.
TEST(Pointwise, ASqueezedSizeIsReadInPlace) {
  for (const std::string op : {"squeeze %x over [0]", "reshape %x to [1, 1]"}) {
    const Planned p = plan_of(
        "fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %s = " + op + "\n  %y = exp %s\n  output %y\n}\n",
        contiguous({{1}}));
    EXPECT_EQ(p.scheduler(), "pointwise") << op << ": " << p.why("pointwise");
  }
  const Planned p = plan_of(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %s = squeeze %x over [0]
  %y = exp %s
  output %y
}
)",
                            contiguous({{1, 64}}));
  EXPECT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
}

// A reshape makes broadcasts of its own, which the tensors before it lack.
TEST(Pointwise, AReshapeThatMakesABroadcast) {
  for (const std::string to : {"[1, 128]", "[1, 16, 8]", "[16, 1, %n]", "[8, 2, 1, %n]"}) {
    const Planned p = plan_of("fusion @f {\n  %n = size\n  %x = input f32[16, %n] contiguous\n  %y = reshape %x to " +
                                  to + "\n  %z = exp %y\n  output %z\n}\n",
                              contiguous({{16, 8}}));
    EXPECT_EQ(p.scheduler(), "pointwise") << to << ": " << p.why("pointwise");
    EXPECT_EQ(p.choice("%x_in"), 4) << to;
    EXPECT_EQ(p.choice("%z"), 4) << to;
  }
}

// Each element of a scatter's result looks for the last index that chooses it, so it is computed on its own.
TEST(Pointwise, AScatterOfInputs) {
  const std::string head = R"(fusion @f {
  %m, %n, %k = size
  %x = input f32[%m, %n] contiguous
  %i = input i64[%m, %k] contiguous
  %s = input f32[%m, %k] contiguous
)";
  const std::vector<std::vector<int64_t>> shapes = {{64, 32}, {64, 5}, {64, 5}};
  const Planned p =
      plan_of(head + "  %y = scatter %x, %i, %s axis 1\n  %z = exp %y\n  output %z\n}\n", contiguous(shapes));
  EXPECT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
  EXPECT_EQ(p.choice("%z"), 4);
  // What a kernel computes is in registers, where data cannot choose.
  const Planned q =
      plan_of(head + "  %t = exp %s\n  %y = scatter %x, %i, %t axis 1\n  output %y\n}\n", contiguous(shapes));
  ASSERT_EQ(q.compiled.automatic->decisions.size(), 2u);
  for (const Decision& d : q.compiled.automatic->decisions) EXPECT_EQ(d.heuristics.scheduler, "pointwise");
}

// One less than a power of two: the launch shows that the width divides the size, and the loops that the size is not 0.
TEST(Pointwise, VectorsOfRowsThatNearlyFillTheThreads) {
  for (const int64_t rows : {31, 62, 63, 127})
    for (const int64_t columns : {2, 4, 8}) {
      const Planned p = plan_of("fusion @f {\n  %n = size\n  %x = input f32[" + std::to_string(rows) +
                                    ", %n] contiguous\n  %y = exp %x\n  output %y\n}\n",
                                contiguous({{rows, columns}}));
      EXPECT_EQ(p.scheduler(), "pointwise") << rows << " by " << columns << ": " << p.why("pointwise");
    }
}

}  // namespace
}  // namespace fusebox::testing
