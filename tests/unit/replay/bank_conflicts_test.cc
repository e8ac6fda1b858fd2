// Bank conflicts counted by hand, and by the host executor on kernels with known conflicts.
#include "replay/host/bank_conflicts.h"

#include <functional>
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "replay/host/host_executor.h"

namespace fusebox {
namespace {

// The totals of `threads` threads; thread t accesses byte address(t).
BankTotals of(int threads, int64_t bytes, const std::function<int64_t(int64_t)>& address) {
  std::vector<int64_t> addresses;
  for (int t = 0; t < threads; ++t) addresses.push_back(address(t));
  return bank_conflicts(addresses, bytes);
}

BankTotals totals(int64_t accesses, int64_t wavefronts, int64_t ideal, int64_t ways) {
  return {accesses, wavefronts, ideal, ways};
}

TEST(BankConflicts, OfWords) {
  EXPECT_EQ(of(32, 4, [](int64_t t) { return 4 * t; }), totals(1, 1, 1, 1));                    // a row
  EXPECT_EQ(of(32, 4, [](int64_t t) { return 128 * t; }), totals(1, 32, 1, 32));                // a column of [32][32]
  EXPECT_EQ(of(32, 4, [](int64_t t) { return 132 * t; }), totals(1, 1, 1, 1));                  // of [32][33]
  EXPECT_EQ(of(32, 4, [](int64_t t) { return 128 * t + 4 * (t ^ 5); }), totals(1, 1, 1, 1));    // of a swizzled tile
  EXPECT_EQ(of(32, 4, [](int64_t t) { return 8 * t; }), totals(1, 2, 1, 2));                    // every other word
  EXPECT_EQ(of(32, 4, [](int64_t t) { return 12 * t; }), totals(1, 1, 1, 1));                   // 3 and 32 are coprime
  EXPECT_EQ(of(32, 4, [](int64_t) { return 64; }), totals(1, 1, 1, 1));                         // one word for all
  EXPECT_EQ(of(32, 4, [](int64_t t) { return t % 2 * 128; }), totals(1, 2, 1, 2));              // two words of one bank
  EXPECT_EQ(of(32, 4, [](int64_t t) { return t < 8 ? 128 * t : 4 * t; }), totals(1, 8, 1, 8));  // bank 0 has eight
}

TEST(BankConflicts, OfNarrowElements) {
  EXPECT_EQ(of(32, 2, [](int64_t t) { return 2 * t; }), totals(1, 1, 1, 1));  // two in a word
  EXPECT_EQ(of(32, 1, [](int64_t t) { return 4 * (t / 4); }), totals(1, 1, 1, 1));
  EXPECT_EQ(of(32, 2, [](int64_t t) { return 64 * t; }), totals(1, 16, 1, 16));  // a column of half[32][32]: 2 banks
  EXPECT_EQ(of(32, 1, [](int64_t t) { return 32 * t; }), totals(1, 8, 1, 8));
}

TEST(BankConflicts, OfWideElementsGoByPartsOfAWarp) {
  EXPECT_EQ(of(32, 8, [](int64_t t) { return 8 * t; }), totals(1, 2, 2, 1));
  EXPECT_EQ(of(32, 8, [](int64_t t) { return 256 * t; }), totals(1, 32, 2, 16));  // a column of double[32][32]
  EXPECT_EQ(of(32, 8, [](int64_t t) { return 264 * t; }), totals(1, 2, 2, 1));    // of [32][33]
  EXPECT_EQ(of(32, 16, [](int64_t t) { return 16 * t; }), totals(1, 4, 4, 1));
  // Rows of 128 bytes; each thread reads the first 16 bytes of one. 8 rows for a quarter warp.
  EXPECT_EQ(of(32, 16, [](int64_t t) { return 128 * t; }), totals(1, 32, 4, 8));
  EXPECT_EQ(of(32, 16, [](int64_t t) { return 128 * t + 16 * (t % 8); }), totals(1, 4, 4, 1));  // swizzled by 128 bytes
  EXPECT_EQ(of(8, 16, [](int64_t t) { return 128 * t; }), totals(1, 8, 1, 8));
}

TEST(BankConflicts, OfSeveralWarpsAndThreadsThatAreOff) {
  EXPECT_EQ(of(64, 4, [](int64_t t) { return t < 32 ? 4 * t : 128 * (t - 32); }), totals(2, 33, 2, 32));
  EXPECT_EQ(of(40, 4, [](int64_t t) { return 128 * t; }), totals(2, 40, 2, 32));  // the last warp has 8 threads
  EXPECT_EQ(of(32, 4, [](int64_t t) { return t % 4 == 0 ? 128 * t : -1; }), totals(1, 8, 1, 8));
  EXPECT_EQ(of(64, 4, [](int64_t t) { return t < 32 ? -1 : 4 * t; }), totals(1, 1, 1, 1));
  EXPECT_EQ(of(32, 4, [](int64_t) { return -1; }), totals(0, 0, 0, 0));
  EXPECT_EQ(of(32, 8, [](int64_t t) { return t < 16 ? 8 * t : -1; }), totals(1, 1, 1, 1));
}

// A block of 32 × 8 threads writes a tile row by row and reads it column by column. `stride`: elements in a row.
std::string transpose(const std::string& dtype, int stride) {
  return "kernel @k index 32 {\n"
         "  %x = input " +
         dtype +
         "[?] global\n"
         "  %y = input " +
         dtype +
         "[?] global\n"
         "  %s = allocate " +
         std::to_string(32 * stride) + " at 0 in shared align 16 : " + dtype + "[" + std::to_string(32 * stride) +
         "] shared\n"
         "  %tx = thread_index on block.x\n"
         "  %ty = thread_index on block.y\n"
         "  for 0, 32, 8 { index %i\n"
         "    %r = add %i, %ty : index\n"
         "    %g = mul %r, 32 : index\n"
         "    %a = add %g, %tx : index\n"
         "    %v = load %x at %a : " +
         dtype +
         "\n"
         "    %w = mul %r, " +
         std::to_string(stride) +
         " : index\n"
         "    %b = add %w, %tx : index\n"
         "    store %s at %b, %v\n"
         "  }\n"
         "  barrier\n"
         "  for 0, 32, 8 { index %j\n"
         "    %q = add %j, %ty : index\n"
         "    %c = mul %tx, " +
         std::to_string(stride) +
         " : index\n"
         "    %d = add %c, %q : index\n"
         "    %u = load %s at %d : " +
         dtype +
         "\n"
         "    %e = mul %q, 32 : index\n"
         "    %f = add %e, %tx : index\n"
         "    store %y at %f, %u\n"
         "  }\n"
         "}\n";
}

template <class T>
std::vector<BankAccess> run(const std::string& text, const LaunchDims& dims, int threads = 1) {
  const Module m = parse_module(text);
  const Bytecode code = compile_bytecode(m.graphs[0]);
  std::vector<T> x(1024, T(1)), y(1024);
  std::vector<uint8_t> written(1024, 0);
  const Dtype dtype = sizeof(T) == 8 ? Dtype::kDouble : Dtype::kFloat;
  BankCounter banks(code);
  const std::array arguments = {HostArgument::memory(dtype, x.data(), 1024),
                                HostArgument::memory(dtype, y.data(), 1024, written)};
  const HostResult result = run_kernel(code, dims, arguments, {.threads = threads, .banks = &banks});
  EXPECT_FALSE(result.finding) << result.finding->message();
  return banks.accesses();
}

constexpr LaunchDims kTile = {.grid = {1, 1, 1}, .block = {32, 8, 1}, .shared_bytes = 32 * 33 * 8};

TEST(BankConflicts, OfATranspose) {
  const auto plain = run<float>(transpose("f32", 32), kTile);
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].buffer, "s");
  EXPECT_TRUE(plain[0].is_store);
  EXPECT_EQ(plain[0].line, 14u);
  EXPECT_EQ(plain[0].totals, totals(32, 32, 32, 1));
  EXPECT_FALSE(plain[1].is_store);
  EXPECT_EQ(plain[1].line, 21u);
  EXPECT_EQ(plain[1].totals, totals(32, 1024, 32, 32));
  const auto padded = run<float>(transpose("f32", 33), kTile);
  EXPECT_EQ(padded[0].totals, totals(32, 32, 32, 1));
  EXPECT_EQ(padded[1].totals, totals(32, 32, 32, 1));
  const auto wide = run<double>(transpose("f64", 32), kTile);
  EXPECT_EQ(wide[0].totals, totals(32, 64, 64, 1));
  EXPECT_EQ(wide[1].totals, totals(32, 1024, 64, 16));
}

