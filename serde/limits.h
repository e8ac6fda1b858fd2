// Upper bounds of what a file may hold. Beyond them `encode` refuses to write and `decode` refuses to read, both with
// kTooLarge. So every file that was written can be read, and a hostile file cannot exhaust the reader.
#pragma once

#include <cstddef>

namespace fusebox::limits {

inline constexpr size_t kFileBytes = size_t{1} << 30;

// Memory that decoding may take: kMemoryFactor bytes for each byte of the file, and kMemoryBase. A file that we wrote
// takes less than half of it; a file whose fields share objects may ask for more.
inline constexpr size_t kMemoryFactor = 40;
inline constexpr size_t kMemoryBase = size_t{1} << 18;

inline constexpr size_t kNameBytes = 1024;             // of a value, domain, graph, segment, …
inline constexpr size_t kTextBytes = size_t{1} << 16;  // of an option, a message, a string attribute

inline constexpr size_t kGraphs = 1 << 12;    // graphs, step lists, segmentations, input specs of a module
inline constexpr size_t kNodes = 1 << 18;     // values, tensors, domains, … of a graph, and any list of them
inline constexpr size_t kAxes = 1 << 8;       // dimensions of a shape
inline constexpr size_t kIntegers = 1 << 16;  // of a list attribute, a device mesh
inline constexpr size_t kSteps = 1 << 16;     // of a list
inline constexpr size_t kRanks = 1 << 10;
inline constexpr size_t kRecords = 1 << 14;  // options, digests, inputs, outputs, layouts, artifacts

inline constexpr size_t kRegionDepth = 128;         // nesting of regions
inline constexpr size_t kDomainDepth = 1 << 11;     // transforms between a domain and the one that it comes from
inline constexpr size_t kLoopBroadcasts = 1 << 10;  // domains of a graph that stand for one of another tensor

}  // namespace fusebox::limits
