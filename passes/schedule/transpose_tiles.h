// The tiles and blocks of a transpose, by measured sizes.
//
//   // [29260, 9920] of bf16, by vectors of 8 bytes
//   choose_tile(h200, {.across = 29260, .along = 9920}, 4, true, 2)   // {.side = 64, .threads = 256}
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/module/device_properties.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {

constexpr int64_t kLeastTile = 32;

// The sizes that decide the tiles of a tensor.
struct TiledSizes {
  int64_t across = 1, along = 1;
  double others = 1;  // the product of the other axes

  int64_t shorter() const { return std::min(across, along); }
  double tiles(int64_t tile) const {
    return others * static_cast<double>(ceil_div(across, tile)) * static_cast<double>(ceil_div(along, tile));
  }
};

struct Tile {
  int64_t side, threads;
};

// `vector`: elements of an access. `is_narrow`: no element has more than two bytes. `bytes`: of an element of all copies in
// shared memory together.
Tile choose_tile(const DeviceProperties& device, const TiledSizes& sizes, int64_t vector, bool is_narrow,
                 int64_t bytes);

}  // namespace fusebox
