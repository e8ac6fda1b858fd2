// The commands that this room adds to `fusebox`. A command is `add_NAME`, which declares its options and chooses
// `NAME_command`; main.cc lists them. Exit codes are those of replay/cli/commands.h, 1 where something was found.
//
//   Common common;
//   return fuzz_command({.runs = 1000, .out = "findings"}, common);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/cli/command_line.h"

namespace fusebox::cli {

struct FuzzArguments {
  uint64_t seed = 1, runs = 0;
  std::string time;  // `60`, `60s`, `5m`, `1h`; empty: no limit
  std::vector<std::string> oracles;
  std::vector<std::string> defects;
  std::string out;  // a folder
  uint64_t print_case = 0;
  bool list_oracles = false, list_defects = false, coverage = false, has_print_case = false;
};
int fuzz_command(const FuzzArguments& a, Common& common);
void add_fuzz(CLI::App& app, Common& common, Chosen& chosen);

void add_reduce(CLI::App& app, Common& common, Chosen& chosen);

}  // namespace fusebox::cli
