// The gate: every bundle of a folder replayed, each in a process of its own kind (gate_workers.h), and judged.
//
// Invariants: nothing that a bundle does stops the others: a bundle that cannot be read, dies or takes too long is a
// failure of that bundle. Results come in the order of names. A bundle that records a failure must fail the same way;
// one that runs now is `kFixed`, which holds the gate until it is blessed, so that the fix is kept. Only `bless`
// writes, and each file whole or not at all. It never takes a failure for what used to run.
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
  kPassed,     // as recorded, failures too
  kDifferent,  // a stage, or the outcome
  kFixed,      // recorded as a failure, and runs now
  kError,      // unreadable, died, took too long
  kSkipped,    // needs what this machine or this build lacks
  kBlessed,    // was different or fixed, and is recorded anew
};
std::string_view text(GateStatus s);

struct GateOptions {
  ReplayOptions replay = {};
  int jobs = 1;                        // processes
  double timeout_s = 120;              // of one bundle
  std::vector<std::string> only = {};  // the stages that are compared, beside the outcome; none: all that are recorded
  bool allow_skips = true;             // false: what would be skipped is an error
  std::string bless_reason = {};       // not empty: what differs is recorded anew, for this reason
};

struct GateChange {
  std::string stage;
  std::string was, is;  // digests; of the outcome a code and place, or `outputs`
};

struct GateResult {
  std::string path;
  GateStatus status = GateStatus::kError;
  std::string program, executor;
  bool records_bug = false;  // a failure, or a run with seeded defects
  std::string stage;         // the first that differs
  std::string message;       // a line; empty where passed as recorded
  std::string difference;    // lines: what was recorded with `-`, what is now with `+`; the kernels' text below
  std::vector<StageVerdict> stages;
  std::vector<GateChange> changes;
  std::string rewritten;  // the bytes of the bundle, recorded anew, where it can be blessed
  double seconds = 0;

  bool ok() const {
    return status == GateStatus::kPassed || status == GateStatus::kSkipped || status == GateStatus::kBlessed;
  }
};

// Stages that `GateOptions::only` may name, in their order.
std::span<const std::string_view> gate_stages();

// The `.fuse` files below folders, and files as they are, sorted, each once. Throws kFileRead for a path that is not
// there, kUsage where there is no bundle at all.
std::vector<std::string> find_bundles(const std::vector<std::string>& paths);

// One bundle, in this process. Throws nothing; writes nothing.
GateResult gate_bundle(const std::string& path, const GateOptions& options);

// `done` in the order of paths; `progress`, when any bundle is through, takes how many are and how many of them failed.
// Forks: to be called where no other thread runs.
void gate(
    const std::vector<std::string>& paths, const GateOptions& options,
    const std::function<void(const GateResult&)>& done,
    const std::function<void(size_t, size_t)>& progress = [](size_t, size_t) {});

// For the processes of a gate.
std::string pack(const GateResult& r);
GateResult unpack_gate_result(std::string_view packed);

// What `bless` does with results that carry `rewritten`: the reason and the changes at the end of the file `BLESSED` of
// each bundle's folder, then the bundles. Makes them kBlessed. A folder with a file `KEEP` is left alone. Throws
// kFileRead, kFileWrite.
void bless(std::vector<GateResult>& results, const std::string& reason);

// XML that CI systems read: a test suite with a test case a bundle.
std::string junit_xml(const std::vector<GateResult>& results, double seconds);

}  // namespace fusebox
