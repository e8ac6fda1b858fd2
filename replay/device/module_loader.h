// Loads the modules that need ATen or CUDA at first use. They lie beside the program or the library that asks: in its own
// folder, in the one above, in ../lib or in ../../lib. Folders that FUSEBOX_MODULE_PATH names, separated by colons, come
// last. A module of another build is refused.
//
//   const AtenApi& aten = load_aten();        // throws kModuleMissing, and says what to install
#pragma once

#include <string>
#include <vector>

#include "replay/device/aten_api.h"

namespace fusebox {

inline constexpr const char* kModulePathVariable = "FUSEBOX_MODULE_PATH";

// The address of an entry point of libfusebox_NAME.so, which stays loaded. Throws kModuleMissing, whose message says what
// to do: `advice` if the file is nowhere.
void* load_module_entry(const std::string& name, const char* entry, const std::string& advice);

// The folders that are searched for a module, in order.
std::vector<std::string> module_folders();

// The reference evaluator. It is loaded once; later calls cost nothing.
const AtenApi& load_aten();
// The same, or nullptr if the module is not there.
const AtenApi* find_aten();

}  // namespace fusebox
