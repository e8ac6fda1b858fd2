#include "fuzz/reduce/reduce.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/reduce/reduce_rules.h"
#include "ir/table/error.h"
#include "ir/text/print.h"

namespace fusebox::fuzz {
namespace {

constexpr ReductionRow kRows[] = {
#define FUSEBOX_REDUCTION(name, text, joined, summary) {text, name, joined, summary},
#include "fuzz/reduce/reduction_table.inc"
#undef FUSEBOX_REDUCTION
};

class Reducer {
 public:
  Reducer(const LoadedFinding& f, const ReduceOptions& options)
      : options_(options),
        judge_(f.defects, f.signature, options),
        best_(f.subject),
        start_(std::chrono::steady_clock::now()) {
    best_.compiled.reset();
    wanted_ = f.signature;
    has_defects_ = !f.defects.empty();
  }

  Reduction run() {
    reduction_.before = reduction_.after = best_size_ = size_of(best_);
    reduction_.result = best_;
    const auto found = judge_.judge(best_);
    if (!found || (!wanted_.empty() && text(found->signature) != wanted_)) {
      if (found) reduction_.finding = *found;
      return finish();
    }
    reduction_.shows = true;
    reduction_.finding = *found;
    judge_.set(*found);
    if (has_defects_) {
      judge_.ask_for_soundness();
      reduction_.needs_defects = judge_.shows(best_);
      judge_.ask_for_soundness(reduction_.needs_defects);
    }
    bool progress = true;
    while (progress && !out_of_time()) {
      progress = false;
      for (const ReductionRow& row : kRows) progress |= row.joined ? chunks(row) : singles(row);
    }
    reduction_.finished = !out_of_time();
    reduction_.result = best_;
    reduction_.after = best_size_;
    if (const auto last = judge_.judge(best_)) reduction_.finding = *last;
    reduction_.is_deadly = judge_.last_was_deadly();
    return finish();
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool out_of_time() const { return options_.seconds > 0 && elapsed() >= options_.seconds; }
  Reduction finish() {
    reduction_.seconds = elapsed();
    return std::move(reduction_);
  }

  // Tries chunks of edits, halving their size from all to one. Lists the edits anew after each success.
  bool chunks(const ReductionRow& row) {
    bool progress = false;
    std::vector<Edit> edits = row.edits(best_);
    for (size_t size = edits.size(); size > 0; size /= 2) {
      for (size_t at = 0; at < edits.size() && !out_of_time();) {
        const size_t count = std::min(size, edits.size() - at);
        if (attempt(std::span(edits).subspan(at, count))) {
          progress = true;
          edits = row.edits(best_);
        } else {
          at += count;
        }
      }
      size = std::min(size, edits.size());
    }
    return progress;
  }

  bool singles(const ReductionRow& row) {
    bool progress = false;
    std::vector<Edit> edits = row.edits(best_);
    for (size_t at = 0; at < edits.size() && !out_of_time();) {
      if (attempt(std::span(edits).subspan(at, 1))) {
        progress = true;
        edits = row.edits(best_);
      } else {
        ++at;
      }
    }
    return progress;
  }

  bool attempt(std::span<const Edit> edits) {
    ++reduction_.candidates;
    std::optional<Case> c = edited(best_, edits);
    if (!c) return false;
    // Without steps, one kernel for each op is simpler than one kernel for all.
    if (c->steps() && c->steps()->empty()) {
      Case unfused = *c;
      unfused.module.step_lists.clear();
      if (accept(std::move(unfused))) return true;
    }
    return accept(*std::move(c));
  }

  bool accept(Case c) {
    const CaseSize size = size_of(c);
    if (size >= best_size_ || !tried_.insert(print_lineage(c) + print(c.module)).second) return false;
    ++reduction_.judged;
    const bool accepted = judge_.shows(c);
    if (accepted) {
      ++reduction_.accepted;
      best_ = std::move(c);
      best_size_ = size;
    }
    if (options_.progress) options_.progress(elapsed(), reduction_.candidates, best_size_);
    return accepted;
  }

  ReduceOptions options_;
  ReductionJudge judge_;
  std::string wanted_;
  bool has_defects_ = false;
  Case best_;
  CaseSize best_size_;
  std::chrono::steady_clock::time_point start_;
  std::set<std::string> tried_;
  Reduction reduction_;
};

}  // namespace

std::span<const ReductionRow> reduction_rows() { return kRows; }

std::optional<Case> edited(const Case& from, std::span<const Edit> edits) {
  Case c{from.module, from.seed, from.lineage, std::nullopt};
  bool any = false;
  // From last to first, so that an edit does not move the positions of those still to come.
  for (size_t i = edits.size(); i > 0; --i) {
    Case next = c;
    try {
      if (!edits[i - 1](next)) continue;
    } catch (const Error&) {
      continue;
    }
    c = std::move(next);
    any = true;
  }
  if (!any) return std::nullopt;
  try {
    if (!fit_steps(c) || !settle(c, true, size_limit(from))) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return c;
}

Reduction reduce(const LoadedFinding& f, const ReduceOptions& options) { return Reducer(f, options).run(); }

}  // namespace fusebox::fuzz
