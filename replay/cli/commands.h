// The subcommands of `fusebox`. Each is a function of its options that prints and returns an exit code: 0 as expected,
// 1 a difference or a failing check, 2 bad input or usage, 3 an internal error. It throws an Error, and main reports
// it.
//
//   Common common;
//   return run_command({.file = "softmax.fir", .on = "host", .check = true}, common);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serde/bundle.h"

namespace fusebox::cli {

struct Common {
  bool json = false;
  std::optional<Bundle> subject;  // the current program, with which an internal error can be reproduced
};

// Which schedule a program gets.
struct PlanArguments {
  std::string plan;    // automatic, unfused or empty: the program's own steps, or automatic if it has none
  std::string device;  // the GPU that the automatic plan is for: a preset's name; empty: the one that runs it, or h200
  bool infer_contiguity = true;  // of what ATen segments make; false: it is made contiguous
};

struct RunArguments {
  std::string file;
  std::string on;                            // empty: chosen
  std::string steps;                         // a file
  std::string precision;                     // fast, exact or empty: as the program says
  std::vector<std::string> inputs, outputs;  // NAME=SPEC, NAME=FILE.npy
  std::string record;
  bool check = false;
  PlanArguments plan;
  bool no_cache = false;
  bool cache_only = false;  // fail rather than plan or compile
  int threads = 1;
  bool tune = false;       // time neighbours of the heuristics first, and run with the best
  std::string save_steps;  // a file
  int time = 0;            // timed runs after the run; 0: none
  std::vector<std::string> defects;
};
int run_command(const RunArguments& a, Common& common);

struct BenchArguments {
  std::vector<std::string> files;
  std::string on;     // empty: chosen
  std::string where;  // the default inputs: host, gpu, or empty: those of the executor
  int runs = 20;
  int threads = 1;
  PlanArguments plan;
  std::string plot;     // a file
  std::string against;  // a file
  double tolerance = 0.1;
};
int bench_command(const BenchArguments& a, Common& common);

struct ReplayArguments {
  std::vector<std::string> files;
  std::string on;
  std::string from = "fusion";
  bool trust_artifacts = false;
  int threads = 1;
  std::vector<std::string> defects;
};
int replay_command(const ReplayArguments& a, Common& common);

struct GateArguments {
  std::vector<std::string> paths;
  std::string on;
  std::string from = "fusion";
  std::string junit;              // a file
  std::vector<std::string> only;  // stages
  int jobs = 0;                   // 0: one for each processor
  int threads = 1;
  double timeout_s = 120;  // of a bundle
  bool no_skips = false;
  bool bless = false;
  std::string reason;
  std::vector<std::string> defects;
};
int gate_command(const GateArguments& a, Common& common);

struct ShowArguments {
  std::string file;
  std::string level;  // empty: the file as it is
  std::string graph;  // an id graph: a picture of it
  std::string format = "text";
  std::string precision;  // fast, exact or empty: as the program says
  PlanArguments plan;
  bool why = false;  // level kernel: the reason of each check, and of each check left out
  std::vector<std::string> defects;
};
int show_command(const ShowArguments& a, Common& common);

struct ExplainArguments {
  std::string file;
  std::string a, b;            // %tensor.domain
  std::string steps;           // a file
  bool plan = false;           // the automatic plan, and no domains
  std::string format;          // of the plan: text, json, html
  std::string where = "host";  // the default inputs whose sizes the plan is for
  PlanArguments device;
};
// The automatic plan of a program: explain_command with `plan`.
void explain_plan(const ExplainArguments& a, Common& common);
int explain_command(const ExplainArguments& a, Common& common);

struct CacheArguments {
  std::string action;   // ls, show, verify, gc, export, import
  std::string folder;   // empty: as the environment says
  std::string file;     // a bundle, or the beginning of a record's name
  std::string program;  // a file
  int64_t bytes = -1;   // -1: as the environment says
  bool remove = false;
  bool trust_binaries = false;
};
int cache_command(const CacheArguments& a, Common& common);

int verify_command(const std::vector<std::string>& files, Common& common);
int fmt_command(const std::string& file, Common& common);
int diff_command(const std::string& a, const std::string& b, Common& common);
int convert_command(const std::string& in, const std::string& out, Common& common);

}  // namespace fusebox::cli
