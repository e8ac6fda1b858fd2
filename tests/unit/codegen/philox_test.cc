// The generator of random numbers against the known answers of its authors (Random123, kat_vectors), and how an element
// chooses its word.
#include "codegen/runtime/philox.cuh"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>

namespace fusebox {
namespace {

using Words = std::array<uint32_t, 4>;

Words block(Words c, uint64_t key) {
  exact::philox_block(c[0], c[1], c[2], c[3], key);
  return c;
}

TEST(Philox, HasTheAnswersOfItsAuthors) {
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(block({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(block({kOnes, kOnes, kOnes, kOnes}, ~uint64_t{0}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AnElementTakesItsWordOfItsBlock) {
  const uint64_t seed = 0x0123456789abcdef;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{0xfffffffe}, ~uint64_t{0} - 1})
    for (int64_t element = 0; element < 19; ++element)
      for (uint32_t stream = 0; stream < 4; ++stream) {
        const uint64_t number = offset + static_cast<uint64_t>(element / 4);
        const Words four = block({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), stream, 0}, seed);
        EXPECT_EQ(exact::philox(seed, offset, element, stream), four[static_cast<size_t>(element % 4)]);
      }
}

}  // namespace
}  // namespace fusebox
