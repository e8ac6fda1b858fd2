#include "fuzz/run/runner.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "fuzz/mutate/mutate.h"
#include "ir/table/error.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

// The number of valid cases kept for mutation.
constexpr size_t kPool = 64;

// The compiler may take this many times as long as anything else.
constexpr uint64_t kCompilePatience = 6;

// A block with a lower share (in percent) refuses valid programs. Usual shares are 75, 90 and 90.
constexpr uint64_t kLeastLegal = 50, kLeastMutated = 70, kLeastValid = 70;
constexpr uint64_t kFewestCounted = 64;

// A few kernels in a hundred thousand contain a form that is not simplified. A simplification that broke shows in more
// kernels of a block than this.
constexpr size_t kFewestUntidy = 6;

// Counts are reported at least this often, and with each new finding.
constexpr auto kTellPause = std::chrono::milliseconds(500);

size_t gpu_row() {
  const auto rows = oracle_rows();
  return static_cast<size_t>(std::find_if(rows.begin(), rows.end(), [](const OracleRow& r) { return r.judge == gpu; }) -
                             rows.begin());
}

// Runs the cases of one block, one after another.
class BlockRun {
 public:
  BlockRun(const RunnerOptions& options, const BlockRange& range, const BlockHooks& hooks)
      : options_(options), range_(range), hooks_(hooks) {
    restart();
    options_.cases.steps.defects = options_.defects;
  }

  Statistics run() {
    for (uint64_t i = 0; i < range_.end; ++i) {
      if (i == range_.first) restart();  // earlier cases only fill the pool
      one(range_.block * kBlockCases + i);
      ++since_told_.cases;
      if (i < range_.first) continue;
      if (options_.on_gpu) {
        is_stopped_ = is_stopped_ || (hooks_.stops && hooks_.stops());
        if (!is_stopped_ && since_told_.cases < options_.gpu_cases && i + 1 < range_.end) continue;
        is_stopped_ = is_stopped_ || !judge_gpu_cases();
        // Later cases are drawn only to find deadly ones, which must be reported.
        if (is_stopped_) restart();
      }
      if (i + 1 == kBlockCases && !is_stopped_ && options_.defects.empty()) judge_shares();
      count();
      if (hooks_.go_on && !hooks_.go_on(counted_.cases > 0 ? counted_ : since_told_)) break;
    }
    if (range_.first >= range_.end || is_stopped_) restart();
    count();
    return std::move(counted_.cases > 0 ? counted_ : since_told_);
  }

 private:
  struct Share {
    uint64_t good = 0, of = 0;
  };

  void restart() {
    since_told_ = {};
    since_told_.judged.resize(oracle_rows().size());
    gpu_cases_.clear();
  }

  // The cases since the last report are complete.
  void count() {
    const auto now = std::chrono::steady_clock::now();
    if (since_told_.cases == 0 || (!hooks_.told && !options_.on_gpu)) return;
    if (!hooks_.told)
      add(counted_, std::move(since_told_));
    else if (options_.on_gpu || now - told_at_ > kTellPause || is_news())
      hooks_.told(std::move(since_told_));
    else
      return;
    told_at_ = now;
    restart();
  }

  // Whether there is a finding with a new signature.
  bool is_news() const {
    return std::any_of(since_told_.findings.begin(), since_told_.findings.end(),
                       [](const KeptFinding& f) { return !f.saved.bytes.empty(); });
  }

  // Reports a share of a block's cases that is far below the usual one.
  void judge_share(std::string_view check, Share share, uint64_t least) {
    if (share.of < kFewestCounted || 100 * share.good >= least * share.of || pool_.empty()) return;
    keep({{"generate", std::string(check), ""},
          std::to_string(share.good) + " of " + std::to_string(share.of) + " cases of a block, less than " +
              std::to_string(least) + " %: what is valid is refused"},
         pool_.back());
  }
  void judge_shares() {
    judge_share("few-legal", legal_, kLeastLegal);
    judge_share("few-mutated", mutated_, kLeastMutated);
    judge_share("few-valid", valid_, kLeastValid);
  }

  void at(uint64_t part, uint64_t patience = 1) const {
    if (hooks_.at) hooks_.at(number_, part, patience);
  }
  bool counts() const { return number_ % kBlockCases >= range_.first; }

