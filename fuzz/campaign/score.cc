#include "fuzz/campaign/score.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fmt/ranges.h>
#include <limits>

#include "ir/table/error.h"
#include "replay/cli/json.h"
#include "replay/data/file.h"
#include "replay/gate/gate_workers.h"

namespace fusebox::fuzz {
namespace {

using cli::json_list;
using cli::JsonObject;

constexpr double kNever = std::numeric_limits<double>::infinity();

double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The part of a case in which a worker judges it without the defect.
constexpr uint64_t kCleanly = ~uint64_t{0};

// One defect under one seed, as it stands between its blocks.
struct ScoreAttempt {
  size_t row = 0, at = 0;  // the index in ScoreRow::tries
  uint64_t block = 0;
  std::vector<DeadlyCase> deadly;  // of this block
  uint64_t suspect = 0;            // a deadly case to be judged without the defect, plus 1; 0: none
  std::string suspect_check;       // how it died
  bool runs = false, finished = false;
};

std::string request_of(const ScoreAttempt& p, const ScoreRow& row, double seconds_left) {
  std::vector<std::string> deadly;
  for (const DeadlyCase& d : p.deadly) deadly.push_back(fmt::format("[{},{}]", d.number, d.part));
  JsonObject o;
  o.raw("row", std::to_string(p.row)).raw("at", std::to_string(p.at)).add("defect", text(row.defect));
  o.raw("seed", std::to_string(row.tries[p.at].seed)).raw("block", std::to_string(p.block));
  o.raw("deadly", json_list(deadly)).raw("suspect", std::to_string(p.suspect));
  return o.raw("seconds", fmt::format("{}", std::min(seconds_left, 1e9))).text();
}

// The worker's side: runs one block of one try.
class ScoreWorker {
 public:
  ScoreWorker(const ScoreOptions& options, const JsonValue& request, WorkerNote& note)
      : options_(options.runner), clean_(options.runner), note_(note), keeps_(!options.out.empty()) {
    options_.seed = request.at("seed").count();
    options_.defects = parse_defect_list(request.at("defect").string());
    options_.defects.count_reached(&asked_);
    clean_.defects = {};
    range_.block = request.at("block").count();
    for (const JsonValue& d : request.at("deadly").list())
      range_.deadly.push_back({d.items[0].count(), d.items[1].count()});
    suspect_ = request.at("suspect").count();
    seconds_ = request.at("seconds").number();
  }

  std::string run() {
    const double began = processor_seconds();
    note_.begin(range_.block * kBlockCases, kDrawing);
    if (options_.runs > 0) range_.end = std::min(kBlockCases, options_.runs - range_.block * kBlockCases);
    BlockHooks hooks;
    hooks.at = [&](uint64_t number, uint64_t part, uint64_t patience) { note_.begin(number, part, patience); };
    hooks.found = [&](const Case& c, uint64_t number, const Finding& f) { weigh(c, number, f); };
    hooks.deadly = [&](const DeadlyCase& d, const Case& c) {
      if (d.number + 1 == suspect_) weigh(c, d.number, {{stage_of_part(d.part), "", ""}, ""});
    };
    hooks.go_on = [&](const Statistics& s) {
      if (asked_ > 0 && reached_ == 0) reached_ = s.cases;
      return !detected_ && !note_.stop && processor_seconds() - began < seconds_;
    };
    const Statistics s = run_block(options_, range_, hooks);
    JsonObject o;
    o.raw("cases", std::to_string(s.cases)).raw("reached", std::to_string(reached_));
    o.raw("clean_too", std::to_string(clean_too_)).add("seconds", processor_seconds() - began);
    std::vector<std::string> found;
    if (detected_) {
      Statistics one;
      add(one, std::move(*detected_));
      o.raw("found", to_json(one));
    }
    return o.text();
  }

 private:
  // Counts the finding only if the case is clean without the defect.
  void weigh(const Case& c, uint64_t number, const Finding& f) {
    if (detected_) return;
    if (weighed_ != number + 1) {
      weighed_ = number + 1;
      note_.begin(number, kCleanly);
      is_clean_ = is_clean(c, number, f.signature.stage);
      clean_too_ += is_clean_ ? 0 : 1;
    }
    if (!is_clean_) return;
    detected_.emplace();
    detected_->finding = f;
    detected_->number = number;
    detected_->lineage = print_lineage(c);
    if (!keeps_ || c.module.graphs.empty()) return;
    note_.begin(number, kSaving);
    detected_->saved =
        number + 1 == suspect_ ? deadly_file(c, f, options_.defects) : finding_file(c, f, options_.defects);
  }

