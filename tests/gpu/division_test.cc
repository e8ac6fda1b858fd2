// `quotient` of runtime/division.cuh on a GPU gives the bits of its own IEEE division: for dividends of every significand by
// divisors of one significand in FUSEBOX_DIVISION_STRIDE (1: every pair of significands, in minutes), and for random pairs.
#include <cstdlib>

#include "tests/support/gpu.h"

namespace fusebox {
namespace {

constexpr std::string_view kText = R"(
#include "division.cuh"
__device__ void check(float x, float y, const Divisor& d, unsigned long long* wrong) {
  uint32_t outside = d.outside;
  const float in_loop = quotient(x, d, outside), alone = quotient(x, d), expected = __fdiv_rn(x, y);
  const bool is_loop_right = int32_t(outside) < 0 || exact::bits_of(in_loop) == exact::bits_of(expected);
  if (is_loop_right && (exact::bits_of(alone) == exact::bits_of(expected) || (alone != alone && expected != expected))) return;
  if (atomicAdd(wrong, 1ull) == 0) wrong[1] = (unsigned long long)(exact::bits_of(x)) << 32 | exact::bits_of(y);
}
// A divisor of significand `first` + `stride` · block, and dividends of every significand.
extern "C" __global__ void significands(unsigned long long* wrong, uint32_t first, uint32_t stride) {
  const float y = exact::from_bits(0x3f800000u + first + stride * blockIdx.x);
  const Divisor d(y);
  for (uint32_t k = threadIdx.x; k < 1u << 23; k += blockDim.x) check(exact::from_bits(0x3f800000u + k), y, d, wrong);
}
__device__ uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
extern "C" __global__ void any(unsigned long long* wrong) {
  const uint32_t drawn = uint32_t(mixed(blockIdx.x + 1));
  const float y = exact::from_bits(blockIdx.x % 4 == 0 ? drawn : (drawn & 0x807fffffu) | (103 + blockIdx.x % 49) << 23);
  const Divisor d(y);
  for (uint32_t k = threadIdx.x; k < 1u << 16; k += blockDim.x)
    check(exact::from_bits(uint32_t(mixed(uint64_t(blockIdx.x) << 32 | k))), y, d, wrong);
}
)";

class DivisionOnGpu : public testing::GpuTest {
 protected:
  void expect_none_wrong(const CudaPointer& wrong) {
    const std::vector<uint64_t> got = download<uint64_t>(wrong, 2);
    EXPECT_EQ(got[0], 0u) << "for example x = " << std::hex << (got[1] >> 32) << ", y = " << (got[1] & 0xffffffffu);
  }
};

TEST_F(DivisionOnGpu, OfEverySignificand) {
  constexpr uint32_t kSignificands = 1u << 23, kBlocks = 1u << 20;
  const char* given = std::getenv("FUSEBOX_DIVISION_STRIDE");
  const uint32_t stride = given ? static_cast<uint32_t>(std::max(1, std::atoi(given))) : 509;
  const CudaPointer wrong = upload(std::vector<uint64_t>(2));
  for (uint64_t first = 0; first < kSignificands; first += uint64_t{stride} * kBlocks) {
    const uint64_t left = (kSignificands - first + stride - 1) / stride;
    run(std::string(kText), "significands",
        {.grid = {static_cast<int64_t>(std::min<uint64_t>(left, kBlocks)), 1, 1}, .block = {256, 1, 1}},
        {wrong, static_cast<uint32_t>(first), stride});
  }
  expect_none_wrong(wrong);
}

TEST_F(DivisionOnGpu, OfAnyNumbers) {
  const CudaPointer wrong = upload(std::vector<uint64_t>(2));
  run(std::string(kText), "any", {.grid = {1 << 14, 1, 1}, .block = {256, 1, 1}}, {wrong});
  expect_none_wrong(wrong);
}

}  // namespace
}  // namespace fusebox
