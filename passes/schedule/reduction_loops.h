// The steps of a schedule of reductions, from its heuristics. `registers`: a row stays in the registers of a block, which
// reads it once. `passes`: every pass over the reduced axes reads its inputs again; a fusion of one pass is scheduled so
// too.
//
// The choices, by key:
//   axes       inner: the reduced axes lie innermost in memory. outer: kept axes do
//   form       registers, passes
//   vector     elements of an access; 1: none
//   in_vectors the inputs and outputs that are read and stored so, separated by commas
//   merge      first: the vectors lie in the product of the reduced axes, or of the kept axes that are columns. last: in the
//              innermost axis. parts: nested, the same, and the innermost axis is not merged with the others
//   lanes      threads of block.x, neighbours along the innermost axis
//   warps      inner: groups of `lanes` threads that share a row, at most. outer: reduced places that a block takes at once
//   chunks     registers: accesses of a thread to one tensor, for a row
//   unroll     passes: accesses of a thread to one tensor that are under way together
//   rows       inner, and outer with places: rows that a block takes at once
//   slices     blocks that share a row, and combine their parts
//   most_rows  passes, where blocks that share rows wait for one another: the most rows whose blocks are on the GPU at once
//   most_columns  outer: the same of the columns; most_rows is then of the other kept axes
//   threads    of a block, at most
//   blocks     that a multiprocessor should hold at once
//   walk       inner_outer: rows that a thread takes one after another, while it sums columns
//   walkers    inner_outer: blocks of the grid that take groups of `walk` rows; the sums of their columns are stored for
//              each group, and all blocks share the columns behind a barrier (column_parts.h). Not set: each block takes
//              one group, and the last one combines their sums
//   part       nested: lanes that take a part of a row, side by side with those of other parts
//   tail       nested: some of these lanes have no elements
//   longest    registers: the longest row that fits. outer passes: the longest column, if a thread sums it at once
//   keep       registers, inputs: each pass makes anew what it needs of them. Not set: what was made is kept
//   places     outer registers, lanes: short columns, of which neighbouring threads of a warp take the places
//   cluster    registers: blocks that share a row. passes: the slices, which then combine their parts in shared memory
//
// The loops, outermost first; b and s are of the grid, z, w and l of the block, v is vectorized:
//   inner registers   b z r w l v; without vectors b z w l r, and a warp that lies inside the row runs without checks
//   nested            b r q w z l v: r, w and z are of the parts, q (if `tail`), l and v within a part
//   inner_outer       the same as inner registers, with b split into g of the grid and s; with walkers into g of the grid, o and s
//   inner passes      b z s o u l v
//   outer registers   b s r w l v; with places b z r w l v
//   outer passes      b s o u w l v
#pragma once

#include <vector>

#include "ir/module/step.h"
#include "passes/schedule/heuristics.h"
#include "passes/schedule/reduction_access.h"

namespace fusebox {

std::vector<Step> plan_reduction(const ScheduleView& view, const ReductionSpace& space, const Heuristics& h);

}  // namespace fusebox
