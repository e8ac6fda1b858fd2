// Replay: every stage of a recorded run computed again and compared with what was recorded.
//
// Invariants: the bundle is not changed; code that it carries is compiled only where `trust_artifacts` says so. A stage
// that the bundle has and this replay cannot have (another executor, compiler or GPU) is not comparable, with the
// reason; a recorded failure must happen again, with its code and place.
//
//   Replay r = replay(bundle, {.threads = 4});
//   r.identical() || puts(r.first_difference()->difference.c_str());
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/run/run.h"
#include "serde/bundle.h"

namespace fusebox {

// The stage up to which programs are taken from the bundle; what follows is made from them.
enum class ReplayFrom : uint8_t { kFusion, kScheduled, kKernel, kSource };
std::optional<ReplayFrom> parse_replay_from(std::string_view word);

struct ReplayOptions {
  std::optional<Executor> executor;  // none: the recorded one
  ReplayFrom from = ReplayFrom::kFusion;
  bool trust_artifacts = false;
  int threads = 1;
  Defects defects = {};  // seeded, instead of those that the bundle names; none: those
};

enum class Verdict : uint8_t { kIdentical, kDifferent, kNotComparable };
std::string_view text(Verdict v);  // identical, different, not comparable

struct StageVerdict {
  std::string stage;
  Verdict verdict = Verdict::kIdentical;
  std::string why;         // of kNotComparable
  std::string difference;  // of the first kDifferent: what was recorded with `-`, what is now with `+`
};

struct Replay {
  std::vector<StageVerdict> stages;  // in the order of the record
  Run run;

  const StageVerdict* first_difference() const;
  bool identical() const { return first_difference() == nullptr; }
};

// Throws what run_program throws; kInvalidField for a bundle without a run, or whose stages do not fit together;
// kUntrusted; kUsage for a start that the executor cannot have.
Replay replay(const Bundle& bundle, const ReplayOptions& options = {});

}  // namespace fusebox