  bool is_clean(Case c, uint64_t number, const std::string& stage) {
    c.compiled.reset();
    try {
      if (stage == "generate" && c.lineage.empty()) {
        CaseOptions options = clean_.cases;
        options.steps.defects = {};
        generate_case(c.seed, options);
        return true;
      }
      if (stage == "unfused") {
        compile(c.fusion(), sizes_of(c.fusion(), c.inputs()), {.inputs = bound_inputs(c.inputs())});
        return true;
      }
      Statistics ignored;
      return judge_case(c, clean_, number, ignored).empty();
    } catch (const Error&) {
      return false;
    }
  }

  RunnerOptions options_, clean_;
  WorkerNote& note_;
  bool keeps_;
  BlockRange range_;
  uint64_t suspect_ = 0;
  double seconds_ = 0;
  uint64_t asked_ = 0, reached_ = 0, clean_too_ = 0;
  uint64_t weighed_ = 0;  // the case that was last judged without the defect, plus 1
  bool is_clean_ = false;
  std::optional<KeptFinding> detected_;
};

class Score {
 public:
  explicit Score(const ScoreOptions& options) : options_(options) {
    std::vector<Defect> defects = options.defects;
    if (defects.empty())
      for (const DefectRow& row : defect_rows()) defects.push_back(row.defect);
    Defects none;
    none.add(defects[0]);  // throws if this build has no defects
    for (const Defect d : defects) {
      ScoreRow row;
      row.defect = d;
      for (int i = 0; i < options.seeds; ++i) {
        ScoreAttempt p;
        p.row = rows_.size();
        p.at = row.tries.size();
        attempts_.push_back(p);
        row.tries.emplace_back().seed = options.runner.seed + static_cast<uint64_t>(i);
      }
      rows_.push_back(std::move(row));
    }
    if (!options.out.empty()) make_folder(options.out);
  }

  std::vector<ScoreRow> run() {
    WorkerCalls calls;
    calls.next = [&] { return next(); };
    calls.work = [&](const std::string& request, WorkerNote& note) {
      return ScoreWorker(options_, parse_json(request), note).run();
    };
    calls.done = [&](WorkerAnswer a) { a.death.empty() ? count(a) : blame(a); };
    calls.tick = [&] {
      const int stops = options_.stops ? options_.stops() : 0;
      if (options_.progress) options_.progress(finished_, attempts_.size());
      return stops == 0 ? WorkerOrder::kGoOn : stops == 1 ? WorkerOrder::kFinish : WorkerOrder::kGiveUp;
    };
    WorkerOptions workers;
    workers.jobs = options_.jobs;
    workers.timeout_s = options_.case_seconds > 0 ? options_.case_seconds : 1e6;
    workers.memory_bytes = options_.memory_bytes;
    workers.retry = false;
    run_workers(workers, calls);
    return std::move(rows_);
  }

 private:
  ScoreTry& try_of(const ScoreAttempt& p) { return rows_[p.row].tries[p.at]; }

  std::optional<std::string> next() {
    if (options_.stops && options_.stops() > 0) return std::nullopt;
    for (ScoreAttempt& p : attempts_) {
      if (p.finished || p.runs) continue;
      p.runs = true;
      const double limit = options_.seconds > 0 ? options_.seconds : 1e9;
      return request_of(p, rows_[p.row], limit - try_of(p).seconds);
    }
    return std::nullopt;
  }

  ScoreAttempt& attempt_of(const WorkerAnswer& a) {
    const JsonValue request = parse_json(a.request);
    ScoreAttempt& p =
        attempts_[request.at("row").count() * static_cast<size_t>(options_.seeds) + request.at("at").count()];
    p.runs = false;
    return p;
  }

  void count(const WorkerAnswer& a) {
    ScoreAttempt& p = attempt_of(a);
    ScoreTry& t = try_of(p);
    const JsonValue answer = parse_json(a.answer);
    const uint64_t reached = answer.at("reached").count();
    if (t.reached == 0 && reached > 0) t.reached = t.cases + reached;
    t.cases += answer.at("cases").count();
    t.clean_too += answer.at("clean_too").count();
    t.seconds += answer.at("seconds").number();
    if (const JsonValue* found = answer.find("found")) {
      KeptFinding f = std::move(statistics_of(*found).findings.at(0));
      // The worker does not know how a suspect died.
      if (f.number + 1 == p.suspect) f.finding = {{f.finding.signature.stage, p.suspect_check, ""}, p.suspect_check};
      detect(t, std::move(f));
    }
    p.suspect = 0;
    p.deadly.clear();
    ++p.block;
    const uint64_t runs = options_.runner.runs;
    if (t.detected || (runs > 0 && t.cases >= runs) || (options_.seconds > 0 && t.seconds >= options_.seconds))
      finish(p);
  }

