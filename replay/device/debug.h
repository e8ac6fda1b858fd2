// The environment variable FUSEBOX_DEBUG: for finding the kernel that makes a GPU fail.
//
// With it, a GPU is waited for after every launch, new memory holds a pattern, calls from Python take the slower way,
// and a fault leaves a bundle.
#pragma once

namespace fusebox {

// Whether FUSEBOX_DEBUG is set, to neither nothing nor 0. It is read once.
bool debug_launches();

}  // namespace fusebox
