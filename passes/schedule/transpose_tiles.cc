#include "passes/schedule/transpose_tiles.h"

namespace fusebox {
namespace {

constexpr int64_t kLargeTile = 64, kThreads = 256;
constexpr int64_t kManyTiles = 192;  // large ones, for each multiprocessor

}  // namespace

// Large tensors have whole tiles enough for all multiprocessors. On an H200 most are fastest in tiles of 64 and blocks of 256
// threads: [8192, 8192] in bf16, by vectors of 16 bytes, takes 95 µs so, and 105 µs in tiles of 32. Narrower vectors need more
// threads: [58176, 7634] in bf16, by two elements, takes 847 µs by 256 threads and 683 by 512. By four elements, [29260, 9920]
// takes 425 to 430 µs by either. So do elements of four bytes: [10752, 13752] in f32 takes 418 µs, and 425 µs in tiles of 32.
// Single elements of two bytes are as fast in small tiles, whose barriers few threads wait for: [6007, 9001] in bf16 takes
// 102 µs. But of very many tiles, large ones read and store fewer parts of sectors: [7360, 32921] takes 428 µs, and 471 in
// tiles of 32.
//
// Small tensors have smaller tiles, which are more. On an H100, [832, 104] in bf16 took 6.9 µs in 26 tiles of 64, and 5.7 in
// tiles of 32; [349, 704] by single elements took 7.3 in 242 tiles of 32, and 6.1 in tiles of 16. Between them, single elements of
// two bytes took 3 to 5 % less by 256 threads than by 128.
Tile choose_tile(const DeviceProperties& device, const TiledSizes& sizes, int64_t vector, bool is_narrow,
                 int64_t bytes) {
  const auto all = static_cast<double>(device.multiprocessors);
  const bool has_pairs = vector == 2 && is_narrow;
  const bool is_large = sizes.shorter() >= (has_pairs ? 2 : 4) * kLargeTile;
  const bool has_single_halves = vector == 1 && is_narrow && sizes.tiles(kLargeTile) < kManyTiles * all;
  int64_t side = is_large && !has_single_halves ? kLargeTile : std::clamp(8 * vector, kLeastTile, kLargeTile);
  // Several blocks of a multiprocessor share its memory.
  while (side > kLeastTile && 2 * side * side * bytes > device.shared_block_bytes) side /= 2;
  while (side > kLeastTile && (sizes.tiles(side) < all || sizes.shorter() <= side / 2)) side /= 2;
  if (vector == 1 && sizes.tiles(kLeastTile) < 2.5 * all) return {kLeastTile / 2, kThreads / 2};
  if (!is_large) return {side, kThreads};
  if (!is_narrow) return {side, 2 * kThreads};
  if (has_single_halves) return {side, sizes.tiles(side) < 16 * all ? kThreads : kThreads / 2};
  return {side, vector == 2 || vector == 4 ? 2 * kThreads : kThreads};
}

}  // namespace fusebox
