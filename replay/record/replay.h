// Replay computes every stage of a recorded run again and compares it with the record.
//
// Invariants: the bundle is not changed. Code that it carries is compiled only if `trust_artifacts` says so. A stage
// that this replay cannot have (another executor, compiler or GPU) is not comparable, and has the reason. A recorded
// failure must happen again, with its code and place.
//
//   Replay r = replay(bundle, {.threads = 4});
//   r.identical() || puts(r.first_difference()->difference.c_str());
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/run/run.h"
#include "serde/bundle.h"

namespace fusebox {

// Programs up to this stage are taken from the bundle; later ones are made from them.
enum class ReplayFrom : uint8_t { kFusion, kScheduled, kKernel, kSource };
std::optional<ReplayFrom> parse_replay_from(std::string_view word);

struct ReplayOptions {
  std::optional<Executor> executor;  // none: the recorded one
  ReplayFrom from = ReplayFrom::kFusion;
  bool trust_artifacts = false;
  int threads = 1;
  Defects defects = {};  // seeded, in place of those that the bundle names; none: those of the bundle
};

enum class Verdict : uint8_t { kIdentical, kDifferent, kNotComparable };
std::string_view text(Verdict v);  // identical, different, not comparable

struct StageVerdict {
  std::string stage;
  Verdict verdict = Verdict::kIdentical;
  std::string why;         // of kNotComparable
  std::string difference;  // of the first kDifferent: recorded lines with `-`, new ones with `+`
};

struct Replay {
  std::vector<StageVerdict> stages;  // in the order of the record
  Run run;

  const StageVerdict* first_difference() const;
  bool identical() const { return first_difference() == nullptr; }
};

// The names of the digests that a run may have.
std::span<const std::string_view> digest_names();

// Throws the errors of run_program; kInvalidField for a bundle without a run, or whose stages do not fit together;
// kDamagedBundle for a digest of no stage, and for a stage that has not its own digest though the run has it again;
// kUntrusted; kUsage for a start that the executor does not have.
Replay replay(const Bundle& bundle, const ReplayOptions& options = {});

}  // namespace fusebox
