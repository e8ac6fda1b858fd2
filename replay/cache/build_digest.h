// A digest of the sources that decide what a program is compiled to: the rooms ir, serde, passes and codegen. It is part
// of every key of a cache, so a record of another build is not found, and programs built from the same sources share
// their records. The build computes it.
//
//   build_digest() == "5f0c…"   // 32 hex digits
#pragma once

#include <string_view>

namespace fusebox {

std::string_view build_digest();

}  // namespace fusebox
