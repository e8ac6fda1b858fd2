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
  std::string time;           // `60`, `60s`, `5m`, `1h`; empty: no limit
  std::string case_time;      // the same, of one case
  int jobs = 0;               // 0: chosen for the machine
  int64_t memory_mib = 4096;  // of a worker; 0: no limit
  std::string on = "host";
  std::vector<std::string> oracles;
  std::vector<std::string> defects;
  std::string out;        // a folder
  std::string case_file;  // judged instead of a campaign
  int gpu_turns = 2;      // processes that use the GPU at a time; 0: all
  size_t stop_after = 0;  // findings
  bool score = false;
  int seeds = 3;
  uint64_t print_case = 0;
  bool list_oracles = false, list_defects = false, coverage = false, has_print_case = false;
};
int fuzz_command(const FuzzArguments& a, Common& common);
void add_fuzz(CLI::App& app, Common& common, Chosen& chosen);

// What it does besides printing lists (fuzz_campaign.cc, fuzz_score.cc, fuzz_case.cc).
int fuzz_campaign(const FuzzArguments& a, int64_t gpu_bytes, const Common& common);
int fuzz_score(const FuzzArguments& a, const Common& common);
int fuzz_case(const FuzzArguments& a, const Common& common);

// -- what they share
// 60, 60s, 5m, 1h; 0 for an empty text. Throws kUsage at the option.
double seconds_of(const std::string& text, const char* option);
std::vector<size_t> oracle_rows_of(const std::vector<std::string>& names);
// The bytes of the GPU's memory, 0 where none is asked for; found out in a process of its own. Throws kNoDevice or
// kModuleMissing where this machine has no GPU to run on.
int64_t check_device(const std::string& on);
// From now on, interrupts are counted instead of ending the process.
void count_interrupts();
int interrupts();

// A line that is written over where somebody watches, and now and then a line where a log is kept.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  void show(const std::string& line);
  void clear();  // makes place for other lines

 private:
  const bool is_terminal_, quiet_;
  double next_ = 0;
  bool drawn_ = false;
};

void add_reduce(CLI::App& app, Common& common, Chosen& chosen);

}  // namespace fusebox::cli
