// The gate replays every bundle of a folder in child processes (gate_workers.h) and judges each.
//
// Invariants: no bundle stops the others: a bundle that cannot be read, dies or takes too long is a failure of that
// bundle. Results come in the order of names. A bundle that records a failure must fail the same way. If it runs now it
// is `kFixed`, which holds the gate until the bundle is blessed, so that the fix is kept. Only `bless` writes, and each
// file whole or not at all. It never records a failure over a run that worked.
//
//   gate(find_bundles({"corpus/regress"}), {.jobs = 2}, [](const GateResult& r) { puts(r.message.c_str()); });
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/record/replay.h"

namespace fusebox {

enum class GateStatus : uint8_t {
  kPassed,     // as recorded, also a recorded failure
  kDifferent,  // a stage, or the outcome, differs
  kFixed,      // recorded as a failure, and runs now
  kError,      // unreadable, died, took too long
  kSkipped,    // this machine or this build lacks something
  kBlessed,    // was different or fixed, and is now recorded anew
};
std::string_view text(GateStatus s);

struct GateOptions {
  ReplayOptions replay = {};
  int jobs = 1;                        // processes
  double timeout_s = 120;              // of one bundle
  std::vector<std::string> only = {};  // the stages to compare, beside the outcome; none: all recorded ones
  bool allow_skips = true;             // false: a skip becomes an error
  std::string bless_reason = {};       // not empty: records differing bundles anew, for this reason
};

struct GateChange {
  std::string stage;
  std::string was, is;  // digests; for the outcome a code and place, or `outputs`
};

struct GateResult {
  std::string path;
  GateStatus status = GateStatus::kError;
  std::string program, executor;
  bool records_bug = false;  // a failure, or a run with seeded defects
  std::string stage;         // the first that differs
  std::string message;       // a line; empty if passed as recorded
  std::string difference;    // recorded lines with `-`, new ones with `+`; the kernels' text below
  std::vector<StageVerdict> stages;
  std::vector<GateChange> changes;
  std::string rewritten;  // the bytes of the bundle recorded anew, if it can be blessed
  double seconds = 0;

  bool ok() const {
    return status == GateStatus::kPassed || status == GateStatus::kSkipped || status == GateStatus::kBlessed;
  }
};

// Stages that `GateOptions::only` may name, in their order.
std::span<const std::string_view> gate_stages();

// Sorted, each once: the `.fuse` files below folders, and paths that are files. Throws kFileRead for a missing path,
// kUsage if there is no bundle at all.
std::vector<std::string> find_bundles(const std::vector<std::string>& paths);

// One bundle, in this process. Throws nothing; writes nothing.
GateResult gate_bundle(const std::string& path, const GateOptions& options);

// Calls `done` in the order of paths. Calls `progress` after each bundle with the number of finished and of failed
// ones. Forks: call it while no other thread runs.
void gate(
    const std::vector<std::string>& paths, const GateOptions& options,
    const std::function<void(const GateResult&)>& done,
    const std::function<void(size_t, size_t)>& progress = [](size_t, size_t) {});

// How the processes of a gate exchange results.
std::string pack(const GateResult& r);
GateResult unpack_gate_result(std::string_view packed);

// Blesses the results that carry `rewritten`: appends the reason and the changes to the file `BLESSED` of each bundle's
// folder, then writes the bundles, and makes the results kBlessed. Leaves a folder with a file `KEEP` alone. Throws
// kFileRead, kFileWrite.
void bless(std::vector<GateResult>& results, const std::string& reason);

// XML that CI systems read: a test suite with one test case for each bundle.
std::string junit_xml(const std::vector<GateResult>& results, double seconds);

}  // namespace fusebox
