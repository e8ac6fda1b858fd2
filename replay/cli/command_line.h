// The whole of a program's `main`: parses the words, runs the command that they name, reports errors. Rooms above add
// commands of their own.
//
//   const AddCommand extra[] = {add_fuzz};
//   return run_command_line(argc, argv, extra);     // 0, 1, 2 or 3, as commands.h says
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "replay/cli/commands.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

// Runs the chosen command; the command's callback sets it.
using Chosen = std::function<int()>;

// Declares a subcommand, with `add_subcommand` below, and sets `chosen` in its callback.
using AddCommand = void (*)(CLI::App& app, Common& common, Chosen& chosen);

int run_command_line(int argc, char** argv, std::span<const AddCommand> extra);

// `fusebox cache` and its actions.
void add_cache(CLI::App& app, Common& common, Chosen& chosen);

// `footer` holds what the help says after the options: prose, then examples.
CLI::App* add_subcommand(CLI::App& app, const char* name, const char* about, const std::string& footer);
// `--defect NAME`, which may be repeated.
void add_defects(CLI::App& command, std::vector<std::string>& names);

}  // namespace fusebox::cli
