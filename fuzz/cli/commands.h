// The commands that this room adds to `fusebox`. `add_NAME` declares a command's options and chooses `NAME_command`;
// main.cc lists the commands. Exit codes are those of replay/cli/commands.h; 1 means that something was found.
//
//   Common common;
//   return fuzz_command({.runs = 1000, .out = "findings"}, common);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/cli/command_line.h"

namespace fusebox::fuzz {
struct LoadedFinding;
}

namespace fusebox::cli {

struct FuzzArguments {
  uint64_t seed = 1, runs = 0;
  std::string time;           // `60`, `60s`, `5m`, `1h`; empty: no limit
  std::string case_time;      // the same for one case
  int jobs = 0;               // 0: chosen for the machine
  int64_t memory_mib = 4096;  // per worker; 0: no limit
  std::string on = "host";
  std::vector<std::string> oracles;
  std::vector<std::string> defects;
  std::string out;        // a folder
  std::string case_file;  // a file to judge instead of a campaign
  int gpu_turns = 2;      // processes that use the GPU at a time; 0: all
  size_t stop_after = 0;  // findings
  bool score = false;
  int seeds = 3;
  uint64_t print_case = 0;
  bool list_oracles = false, list_defects = false, coverage = false, has_print_case = false;
};
int fuzz_command(const FuzzArguments& a, Common& common);
void add_fuzz(CLI::App& app, Common& common, Chosen& chosen);

// The modes of `fusebox fuzz` (fuzz_campaign.cc, fuzz_score.cc, fuzz_case.cc).
int fuzz_campaign(const FuzzArguments& a, int64_t gpu_bytes, const Common& common);
int fuzz_score(const FuzzArguments& a, const Common& common);
int fuzz_case(const FuzzArguments& a, const Common& common);

// -- shared by the modes
// Parses 60, 60s, 5m or 1h; an empty text gives 0. Throws kUsage at the option.
double seconds_of(const std::string& text, const char* option);
std::vector<size_t> oracle_rows_of(const std::vector<std::string>& names);
// Loads the CUDA compiler before workers fork, if some of the cases will be judged by the oracle `compiles`. Without a
// compiler, notes that the oracle is off; throws kModuleMissing if it was asked for by name. `runs`: 0 for any number.
void prepare_compiler(const std::vector<size_t>& oracles, uint64_t runs);
// The bytes of the GPU's memory, or 0 if `on` asks for no GPU. A process of its own opens the driver. Throws kNoDevice
// or kModuleMissing if this machine has no GPU that works.
int64_t check_device(const std::string& on);
// Says so if the case does not have the inputs of the bundle that it was loaded from.
void note_other_inputs(const fuzz::LoadedFinding& f);
// Counts interrupts from now on; they no longer end the process.
void count_interrupts();
int interrupts();

// A progress line. A terminal shows it in place; a log gets a line now and then.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  void show(const std::string& line);
  void clear();  // erases the line before other output

 private:
  const bool is_terminal_, quiet_;
  double next_ = 0;
  bool drawn_ = false;
};

void add_reduce(CLI::App& app, Common& common, Chosen& chosen);

}  // namespace fusebox::cli
