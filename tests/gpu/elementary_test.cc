// Elementary functions of runtime/exact_*.cuh on a GPU give the host executor's bits: for every number of float where
// they take one operand, else for many pairs, and for many numbers of double. Sums of mixed bits are compared for each
// 2^20 operands. Where two differ, the results themselves tell the first difference.
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "codegen/same_bits.h"
#include "ir/table/families.h"
#include "replay/host/lanes.h"
#include "tests/support/gpu.h"

namespace fusebox {
namespace {

constexpr uint64_t kBlock = uint64_t{1} << 20;
constexpr uint64_t kFloats = uint64_t{1} << 12, kOthers = 48;  // blocks

struct Case {
  OpKind kind;
  Dtype dtype;
};

bool takes_two(OpKind kind) { return row_of(kind).format->slot_count == 2; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dtype d : {Dtype::kFloat, Dtype::kDouble})
    for (const OpRow& row : op_rows())
      if (host::find_exact_math(row.kind, d)) all.push_back({row.kind, d});
  // Not of exact_*.cuh, and exact all the same.
  for (const Dtype d : {Dtype::kFloat, Dtype::kDouble})
    for (const OpKind kind : {OpKind::kReciprocal, OpKind::kRsqrt, OpKind::kSqrt}) all.push_back({kind, d});
  return all;
}

// The same text for both: the finalizer of SplitMix64, and operand `which` of case i. Random operands have any bits, or
// exponents near 0.
#define FUSEBOX_SHARED                                                                                     \
  uint64_t mixed(uint64_t z) {                                                                             \
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;                                                             \
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;                                                             \
    return z ^ (z >> 31);                                                                                  \
  }                                                                                                        \
  uint64_t random_double(uint64_t i, uint64_t which) {                                                     \
    const uint64_t z = mixed((2 * i + which + 1) * 0x9e3779b97f4a7c15u), kept = z & 0x800fffffffffffffu;   \
    const uint64_t exponent = (z >> 52) & 2047u, mode = i % 4;                                             \
    if (mode == 0) return z;                                                                               \
    if (mode == 1) return kept | (1023u - 40u + exponent % 64u) << 52;                                     \
    if (mode == 2) return kept | (1023u - 4u + exponent % 16u) << 52;                                      \
    return kept | (1023u - 1u + exponent % 2u) << 52;                                                      \
  }                                                                                                        \
  uint32_t random_float(uint64_t i, uint64_t which) {                                                      \
    const uint32_t z = uint32_t(mixed((2 * i + which + 1) * 0x9e3779b97f4a7c15u)), kept = z & 0x807fffffu; \
    const uint32_t exponent = (z >> 23) & 255u, mode = uint32_t(i % 4);                                    \
    if (mode == 0) return z;                                                                               \
    if (mode == 1) return kept | (127u - 20u + exponent % 32u) << 23;                                      \
    if (mode == 2) return kept | (127u - 3u + exponent % 8u) << 23;                                        \
    return kept | (127u - 1u + exponent % 2u) << 23;                                                       \
  }
#define FUSEBOX_TEXT(...) #__VA_ARGS__
#define FUSEBOX_TEXT_OF(...) FUSEBOX_TEXT(__VA_ARGS__)

FUSEBOX_SHARED

// The shared functions as CUDA text.
std::string shared_text() {
  std::string text = FUSEBOX_TEXT_OF(FUSEBOX_SHARED);
  for (const std::string_view name : {"uint64_t mixed(", "uint64_t random_double(", "uint32_t random_float("})
    text.insert(text.find(name), "\n__device__ ");
  return text + "\n";
}

std::string kernel_text(const Case& c) {
  const std::string type(row_of(c.dtype).cpp), bits = c.dtype == Dtype::kFloat ? "float" : "double";
  std::string text = "#include \"elementary.cuh\"\n";
  for (const char* part : {"exponential", "logarithm", "power", "trigonometry", "error", "inverse"})
    text += "#include \"exact_" + std::string(part) + "_" + bits + ".cuh\"\n";
  text += shared_text();
  const std::string one = c.dtype == Dtype::kFloat ? "uint32_t(i)" : "random_double(i, 0)";
  const std::string first = takes_two(c.kind) ? "random_" + bits + "(i, 0)" : one;
  std::string call = "exact::" + std::string(row_of(c.kind).text) + "(x";
  if (takes_two(c.kind)) call += ", exact::from_bits(random_" + bits + "(i, 1))";
  call += ")";
  const std::string suffix = c.dtype == Dtype::kFloat ? "f" : "", number = c.dtype == Dtype::kFloat ? "1.0f" : "1.0";
  // IEEE leaves the bits of a NaN of these open.
  if (c.kind == OpKind::kReciprocal) call = number + " / x";
  if (c.kind == OpKind::kSqrt) call = "sqrt" + suffix + "(x)";
  if (c.kind == OpKind::kRsqrt) call = number + " / sqrt" + suffix + "(x)";
  text += "__device__ " + type + " result(uint64_t i) {\n  const " + type + " x = exact::from_bits(" + first +
          ");\n  const " + type + " y = " + call + ";\n  return " +
          (call.substr(0, 5) == "exact" ? "y" : "y == y ? y : exact::not_a_number(y)") + ";\n}\n" +
          "extern \"C\" __global__ void sums(unsigned long long* to) {\n"
          "  uint64_t sum = 0;\n"
          "  for (uint64_t k = threadIdx.x; k < 1048576; k += blockDim.x) {\n"
          "    const uint64_t i = uint64_t(blockIdx.x) << 20 | k;\n"
          "    sum += mixed(exact::bits_of(result(i)) + i * 0x9e3779b97f4a7c15u);\n"
          "  }\n"
          "  atomicAdd(to + blockIdx.x, (unsigned long long)sum);\n"
          "}\n"
          "extern \"C\" __global__ void values(" +
          type +
          "* to, uint64_t block) {\n"
          "  const uint64_t k = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;\n"
          "  to[k] = result(block << 20 | k);\n"
          "}\n";
  return text;
}

// The host executor's results for a block of operands.
template <class T, class Bits>
std::vector<T> host_values(const Case& c, uint64_t block) {
  std::vector<T> x(kBlock), y(kBlock), result(kBlock);
  for (uint64_t k = 0; k < kBlock; ++k) {
    const uint64_t i = block << 20 | k;
    const auto random = [&](uint64_t which) {
      if constexpr (sizeof(T) == 4)
        return random_float(i, which);
      else
        return random_double(i, which);
    };
    const bool is_float_of_one = sizeof(T) == 4 && !takes_two(c.kind);
    x[k] = std::bit_cast<T>(is_float_of_one ? static_cast<Bits>(i) : static_cast<Bits>(random(0)));
    y[k] = std::bit_cast<T>(static_cast<Bits>(random(1)));
  }
  host::LaneCall call;
  call.to = result.data();
  call.from[0] = x.data();
  call.from[1] = y.data();
  call.stride[0] = call.stride[1] = 1;
  call.end = static_cast<int32_t>(kBlock);
  host::find_math(c.kind, c.dtype, 64)(call);
  for (T& r : result)
    if (r != r) r = std::bit_cast<T>(static_cast<Bits>(~Bits{0} >> 1));
  return result;
}

template <class T, class Bits>
uint64_t host_sum(const Case& c, uint64_t block) {
  const std::vector<T> values = host_values<T, Bits>(c, block);
  uint64_t sum = 0;
  for (uint64_t k = 0; k < kBlock; ++k)
    sum += mixed(std::bit_cast<Bits>(values[k]) + (block << 20 | k) * 0x9e3779b97f4a7c15u);
  return sum;
}

class ElementaryOnGpu : public testing::GpuTest, public ::testing::WithParamInterface<Case> {
 protected:
  template <class T, class Bits>
  void check() {
    const Case c = GetParam();
    const uint64_t blocks = c.dtype == Dtype::kFloat && !takes_two(c.kind) ? kFloats : kOthers;
    const std::string text = kernel_text(c);
    const CudaPointer sums = upload(std::vector<uint64_t>(blocks));
    run(text, "sums", {.grid = {static_cast<int64_t>(blocks), 1, 1}, .block = {256, 1, 1}}, {sums});
    const std::vector<uint64_t> got = download<uint64_t>(sums, blocks);
    std::atomic<uint64_t> next{0}, first{blocks};
    const auto work = [&] {
      for (uint64_t b; (b = next++) < blocks;) {
        if (host_sum<T, Bits>(c, b) == got[b]) continue;
        for (uint64_t was = first; b < was && !first.compare_exchange_weak(was, b);) {
        }
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
    for (std::thread& t : threads) t.join();
    if (first == blocks) return;
    const CudaPointer values = upload(std::vector<T>(kBlock));
    run(text, "values", {.grid = {kBlock / 256, 1, 1}, .block = {256, 1, 1}}, {values, first});
    const std::vector<T> there = download<T>(values, kBlock), here = host_values<T, Bits>(c, first);
    for (uint64_t k = 0; k < kBlock; ++k) {
      if (std::bit_cast<Bits>(there[k]) == std::bit_cast<Bits>(here[k])) continue;
      FAIL() << "case " << (first << 20 | k) << " gives " << std::hexfloat << there[k] << ", on the host " << here[k];
    }
    FAIL() << "the sums of block " << first << " differ, and its values do not";
  }
};

TEST_P(ElementaryOnGpu, GivesTheHostsBits) {
  if (GetParam().dtype == Dtype::kFloat)
    check<float, uint32_t>();
  else
    check<double, uint64_t>();
}

INSTANTIATE_TEST_SUITE_P(Functions, ElementaryOnGpu, ::testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(row_of(info.param.kind).text) + "_" + std::string(text(info.param.dtype));
});

// One correction of the GPU's approximation gives the correctly rounded reciprocal: for every number in the range.
class ReciprocalOnGpu : public testing::GpuTest {};
TEST_F(ReciprocalOnGpu, IsCorrectlyRounded) {
  const std::string text =
      "#include \"elementary.cuh\"\n"
      "extern \"C\" __global__ void count(unsigned long long* wrong) {\n"
      "  for (uint32_t k = threadIdx.x; k < 1048576; k += blockDim.x) {\n"
      "    const float x = exact::from_bits(blockIdx.x << 20 | k), a = exact::magnitude(x);\n"
      "    if (!(a >= 0x1p-126f && a <= 0x1p126f)) continue;\n"
      "    if (exact::bits_of(exact::reciprocal_in_range(x)) != exact::bits_of(1.0f / x)) atomicAdd(wrong, 1ull);\n"
      "  }\n"
      "}\n";
  const CudaPointer wrong = upload(std::vector<uint64_t>(1));
  run(text, "count", {.grid = {kFloats, 1, 1}, .block = {256, 1, 1}}, {wrong});
  EXPECT_EQ(download<uint64_t>(wrong, 1)[0], 0u);
}

// Every function that is said to be exact and elementary is among the cases.
TEST(ElementaryCases, AreTheExactOnes) {
  for (const OpRow& row : op_rows()) {
    switch (row.kind) {
      case OpKind::kPow:
      case FUSEBOX_ELEMENTARY_OPS:
        for (const Dtype d : {Dtype::kFloat, Dtype::kDouble})
          EXPECT_EQ(gives_same_bits(row.kind), host::find_exact_math(row.kind, d) != nullptr) << row.text;
        break;
      default:  // any other: no function of exact_*.cuh
        break;
    }
  }
}

}  // namespace
}  // namespace fusebox
