// Turns a segmentation into a host program, which allocates, launches, runs ATen, copies and frees, in the order of the
// segments.
//
// The host program takes the fusion's inputs in order and gives its outputs in order. A tensor that crosses segments is
// allocated before the segment that makes it, contiguous in its allocation order. It is freed after the last segment
// that reads it. ATen allocates what its segments make, in the layout that the crossing declares. An output that overwrites an input is written in place if its segment says so. Otherwise it is
// computed beside the input and copied at the end.
#pragma once

#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"

namespace fusebox {

// `launches` holds the launch graph of each kernel segment (lower.h), and an unused empty graph for any other segment.
Graph build_host_program(const Graph& fusion, const Segmentation& segmentation, const std::vector<Graph>& launches,
                         const Defects& defects = {});

}  // namespace fusebox