  void one(uint64_t number) {
    number_ = number;
    const auto deadly = std::find_if(range_.deadly.begin(), range_.deadly.end(),
                                     [&](const DeadlyCase& d) { return d.number == number && d.part != kGpuBatch; });
    if (deadly != range_.deadly.end()) return pass_over(*deadly);
    at(kDrawing);
    Case c;
    ++valid_.of;
    if (!draw(c)) return;
    const uint64_t valid = since_told_.valid;
    const std::vector<Finding> findings =
        judge_case(c, options_, number, since_told_, [&](uint64_t, uint64_t part) { at(part); });
    valid_.good += since_told_.valid > valid;
    for (const Finding& f : findings)
      if (f.signature.stage != "tidy") keep(f, c);
    keep_untidy(findings, c);
    if (!findings.empty()) return;
    since_told_.coverage.count(c);
    if (since_told_.valid == valid) return;  // what a launch refuses, its mutations are refused for too
    if (options_.on_gpu && counts() && c.compiled) gpu_cases_.push_back({number, c});
    if (pool_.size() == kPool) pool_.pop_front();
    pool_.push_back(std::move(c));
  }

  void keep_untidy(const std::vector<Finding>& findings, const Case& c) {
    const auto first =
        std::find_if(findings.begin(), findings.end(), [](const Finding& f) { return f.signature.stage == "tidy"; });
    if (first == findings.end()) return;
    untidy_.push_back({number_, *first, c});
    if (untidy_.size() < kFewestUntidy) return;
    const uint64_t now = number_;
    for (const Untidy& u : untidy_) {
      number_ = u.number;
      keep(u.finding, u.subject);
    }
    number_ = now;
    untidy_.clear();
  }

  // Judges them together, or one by one if a process died while compiling them. Returns false if it was stopped.
  bool judge_gpu_cases() {
    const std::span<const GpuCase> all = gpu_cases_;
    const bool alone = std::any_of(range_.deadly.begin(), range_.deadly.end(), [&](const DeadlyCase& d) {
      return d.part == kGpuBatch &&
             std::any_of(all.begin(), all.end(), [&](const GpuCase& c) { return c.number == d.number; });
    });
    for (size_t i = 0; i < all.size(); i += alone ? 1 : all.size())
      if (!judge_together(all.subspan(i, alone ? 1 : all.size()))) return false;
    return true;
  }

  bool judge_together(std::span<const GpuCase> some) {
    const uint64_t oracle = kFirstOracle + gpu_row();
    GpuBatchOptions how{.threads = options_.gpu_threads, .device = options_.gpu, .turns = options_.gpu_turns};
    how.stops = hooks_.stops;
    how.at = [&](bool compiles, uint64_t number) {
      number_ = number;
      if (compiles)
        at(some.size() > 1 ? kGpuBatch : oracle, kCompilePatience);
      else
        at(oracle);
    };
    const GpuBatch batch = judge_on_gpu(some, {.defects = options_.defects, .step_limit = options_.step_limit}, how);
    since_told_.judged[gpu_row()] += batch.judged;
    since_told_.gpu_cases += batch.judged;
    since_told_.gpu_kernels += batch.kernels;
    since_told_.gpu_compile_us += microseconds(batch.compile_s);
    since_told_.gpu_wait_us += microseconds(batch.wait_s);
    since_told_.gpu_run_us += microseconds(batch.run_s);
    for (const GpuVerdict& v : batch.verdicts) {
      const auto c = std::find_if(some.begin(), some.end(), [&](const GpuCase& g) { return g.number == v.number; });
      number_ = v.number;
      const bool is_last = &v == &batch.verdicts.back();
      if (batch.is_device_lost && is_last) hooks_.device_lost(v.number, v.findings.back());
      const std::span<const GpuCase> before = some.first(static_cast<size_t>(c - some.begin()) + 1);
      for (const Finding& f : v.findings) keep(f, c->subject, before);
    }
    return batch.is_complete;
  }

  static uint64_t microseconds(double seconds) { return static_cast<uint64_t>(1e6 * seconds); }

  void pass_over(const DeadlyCase& deadly) {
    if (counts()) ++since_told_.died;
    if (deadly.part == kDrawing || !counts()) return;
    at(kDrawing);
    Case c;
    if (deadly.part >= kFirstCompilation) deadly_compilation_ = deadly.part;
    if (draw(c) && hooks_.deadly) hooks_.deadly(deadly, c);
    deadly_compilation_.reset();
  }

  // Draws a case. Returns false if there is none that compiles.
  bool draw(Case& c) {
    c.seed = case_seed(options_.seed, number_);
    try {
      return draw_any(c);
    } catch (const Error& e) {
      // Generators handle the refusals that they expect; any other one is a bug.
      keep({{"generate", code_text(e.code), ""}, "seed " + std::to_string(c.seed) + ": " + e.what()}, c);
      return false;
    }
  }

