// Makes the launch record of a host program (ir/module/launch_record.h): the same work, in the same order, by position.
//
//   if (const auto record = launch_code(compiled.host, {"k0", "k1"})) evaluate_launch(*record, …);
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/graph/graph.h"
#include "ir/module/launch_record.h"

namespace fusebox {

// `kernels` are the names that launches call, in the order in which the record numbers them. Nothing for a program that is too
// large for the encoding, or that has an op that no record has: then the host program is interpreted, which refuses the op.
std::optional<LaunchRecord> launch_code(const Graph& host, std::span<const std::string> kernels);

}  // namespace fusebox
