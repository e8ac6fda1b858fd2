// The executor that a command runs a program on, as its words choose.
//
//   const Executor executor = choose_executor(options.on);
#pragma once

#include <string>

#include "replay/run/run.h"

namespace fusebox::cli {

// The named executor; else a GPU if there is a usable one; else the host. Notes why there is none.
Executor choose_executor(const std::string& on);

}  // namespace fusebox::cli
