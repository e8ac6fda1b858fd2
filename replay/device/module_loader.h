// Modules that are loaded when they are asked for: what needs ATen or CUDA. They lie beside the program, or beside the
// library that asks: in its own folder, in the one above, in ../lib or in ../../lib.
//
//   const AtenApi& aten = load_aten();        // throws kModuleMissing, and says what to install
#pragma once

#include <string>
#include <vector>

#include "replay/device/aten_api.h"

namespace fusebox {

// The address of an entry point of libfusebox_NAME.so, which stays loaded. Throws kModuleMissing; `advice` is what its
// reader should do.
void* load_module_entry(const std::string& name, const char* entry, const std::string& advice);

// Where a module is looked for, in order.
std::vector<std::string> module_folders();

// The reference evaluator. It is loaded once; later calls cost nothing.
const AtenApi& load_aten();
// The same, or nullptr where the module is not there.
const AtenApi* find_aten();

}  // namespace fusebox
