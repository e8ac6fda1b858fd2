// The shrinker: from a case that shows a failure to a small one that shows the same failure, by deletions that are
// tried and judged.
//
// Invariants:
// - every case on the way has the signature (stage, check, place class) of the first, judged by the oracle that
//   reported it, under the same defects; where the first case is sound without the defects, so is every other;
// - each accepted case is smaller than the one before (CaseSize), so it ends; without a time limit the result depends
//   on the case alone;
// - at the end, unless time ran out, no edit of any row of reduction_table.inc gives a smaller case with the signature.
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

// One deletion, or another change for something simpler: false, or an Error, where it does not fit the case.
using Edit = std::function<bool(Case&)>;
struct ReductionRow {
  std::string_view text;
  std::vector<Edit> (*edits)(const Case&);
  bool joined;  // several at once, halving their number
  std::string_view summary;
};
std::span<const ReductionRow> reduction_rows();
// A case with some edits of a row, those of them that fit, put in order again; nothing where none fits, or the program
// does not verify or bind its inputs.
std::optional<Case> edited(const Case& from, std::span<const Edit> edits);

// How large a case is. What comes first counts more; `detail` is what makes it no larger but harder to read: symbols,
// layouts, values, factors, attributes.
struct CaseSize {
  int64_t ops = 0;  // that make tensors
  int64_t steps = 0;
  int64_t signature = 0;  // inputs and outputs
  int64_t axes = 0;       // of all tensors
  int64_t elements = 0;   // of inputs and outputs
  int64_t inner = 0;      // elements of what is between
  int64_t scalars = 0;    // that are computed, but for sizes
  int64_t detail = 0;
  auto operator<=>(const CaseSize&) const = default;
  // (ops + steps) × elements
  double product() const;
};
CaseSize size_of(const Case& c);

struct LoadedFinding {
  Case subject;
  Defects defects;
  std::string signature;  // as recorded; empty: the first that shows
};
// A bundle or a text with a program, a schedule and inputs. Throws what loading throws; kMissingInput where inputs have
// no specs.
LoadedFinding load_finding(const std::string& path);

// The same, of a bundle's bytes or a text; `path` is for errors.
LoadedFinding read_finding(std::span<const uint8_t> bytes, const std::string& path);
// The programs of a text that holds several, in order; nothing where it holds one, or is a bundle.
std::vector<Case> load_batch(const std::string& path);

struct ReduceOptions {
  double seconds = 60;                      // 0: no limit
  double case_seconds = 10;                 // of one candidate; what takes longer counts as a failure of its own
  int64_t memory_bytes = int64_t{4} << 30;  // of the process that judges one
  int64_t step_limit = int64_t{1} << 22;
  bool on_gpu = false;                                // the oracle `gpu` too, in the process of each candidate
  std::function<std::unique_ptr<Device>()> gpu = {};  // empty: a CUDA device
  // In the process that judges, before it does, in tests: a place to die.
  std::function<void(const Case&)> at = {};
  // After each candidate: seconds, candidates tried, and the best; may be empty.
  std::function<void(double, uint64_t, const CaseSize&)> progress = {};
};

struct Reduction {
  bool shows = false;  // else the case has no failure, or not the recorded one
  bool finished = false;
  bool needs_defects = false;  // sound without them, as every case on the way
  bool is_deadly = false;      // it ends the process that judges it
  Finding finding;             // of the result; what shows instead where the recorded one does not
  Case result;
  CaseSize before, after;
  uint64_t candidates = 0, judged = 0, accepted = 0;
  double seconds = 0;
};
Reduction reduce(const LoadedFinding& f, const ReduceOptions& options = {});

// What a case shows, judged in a child process so that a crash is an answer too: the wanted signature's finding if it
// is among them, else the first.
class ReductionJudge {
 public:
  ReductionJudge(Defects defects, std::string signature, const ReduceOptions& options);
  std::optional<Finding> judge(const Case& c);
  // Whether the case shows the signature, and is sound without defects where that is asked for.
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

// The reduced case as a bundle, or as text where the path ends in .fir; the whole file or none.
void write_reduced(const Reduction& r, const Defects& defects, const std::string& path);

}  // namespace fusebox::fuzz
