// What a kernel plan says of clusters of blocks, which run together and reach one another's shared memory.
//
//   plan.cluster            // Cluster{ParallelType::kGridX, 8}: the step `cluster of [] blocks 8 on grid.x`
//   plan.cluster_places()   // with one sum of a row: one list of one element
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

// The clusters that the schedule asks for: all blocks along a grid axis.
struct Cluster {
  ParallelType axis = ParallelType::kGridX;
  int64_t blocks = 1;
};

// The shared memory of a block for the parts of all blocks of its cluster: `lists` lists of `elements` elements for each
// block and each combination of the threads along `groups`. Each list has kSets sets of such places, which exchanges take
// in turn. A place has the bytes of the widest dtype, so that the sets do not overlap whatever the dtypes of two exchanges.
struct ClusterPlaces {
  static constexpr int64_t kSets = 2, kPlaceBytes = 16;

  int64_t lists = 0, elements = 0;
  std::vector<ParallelType> groups;
};

}  // namespace fusebox
