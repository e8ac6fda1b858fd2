// What every GPU of CUDA 13 takes in a launch.
#pragma once

#include <array>
#include <cstdint>

namespace fusebox {

inline constexpr std::array<int64_t, 3> kMostGrid = {0x7fffffff, 65535, 65535};  // blocks along x, y and z
inline constexpr std::array<int64_t, 3> kMostBlock = {1024, 1024, 64};           // threads of a block along x, y and z

}  // namespace fusebox