  bool draw_any(Case& c) {
    const uint64_t seed = c.seed;
    const auto compiles = [&, part = kFirstCompilation]() mutable {
      if (deadly_compilation_ == part) return false;
      at(part++);
      return true;
    };
    // An unmutated case must be exactly that of its seed, so other choices come from another source.
    RandomSource random(~seed);
    if (options_.mutate_one_in > 0 && pool_.size() > 4 && random.one_in(options_.mutate_one_in)) {
      ++since_told_.mutated;
      ++mutated_.of;
      const Case& from = pool_[random.below(pool_.size())];
      const Case& other = pool_[random.below(pool_.size())];
      auto mutated = mutate(random, from, other, {.defects = options_.defects, .compiles = compiles});
      if (!mutated) {
        ++since_told_.refusals["mutation"];
        return false;
      }
      ++since_told_.mutated_valid;
      ++mutated_.good;
      c = *std::move(mutated);
      return true;
    }
    CaseOptions cases = options_.cases;
    cases.steps.compiles = compiles;
    DrawnCase drawn = generate_case(seed, cases);
    since_told_.op_attempts += drawn.op_attempts;
    since_told_.ops += drawn.ops;
    const bool is_legal = drawn.repairs == 0 && !drawn.refusal;
    since_told_.drawn_legal += is_legal;
    legal_.good += is_legal;
    ++legal_.of;
    c = std::move(drawn.value);
    if (!drawn.refusal) return true;
    if (const auto& e = drawn.surprise) {
      keep({{"generate", code_text(e->code), ""},
            "what was drawn as valid is refused: " + code_text(e->code) + " " + e->place + ": " + e->what()},
           c);
      return false;
    }
    ++since_told_.refusals[code_text(drawn.refusal->code)];
    return unscheduled(c);
  }

  // A fusion without a schedule still has the unfused plan, which must not be refused.
  bool unscheduled(Case& c) {
    c.module.step_lists.clear();
    ++since_told_.unscheduled;
    try {
      c.compiled = compile(c.fusion(), sizes_of(c.fusion(), c.inputs()),
                           {.inputs = bound_inputs(c.inputs()), .defects = options_.defects, .infer = infer_by_aten()});
      return true;
    } catch (const Error& e) {
      keep({{"unfused", code_text(e.code), ""}, code_text(e.code) + " " + e.place + ": " + e.what()}, c);
      return false;
    }
  }

  // `batch`: the case and those that were on the GPU before it.
  void keep(const Finding& finding, const Case& c, std::span<const GpuCase> batch = {}) {
    if (!counts()) return;
    if (hooks_.found) hooks_.found(c, number_, finding);
    KeptFinding kept;
    kept.finding = finding;
    kept.number = number_;
    kept.count = 1;
    const bool is_new = std::none_of(since_told_.findings.begin(), since_told_.findings.end(),
                                     [&](const KeptFinding& f) { return f.finding.signature == finding.signature; });
    if (is_new) {
      kept.subject = c;
      kept.lineage = print_lineage(c);
      if (hooks_.wants_bundle && !c.module.graphs.empty() && hooks_.wants_bundle(finding, number_)) {
        at(kSaving);
        kept.saved = finding_file(c, finding, options_.defects);
        if (batch.size() > 1) kept.batch = print_batch(batch);
      }
    }
    add(since_told_, std::move(kept));
  }

  RunnerOptions options_;
  const BlockRange& range_;
  const BlockHooks& hooks_;
  uint64_t number_ = 0;
  std::optional<uint64_t> deadly_compilation_;  // where to end the draw of a deadly case
  Share legal_, mutated_, valid_;               // of the block
  Statistics since_told_;                       // of the cases since the last report
  Statistics counted_;                          // earlier ones, if nobody is told
  bool is_stopped_ = false;
  std::chrono::steady_clock::time_point told_at_ = std::chrono::steady_clock::now();
  std::deque<Case> pool_;
  struct Untidy {
    uint64_t number;
    Finding finding;
    Case subject;
  };
  std::vector<Untidy> untidy_;  // of this block, until there are many
  std::vector<GpuCase> gpu_cases_;
};

}  // namespace

Statistics run_block(const RunnerOptions& options, const BlockRange& range, const BlockHooks& hooks) {
  return BlockRun(options, range, hooks).run();
}

