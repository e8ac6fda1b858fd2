// Segmentation → host program: allocate, launch, run by ATen, copy, free, in the order of the segments.
//
// The host program takes the fusion's inputs in order and gives its outputs in order. A tensor that crosses segments is
// allocated contiguous in its allocation order before the segment that makes it, and freed after the last that reads
// it. An output that overwrites an input is written in place where its segment says so, else computed beside it and
// copied at the end.
#pragma once

#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"

namespace fusebox {

// `launches`: for each kernel segment its launch graph (lower.h); for other executors an unused empty graph.
Graph build_host_program(const Graph& fusion, const Segmentation& segmentation, const std::vector<Graph>& launches,
                         const Defects& defects = {});

}  // namespace fusebox