  void detect(ScoreTry& t, KeptFinding f) {
    t.detected = true;
    t.finding = std::move(f.finding);
    t.lineage = std::move(f.lineage);
    t.saved = std::move(f.saved);
  }

  void blame(const WorkerAnswer& a) {
    ScoreAttempt& p = attempt_of(a);
    ScoreTry& t = try_of(p);
    t.seconds += a.seconds;
    const uint64_t number = a.item;
    std::erase_if(p.deadly, [&](const DeadlyCase& d) { return d.number == number; });
    if (a.part == kCleanly) {
      // The case ends the process without the defect too.
      ++t.clean_too;
      p.suspect = 0;
      p.deadly.push_back({number, kDrawing});
    } else if (a.part == kDrawing) {
      // A case that dies while it is drawn cannot be judged. Without a defect, the generator does not die.
      KeptFinding f;
      f.finding = {{"generate", check_of_death(a.death), ""}, "case " + std::to_string(number) + " " + a.death};
      t.cases += number % kBlockCases + 1;
      if (t.reached == 0) t.reached = t.cases;
      detect(t, std::move(f));
      return finish(p);
    } else {
      p.suspect = number + 1;
      p.suspect_check = check_of_death(a.death);
      p.deadly.push_back({number, a.part});
    }
    if (options_.seconds > 0 && t.seconds >= options_.seconds) finish(p);
  }

  void finish(ScoreAttempt& p) {
    p.finished = true;
    ++finished_;
    while (told_ < rows_.size() &&
           std::all_of(
               attempts_.begin(), attempts_.end(),
               [&](const ScoreAttempt& other) { return other.row != told_ || other.finished; })) {
      write(rows_[told_]);
      if (options_.done) options_.done(rows_[told_]);
      ++told_;
    }
  }

  // Writes the file of the first seed that has one.
  void write(ScoreRow& row) {
    if (options_.out.empty()) return;
    for (ScoreTry& t : row.tries) {
      if (t.saved.bytes.empty()) continue;
      t.file = options_.out + "/" + std::string(text(row.defect)) + (t.saved.is_text ? ".fir" : ".fuse");
      write_file(t.file, std::string_view(t.saved.bytes));
      return;
    }
  }

  const ScoreOptions& options_;
  std::vector<ScoreRow> rows_;
  std::vector<ScoreAttempt> attempts_;
  size_t finished_ = 0, told_ = 0;
};

template <class F>
double median_of(const std::vector<ScoreTry>& tries, F&& value) {
  std::vector<double> values;
  for (const ScoreTry& t : tries) values.push_back(value(t));
  return median(std::move(values));
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return kNever;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

size_t ScoreRow::detected() const {
  return static_cast<size_t>(std::count_if(tries.begin(), tries.end(), [](const ScoreTry& t) { return t.detected; }));
}
double ScoreRow::median_seconds() const {
  return median_of(tries, [](const ScoreTry& t) { return t.detected ? t.seconds : kNever; });
}
double ScoreRow::median_cases() const {
  return median_of(tries, [](const ScoreTry& t) { return t.detected ? static_cast<double>(t.cases) : kNever; });
}
double ScoreRow::median_reached() const {
  return median_of(tries, [](const ScoreTry& t) { return t.reached > 0 ? static_cast<double>(t.reached) : kNever; });
}

std::vector<ScoreRow> score(const ScoreOptions& options) { return Score(options).run(); }

std::string summary(const std::vector<ScoreRow>& rows) {
  size_t all = 0, some = 0;
  std::vector<double> seconds;
  const ScoreRow* slowest = nullptr;
  for (const ScoreRow& row : rows) {
    all += row.detected() == row.tries.size() ? 1 : 0;
    some += row.detected() > 0 && row.detected() < row.tries.size() ? 1 : 0;
    const double s = row.median_seconds();
    seconds.push_back(s);
    if (std::isfinite(s) && (!slowest || s > slowest->median_seconds())) slowest = &row;
  }
  std::string out = fmt::format("detected {} of {} with every seed, {} with some", all, rows.size(), some);
  if (!slowest) return out;
  const double middle = median(seconds);
  out += std::isfinite(middle) ? fmt::format("; median {:.2f} s", middle) : "; no median: most are not detected";
  return out + fmt::format(", slowest {:.1f} s ({})", slowest->median_seconds(), text(slowest->defect));
}

}  // namespace fusebox::fuzz
