#include "fuzz/runner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>

#include "fuzz/mutate.h"
#include "ir/error.h"
#include "ir/print.h"
#include "replay/file.h"
#include "replay/input.h"
#include "replay/record.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

// Cases of a campaign share no choices, whatever their numbers.
uint64_t case_seed(uint64_t seed, uint64_t number) { return seed * 0x100000001b3u + number; }

// Valid cases that later ones are made from.
constexpr size_t kPool = 64;

std::string file_name(const Signature& s) {
  std::string name;
  for (char c : text(s)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name;
}

class Campaign {
 public:
  explicit Campaign(const RunnerOptions& options) : options_(options), start_(std::chrono::steady_clock::now()) {
    s_.judged.resize(oracle_rows().size());
    options_.cases.steps.defects = options_.defects;
  }

  Statistics run() {
    const bool limited = options_.runs > 0 || options_.seconds > 0;
    const uint64_t runs = limited ? options_.runs : 1000;
    while ((runs == 0 || s_.cases < runs) && (options_.seconds == 0 || elapsed() < options_.seconds)) {
      one();
      s_.seconds = elapsed();
      if (options_.progress) options_.progress(s_);
      if (options_.stop_after > 0 && s_.findings.size() >= options_.stop_after) break;
    }
    s_.seconds = elapsed();
    return std::move(s_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void one() {
    const uint64_t number = s_.cases++;
    const uint64_t seed = case_seed(options_.seed, number);
    Case c;
    c.seed = seed;
    try {
      if (!draw(seed, c)) return;
    } catch (const Error& e) {
      // A generator meets refusals all the time; what comes through is a bug.
      return keep({{"generate", code_text(e.code), ""}, "seed " + std::to_string(seed) + ": " + e.what()}, c);
    }
    const std::vector<Finding> findings = judge_case(c, options_, number, s_);
    for (const Finding& f : findings) keep(f, c);
    if (!findings.empty()) return;
    s_.coverage.count(c);
    if (pool_.size() == kPool) pool_.pop_front();
    pool_.push_back(std::move(c));
  }

  // Whether there is a case that compiles.
  bool draw(uint64_t seed, Case& c) {
    RandomSource random(seed);
    if (options_.mutate_one_in > 0 && pool_.size() > 4 && random.one_in(options_.mutate_one_in)) {
      ++s_.mutated;
      const Case& from = pool_[random.below(pool_.size())];
      const Case& other = pool_[random.below(pool_.size())];
      auto mutated = mutate(random, from, other, {.defects = options_.defects});
      if (!mutated) {
        ++s_.refusals["mutation"];
        return false;
      }
      ++s_.mutated_valid;
      c = *std::move(mutated);
      return true;
    }
    DrawnCase drawn = generate_case(random, options_.cases);
    drawn.value.seed = seed;
    s_.op_attempts += drawn.op_attempts;
    s_.ops += drawn.ops;
    s_.drawn_legal += drawn.repairs == 0 && !drawn.refusal;
    c = std::move(drawn.value);
    if (!drawn.refusal) return true;
    ++s_.refusals[code_text(drawn.refusal->code)];
    return unscheduled(c);
  }

  // A fusion for which no schedule was found still has the unfused plan, which refuses nothing.
  bool unscheduled(Case& c) {
    c.module.step_lists.clear();
    ++s_.unscheduled;
    try {
      c.compiled = compile(c.fusion(), sizes_of(c.fusion(), c.inputs()),
                           {.inputs = bound_inputs(c.inputs()), .defects = options_.defects});
      return true;
    } catch (const Error& e) {
      keep({{"unfused", code_text(e.code), ""}, code_text(e.code) + " " + e.place + ": " + e.what()}, c);
      return false;
    }
  }

  void keep(Finding finding, const Case& c) {
    for (KeptFinding& kept : s_.findings)
      if (kept.finding.signature == finding.signature) {
        ++kept.count;
        return;
      }
    KeptFinding kept{std::move(finding), c, 1, elapsed(), s_.cases, {}};
    if (!options_.out.empty() && !c.module.graphs.empty()) {
      const std::string stem = options_.out + "/" + file_name(kept.finding.signature);
      try {
        kept.file = stem + ".fuse";
        write_file(kept.file, encode(finding_bundle(c, kept.finding, options_.defects)));
      } catch (const Error& e) {
        if (e.code == ErrorCode::kFileWrite) throw;
        // What was found is in the way of the bundle itself.
        kept.file = stem + ".fir";
        write_file(kept.file, std::string_view(print(c.module)));
      }
    }
    s_.findings.push_back(std::move(kept));
  }

  RunnerOptions options_;
  std::chrono::steady_clock::time_point start_;
  Statistics s_;
  std::deque<Case> pool_;
};

}  // namespace

Statistics run_cases(const RunnerOptions& options) { return Campaign(options).run(); }

std::vector<Finding> judge_case(const Case& c, const RunnerOptions& options, uint64_t number, Statistics& s) {
  OracleRun run(c, {.defects = options.defects, .step_limit = options.step_limit});
  if (s.judged.size() < oracle_rows().size()) s.judged.resize(oracle_rows().size());
  for (size_t i = 0; i < oracle_rows().size(); ++i) {
    const OracleRow& row = oracle_rows()[i];
    const bool asked = std::find(options.oracles.begin(), options.oracles.end(), i) != options.oracles.end();
    if (!asked && (!options.oracles.empty() || number % row.every != 0)) continue;
    ++s.judged[i];
    try {
      row.judge(run);
    } catch (const Error& e) {
      run.report(row.text, e, "the oracle itself");
    }
  }
  s.compared += run.compared;
  s.ambiguous += run.ambiguous;
  s.unconstrained += run.unconstrained;
  ++s.valid;
  if (run.compiled() && run.scheduled().failure && is_launch_refusal(run.scheduled().failure->code)) {
    ++s.launch_refused;
    ++s.refusals["at launch " + code_text(run.scheduled().failure->code)];
    --s.valid;
  }
  return std::move(run.findings);
}

Bundle finding_bundle(const Case& c, const Finding& finding, const Defects& defects) {
  std::vector<Argument> arguments;
  for (const InputSpec& spec : c.inputs().specs) arguments.push_back(make_argument(spec, 1));
  const Run run =
      run_program(c.module, arguments, {.executor = Executor::kHost, .defects = defects, .keep_sources = false});
  Bundle b = make_bundle(run, c.module, recorded_inputs(c.fusion(), &c.inputs(), {}, arguments), arguments);
  b.options.push_back({"finding", text(finding.signature)});
  b.options.push_back({"message", finding.message.substr(0, 4096)});
  b.options.push_back({"lineage", print_lineage(c).substr(0, 60000)});
  return b;
}

std::string progress_line(const Statistics& s) {
  char line[256];
  std::snprintf(line, sizeof line, "%.1f s, %llu cases, %.0f/s, %.1f %% valid, coverage %zu/%zu, %zu findings",
                s.seconds, static_cast<unsigned long long>(s.cases), s.cases_per_second(), 100 * s.valid_rate(),
                s.coverage.covered(), s.coverage.row_count(), s.findings.size());
  return line;
}

}  // namespace fusebox::fuzz
