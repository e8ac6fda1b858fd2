// The shrinker: turns a case that shows a failure into a small one that shows the same failure. It tries deletions and
// judges each result.
//
// Invariants:
// - every accepted case has the signature (stage, check, place class) of the first, from the same oracle and under the
//   same defects; if the first case is sound without the defects, so is every other;
// - each accepted case is smaller than the one before (CaseSize), so the search ends; without a time limit the result
//   depends only on the case;
// - unless time ran out, no edit of any row of reduction_table.inc gives a smaller case with the signature.
//
//   const LoadedFinding f = load_finding("findings/aten-differs-add.fuse");
//   const Reduction r = reduce(f, {.seconds = 60});
//   if (r.shows) write_reduced(r, f, "small.fuse");
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/generate/case.h"
#include "fuzz/oracle/oracle.h"

namespace fusebox::fuzz {

// One deletion or simplification. False, or an Error, if it does not fit the case.
using Edit = std::function<bool(Case&)>;
struct ReductionRow {
  std::string_view text;
  std::vector<Edit> (*edits)(const Case&);
  bool joined;  // tries many edits at once, then halves their number
  std::string_view summary;
};
std::span<const ReductionRow> reduction_rows();
// The case after those of the edits that fit, with its schedule and inputs adapted. Nothing if none fits or if the
// program does not verify or bind its inputs.
std::optional<Case> edited(const Case& from, std::span<const Edit> edits);

// The size of a case; earlier members count more. `detail` counts things that make a case harder to read but no larger:
// symbols, layouts, values, factors, attributes.
struct CaseSize {
  int64_t ops = 0;  // ops that make tensors
  int64_t steps = 0;
  int64_t signature = 0;  // inputs and outputs
  int64_t axes = 0;       // of all tensors
  int64_t elements = 0;   // of inputs and outputs
  int64_t inner = 0;      // elements of intermediate tensors
  int64_t scalars = 0;    // computed scalars, except sizes
  int64_t detail = 0;
  auto operator<=>(const CaseSize&) const = default;
  // (ops + steps) × elements
  double product() const;
};
CaseSize size_of(const Case& c);

struct LoadedFinding {
  Case subject;
  Defects defects;
  std::string signature;          // as recorded; empty: the first that shows
  bool has_other_inputs = false;  // the bundle holds elements as bytes; in the case a generator makes them
};
// Loads a bundle or a text with a program, a schedule and inputs. Throws what loading throws, and kMissingInput if
// inputs have no specs.
LoadedFinding load_finding(const std::string& path);

// Reads the same from the bytes of a bundle or from text; `path` is for error messages.
LoadedFinding read_finding(std::span<const uint8_t> bytes, const std::string& path);
// Loads the programs of a text that holds several, in order. Returns nothing for a single program or a bundle.
std::vector<Case> load_batch(const std::string& path);

struct ReduceOptions {
  double seconds = 60;                      // 0: no limit
  double case_seconds = 20;                 // per candidate; taking longer is a failure of its own
  int64_t memory_bytes = int64_t{4} << 30;  // for the process that judges a candidate
  int64_t step_limit = int64_t{1} << 22;
  bool on_gpu = false;                                // asks the oracle `gpu` too, in the process of each candidate
  std::function<std::unique_ptr<Device>()> gpu = {};  // empty: a CUDA device
  // For tests: called in the judging process before it judges; it may die there.
  std::function<void(const Case&)> at = {};
  // Called after each candidate with the seconds, the number of candidates tried and the best size; may be empty.
  std::function<void(double, uint64_t, const CaseSize&)> progress = {};
};

struct Reduction {
  bool shows = false;  // false: the case has no failure, or not the recorded one
  bool finished = false;
  bool needs_defects = false;  // every accepted case is sound without the defects
  bool is_deadly = false;      // the result ends the process that judges it
  Finding finding;             // of the result; if `shows` is false, what the case shows instead
  Case result;
  CaseSize before, after;
  uint64_t candidates = 0, judged = 0, accepted = 0;
  double seconds = 0;
};
Reduction reduce(const LoadedFinding& f, const ReduceOptions& options = {});

// Judges a case in a child process, so that a crash is an answer too. Returns the finding with the wanted signature if
// there is one, otherwise the first.
class ReductionJudge {
 public:
  ReductionJudge(Defects defects, std::string signature, const ReduceOptions& options);
  std::optional<Finding> judge(const Case& c);
  // Whether the case shows the signature and, if asked for, is sound without the defects.
  bool shows(const Case& c);
  void set(const Finding& wanted) { signature_ = text(wanted.signature); }
  bool last_was_deadly() const { return deadly_; }
  // From now on, cases must be sound without the defects.
  void ask_for_soundness(bool sound = true) { sound_ = sound; }

 private:
  std::optional<Finding> judge(const Case& c, const Defects& defects);

  Defects defects_;
  std::string signature_;
  ReduceOptions options_;
  std::optional<size_t> row_;  // the oracle that reports the signature
  bool sound_ = false, deadly_ = false;
};

// Writes the reduced case as a bundle, or as text if the path ends in .fir. Never leaves a partial file.
void write_reduced(const Reduction& r, const Defects& defects, const std::string& path);

}  // namespace fusebox::fuzz
