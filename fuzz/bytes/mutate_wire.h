// Mutates encoded modules and bundles. The bytes still look like FlatBuffers, so they pass the Verifier's first checks
// and test the decoder. A mutation retargets offsets, drops or overlays fields of a vtable, moves lengths to
// boundaries, splices pieces of another file in, or changes numbers in the graph itself.
//
// Invariants: any bytes may be mutated; the same choices give the same bytes; the result may be damaged in any way.
//
//   RandomSource random(seed);
//   Bytes next = mutate_wire(random, bytes, other);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/base/random_source.h"
#include "ir/graph/graph.h"

namespace fusebox::fuzz {

using Bytes = std::vector<uint8_t>;

// Makes one to three mutations. Pieces may be taken from `other`, which may be empty.
Bytes mutate_wire(RandomSource& random, std::span<const uint8_t> bytes, std::span<const uint8_t> other = {});

// Puts the graphs of both files into one if both can be read. Otherwise copies pieces of one file into the other.
Bytes cross_wire(RandomSource& random, std::span<const uint8_t> a, std::span<const uint8_t> b);

// Sets one id, number or list of a graph to something else, in range or just beyond it.
void damage_graph(RandomSource& random, Graph& g);

}  // namespace fusebox::fuzz
