// Mutations of encoded modules and bundles: bytes that still look like FlatBuffers, so that what is asked is the
// decoder and not the Verifier's first check. Offsets are retargeted, fields dropped from a vtable or laid over one
// another, lengths moved to boundaries, pieces of another file spliced in, numbers of nodes changed in the graph
// itself.
//
// Invariants: any bytes may be mutated; the same choices give the same bytes; what comes back may be damaged in any
// way.
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

// One to three mutations. `other`: what pieces are taken from; may be empty.
Bytes mutate_wire(RandomSource& random, std::span<const uint8_t> bytes, std::span<const uint8_t> other = {});

// The graphs of both in one file, where both can be read; else a piece of one in the other.
Bytes cross_wire(RandomSource& random, std::span<const uint8_t> a, std::span<const uint8_t> b);

// One id, number or list of a graph set to something else, in range or just beyond it.
void damage_graph(RandomSource& random, Graph& g);

}  // namespace fusebox::fuzz