Statistics run_cases(const RunnerOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const uint64_t runs = options.runs == 0 && options.seconds == 0 ? 1000 : options.runs;
  Statistics all;
  bool is_over = false;
  BlockHooks hooks;
  hooks.wants_bundle = [&](const Finding&, uint64_t) { return !options.out.empty(); };
  hooks.go_on = [&](const Statistics& part) {
    is_over = options.seconds > 0 && elapsed() >= options.seconds;
    const size_t found = all.findings.size() + part.findings.size();
    if (options.stop_after > 0 && found >= options.stop_after) {
      Statistics both;
      add(both, all);
      add(both, part);
      is_over = is_over || both.findings.size() >= options.stop_after;
    }
    if (options.progress) {
      Statistics now;
      add(now, all);
      add(now, part);
      now.seconds = elapsed();
      options.progress(now);
    }
    return !is_over;
  };
  for (uint64_t block = 0; !is_over && (runs == 0 || block * kBlockCases < runs); ++block) {
    BlockRange range;
    range.block = block;
    if (runs > 0) range.end = std::min(kBlockCases, runs - block * kBlockCases);
    Statistics part = run_block(options, range, hooks);
    for (KeptFinding& f : part.findings) f.seconds = elapsed();
    add(all, std::move(part));
  }
  all.seconds = elapsed();
  if (!options.out.empty())
    for (KeptFinding& f : all.findings)
      if (!f.saved.bytes.empty()) write_finding(options.out, f, all);
  return all;
}

namespace {

// Counts the segments of an automatic plan, and those that no scheduler takes.
void count_unfused(const Compiled& c, Statistics& s) {
  const auto& decisions = c.automatic->decisions;
  const auto unfused =
      std::ranges::count_if(decisions, [](const Decision& d) { return d.heuristics.scheduler == "unfused"; });
  ++s.planned;
  s.partly_unfused += unfused > 0;
  s.segments += decisions.size();
  s.unfused_segments += static_cast<uint64_t>(unfused);
}

}  // namespace

uint64_t case_seed(uint64_t seed, uint64_t number) { return seed * 0x100000001b3u + number; }

std::string stage_of_part(uint64_t part) {
  if (part == kDrawing || part >= kFirstCompilation) return "generate";
  if (part == kGpuBatch) return "gpu";
  if (part == kSaving || part - kFirstOracle >= oracle_rows().size()) return "bundle";
  return std::string(oracle_rows()[part - kFirstOracle].text);
}

namespace {

// Whether the case was drawn for what this oracle alone sees. Blocks that wait for one another are too many only in plans for
// thousands of rows.
bool is_drawn_for(const OracleRow& row, const Case& c) {
  return row.judge == larger && c.lineage.empty() && focus_of(c.seed).rare == RareFocus::kBehindColumns;
}

}  // namespace

std::vector<Finding> judge_case(const Case& c, const RunnerOptions& options, uint64_t number, Statistics& s,
                                const std::function<void(uint64_t, uint64_t)>& at) {
  OracleRun run(c, {.number = number,
                    .defects = options.defects,
                    .step_limit = options.step_limit,
                    .field_changes = options.field_changes});
  try {
    run.arguments();
  } catch (const Error& e) {
    // Inputs that no memory holds.
    ++s.refusals[code_text(e.code)];
    return {};
  }
  const bool is_alone = options.field_changes >= kFieldChangesAlone;
  if (s.judged.size() < oracle_rows().size()) s.judged.resize(oracle_rows().size());
  for (size_t i = 0; i < oracle_rows().size(); ++i) {
    const OracleRow& row = oracle_rows()[i];
    const bool asked = std::find(options.oracles.begin(), options.oracles.end(), i) != options.oracles.end();
    if (!asked && (!options.oracles.empty() || !(is_alone || is_due(row, number) || is_drawn_for(row, c)))) continue;
    if (row.judge == gpu || (row.judge == files && is_alone && !asked)) continue;
    ++s.judged[i];
    if (at) at(number, i + kFirstOracle);
    try {
      row.judge(run);
    } catch (const Error& e) {
      run.report(row.text, e, "the oracle itself");
    }
  }
  s.compared += static_cast<uint64_t>(run.compared);
  s.ambiguous += static_cast<uint64_t>(run.ambiguous);
  s.unconstrained += static_cast<uint64_t>(run.unconstrained);
  if (run.is_planned() && run.planned()) count_unfused(*run.planned(), s);
  ++s.valid;
  if (!run.compiled()) {
    if (run.refusal()) ++s.refusals[code_text(run.refusal()->code)];
    --s.valid;
    // A campaign reports a drawn fusion that is refused without a schedule. A file may hold a fusion that is not valid, so
    // ATen must take it.
    if (is_alone && options.oracles.empty() && !c.steps() && run.refusal() && run.reference())
      run.report("unfused", *run.refusal());
  } else if (run.scheduled().failure && is_launch_refusal(run.scheduled().failure->code)) {
    ++s.launch_refused;
    ++s.refusals["at launch " + code_text(run.scheduled().failure->code)];
    --s.valid;
  }
  return std::move(run.findings);
}

}  // namespace fusebox::fuzz