// Each thread copies a vector of four floats from shared memory: from its own row of 32, or swizzled.
std::string vectors(bool is_swizzled) {
  return std::string("kernel @k index 32 {\n") +
         "  %x = input f32[?] global\n"
         "  %y = input f32[?] global\n"
         "  %s = allocate 1024 at 0 in shared align 16 : f32[1024] shared\n"
         "  %v = allocate 4 in local align 16 : f32[4] local\n"
         "  %t = thread_index on block.x\n"
         "  for 0, 32, 1 { index %i\n"
         "    %r = mul %i, 32 : index\n"
         "    %a = add %r, %t : index\n"
         "    %l = load %x at %a : f32\n"
         "    store %s at %a, %l\n"
         "  }\n"
         "  barrier\n"
         "  %row = mul %t, 32 : index\n"
         "  %chunk = floor_mod %t, 8 : index\n"
         "  %c = mul %chunk, " +
         (is_swizzled ? "4" : "0") +
         " : index\n"
         "  %p = add %row, %c : index\n"
         "  copy %v at 0 from %s at %p width 4\n"
         "  %o = load %v at 0 : f32\n"
         "  store %y at %t, %o\n"
         "}\n";
}

TEST(BankConflicts, OfVectorsOfSixteenBytes) {
  constexpr LaunchDims kWarp = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 4096};
  EXPECT_EQ(run<float>(vectors(false), kWarp).at(1).totals, totals(1, 32, 4, 8));
  EXPECT_EQ(run<float>(vectors(true), kWarp).at(1).totals, totals(1, 4, 4, 1));
}

TEST(BankConflicts, DoNotDependOnWorkers) {
  EXPECT_EQ(run<float>(transpose("f32", 32), kTile, 8)[1].totals, totals(32, 1024, 32, 32));
}

}  // namespace
}  // namespace fusebox
