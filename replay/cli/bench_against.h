// An earlier `fusebox bench --json`, and what has changed since.
//
//   EarlierBench before = parse_bench(read_text_file("before.json"), "before.json");
//   require_comparable(before, head, "before.json");
//   change_of("softmax.fir", before.median_us.at("softmax.fir"), 12.5, 0.1).is_slower
#pragma once

#include <map>
#include <string>

#include "replay/run/run.h"

namespace fusebox::cli {

// The facts that times depend on, beside the programs.
struct BenchHead {
  Executor executor = Executor::kHost;
  std::string gpu;  // empty on the host executor
  std::string where;
  int threads = 1;  // of the host executor
  bool unfused = false;

  std::string json() const;
};

struct EarlierBench {
  std::string head;                         // as BenchHead::json
  std::map<std::string, double> median_us;  // of the whole, by file; programs that were not timed are left out
};

// Throws kSyntax or kInvalidField for a text that `bench --json` did not write, with the path and the line as place.
EarlierBench parse_bench(const std::string& text, const std::string& path);

// Throws kUsage if the earlier times are of another executor, GPU, set of inputs, number of threads or plan.
void require_comparable(const EarlierBench& earlier, const BenchHead& now, const std::string& path);

struct BenchChange {
  std::string file;
  double before_us = 0, now_us = 0;
  bool is_slower = false, is_faster = false;
  double ratio() const { return before_us > 0 ? now_us / before_us : 1; }
};

// Slower: more than `tolerance` of the earlier time above it. Faster: the earlier one is slower in the same way.
BenchChange change_of(const std::string& file, double before_us, double now_us, double tolerance);

}  // namespace fusebox::cli
