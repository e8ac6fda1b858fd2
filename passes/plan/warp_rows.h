// Rows of one warp, or of part of one. Threads along block.x lie side by side in the lanes of warps. Where a row has a power of two of
// them, and all warps of the block are full, its lanes combine by shuffles (`warp_reduce`): without a barrier and without
// memory, in the order in which a block would combine them.
//
//   block.x 8, block.y 16       four rows in each of four warps: 8 lanes
//   block.x 32, block.y 4       a row in each of four warps: 32 lanes
//   block.x 8, block.y 3        24 threads are no full warp: the block combines its rows in shared memory
//   block.x 8, block.y n        the same
#pragma once

#include "passes/plan/kernel_plan.h"

namespace fusebox {

// The lanes that combine each row of a reduction: a power of two from 2 to 32. 0: the block or the grid combines it.
int64_t lanes_of(const KernelPlan& plan, const Exchange& exchange);

}  // namespace fusebox
