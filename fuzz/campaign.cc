#include "fuzz/campaign.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <unistd.h>

#include "ir/error.h"
#include "replay/cli/json.h"
#include "replay/file.h"
#include "replay/gate_workers.h"

namespace fusebox::fuzz {
namespace {

using cli::json_list;
using cli::JsonObject;
using Clock = std::chrono::steady_clock;

// How a case ended its worker.
struct Death {
  uint64_t number = 0;
  std::string check, message;
};

// A block that is to be run, or runs.
struct BlockWork {
  BlockRange range;
  std::vector<Death> deaths;
};

// -- what parent and worker tell each other

std::string request_of(const BlockRange& r) {
  std::vector<std::string> deadly;
  for (const DeadlyCase& d : r.deadly) deadly.push_back(fmt::format("[{},{}]", d.number, d.part));
  return fmt::format(R"({{"block":{},"first":{},"end":{},"deadly":{}}})", r.block, r.first, r.end, json_list(deadly));
}

BlockRange range_of(const JsonValue& v) {
  BlockRange r;
  r.block = v.at("block").count();
  r.first = v.at("first").count();
  r.end = v.at("end").count();
  for (const JsonValue& d : v.at("deadly").list()) r.deadly.push_back({d.items[0].count(), d.items[1].count()});
  return r;
}

// Of a worker whose GPU was lost.
constexpr int kDeviceLostExit = 78;

// The worker's side; one in each process, so that what it keeps lasts from block to block.
class BlockWorker {
 public:
  BlockWorker(const CampaignOptions& options, std::map<Signature, uint64_t> saved)
      : options_(options.runner), at_(options.at), saved_(std::move(saved)) {}

  std::string work(const std::string& request, WorkerNote& note) {
    const BlockRange range = range_of(parse_json(request));
    note.begin(range.block * kBlockCases + range.first, kDrawing);
    uint64_t last_deadly = 0;
    for (const DeadlyCase& d : range.deadly) last_deadly = std::max(last_deadly, d.number + 1);
    Statistics shown;  // deadly cases, their files to be
    BlockHooks hooks;
    uint64_t number = 0;
    hooks.at = [&](uint64_t n, uint64_t part) {
      note.begin(number = n, part);
      if (at_) at_(n, part);
    };
    hooks.go_on = [&](const Statistics&) { return !note.stop || number + 1 < last_deadly; };
    hooks.wants_bundle = [&](const Finding& f, uint64_t n) { return wants_bundle(f, n); };
    hooks.deadly = [&](const DeadlyCase& d, const Case& c) {
      KeptFinding f;
      f.number = d.number;
      f.finding.signature = {std::to_string(d.number), "", ""};
      f.lineage = print_lineage(c);
      f.saved = deadly_file(c, {{stage_of_part(d.part), "died", ""}, ""}, options_.defects);
      add(shown, std::move(f));
    };
    hooks.device_lost = [&](uint64_t n, const Finding& f) {
      note.begin(n, kFirstOracle + parse_oracles("gpu")[0]);
      std::fputs(f.message.c_str(), stdout);
      std::fflush(stdout);
      ::_exit(kDeviceLostExit);
    };
    const Statistics s = run_block(options_, range, hooks);
    return JsonObject().raw("statistics", to_json(s)).raw("deadly", to_json(shown)).text();
  }

 private:
  bool wants_bundle(const Finding& f, uint64_t number) {
    if (options_.out.empty()) return false;
    const auto [at, is_new] = saved_.emplace(f.signature, number);
    const bool wants = is_new || number < at->second;
    at->second = std::min(at->second, number);
    return wants;
  }

  RunnerOptions options_;
  std::function<void(uint64_t, uint64_t)> at_;
  std::map<Signature, uint64_t> saved_;  // the lowest case whose bundle was handed over
};

}  // namespace

std::string check_of_death(const std::string& death) {
  constexpr std::string_view kKilled = "killed by ";
  if (death.starts_with(kKilled)) return "crash " + death.substr(kKilled.size());
  if (death.starts_with("took longer")) return "timeout";
  if (death == fmt::format("exited with code {}", kDeviceLostExit)) return "device lost";
  return death == "ran out of memory" ? "memory" : death;
}

namespace {

class CampaignRun {
 public:
  explicit CampaignRun(const CampaignOptions& options) : options_(options), runner_(options.runner) {
    state_.configuration = configuration_of(runner_);
    state_.statistics.judged.resize(oracle_rows().size());
    if (runner_.runs == 0 && runner_.seconds == 0) runner_.runs = 1000;
    if (runner_.out.empty()) return;
    findings_ = runner_.out + "/findings";
    std::filesystem::create_directories(findings_);
    if (std::filesystem::exists(state_path(runner_.out))) resume();
  }

  CampaignState run() {
    start_ = saved_at_ = Clock::now();
    base_seconds_ = state_.statistics.seconds;
    std::map<Signature, uint64_t> saved;
    for (const KeptFinding& f : state_.statistics.findings) saved.emplace(f.finding.signature, f.number);
    BlockWorker worker(options_, std::move(saved));
    WorkerCalls calls;
    calls.next = [&] { return next(); };
    calls.work = [&](const std::string& request, WorkerNote& note) { return worker.work(request, note); };
    calls.done = [&](WorkerAnswer a) { a.death.empty() ? count(a) : blame(a); };
    calls.tick = [&] { return tick(); };
    WorkerOptions workers;
    workers.jobs = options_.jobs;
    workers.timeout_s = options_.case_seconds > 0 ? options_.case_seconds : 1e6;
    workers.memory_bytes = options_.memory_bytes;
    workers.retry = false;
    run_workers(workers, calls);
    tell_time();
    add_sample(state_, true);
    save();
    return std::move(state_);
  }

 private:
  void resume() {
    const std::string path = state_path(runner_.out);
    const JsonValue json = parse_json(read_text_file(path));
    CampaignState state = campaign_state_of(json);
    const auto at = [](const JsonValue& v) { return v.at("configuration"); };
    if (!same(at(json), parse_json(state_.configuration)))
      throw Error(ErrorCode::kUsage,
                  "the folder holds a campaign of other options (its file says which); give those, or another folder",
                  path);
    state.configuration = state_.configuration;
    state_ = std::move(state);
    for (const auto& [block, p] : state_.partial) {
      BlockWork w;
      w.range.block = block;
      w.range.first = p.done;
      w.range.deadly = p.deadly;
      waiting_.push_back(std::move(w));
    }
    state_.partial.clear();
  }

  static bool same(const JsonValue& a, const JsonValue& b) {
    return a.kind == b.kind && a.text == b.text && a.names == b.names &&
           std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same);
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void tell_time() { state_.statistics.seconds = base_seconds_ + elapsed(); }

  bool is_over() {
    const auto& found = state_.statistics.findings;
    over_ = over_ || (runner_.seconds > 0 && elapsed() >= runner_.seconds) ||
            (runner_.stop_after > 0 && found.size() >= runner_.stop_after) || (options_.stops && options_.stops() > 0);
    return over_;
  }

  // The end of a block where the campaign has so many cases.
  uint64_t end_of(uint64_t block) const {
    if (runner_.runs == 0) return kBlockCases;
    const uint64_t begin = block * kBlockCases;
    return runner_.runs <= begin ? 0 : std::min(kBlockCases, runner_.runs - begin);
  }

  std::optional<std::string> next() {
    // What died is shown even where the time is over.
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      it->range.end = end_of(it->range.block);
      if (it->deaths.empty() && (is_over() || it->range.first >= it->range.end)) continue;
      BlockWork w = std::move(*it);
      waiting_.erase(it);
      return begin(std::move(w));
    }
    if (is_over() || end_of(state_.next_block) == 0) return std::nullopt;
    BlockWork w;
    w.range.block = state_.next_block++;
    w.range.end = end_of(w.range.block);
    return begin(std::move(w));
  }

  std::string begin(BlockWork w) {
    std::string request = request_of(w.range);
    running_[w.range.block] = std::move(w);
    return request;
  }

  BlockWork take(const WorkerAnswer& a) {
    const uint64_t block = parse_json(a.request).at("block").count();
    BlockWork w = std::move(running_.at(block));
    running_.erase(block);
    return w;
  }

  void count(const WorkerAnswer& a) {
    BlockWork w = take(a);
    const JsonValue answer = parse_json(a.answer);
    Statistics part = statistics_of(answer.at("statistics"));
    tell_time();
    for (KeptFinding& f : statistics_of(answer.at("deadly")).findings) {
      const auto death =
          std::find_if(w.deaths.begin(), w.deaths.end(), [&](const Death& d) { return d.number == f.number; });
      if (death != w.deaths.end()) keep_death(w, Death(*death), std::move(f.lineage), std::move(f.saved));
    }
    // Those that could not be drawn have no case to show.
    const std::vector<Death> rest = w.deaths;
    for (const Death& d : rest) keep_death(w, d, "", {});
    w.range.first += part.cases;
    for (KeptFinding& f : part.findings) f.seconds = state_.statistics.seconds;
    add(state_.statistics, std::move(part));
    write_findings();
    if (w.range.first < kBlockCases) {
      w.deaths.clear();
      waiting_.push_back(std::move(w));
    }
    add_sample(state_, false);
  }

  void keep_death(BlockWork& w, const Death& d, std::string lineage, FindingFile saved) {
    const auto part = std::find_if(w.range.deadly.begin(), w.range.deadly.end(),
                                   [&](const DeadlyCase& c) { return c.number == d.number; });
    KeptFinding f;
    f.finding = {{stage_of_part(part->part), d.check, ""}, d.message};
    f.number = d.number;
    f.count = 1;
    f.seconds = state_.statistics.seconds;
    f.lineage = std::move(lineage);
    if (!runner_.out.empty()) f.saved = std::move(saved);
    add(state_.statistics, std::move(f));
    const uint64_t number = d.number;
    std::erase_if(w.deaths, [&](const Death& other) { return other.number == number; });
  }

  void write_findings() {
    if (findings_.empty()) return;
    for (KeptFinding& f : state_.statistics.findings)
      if (!f.saved.bytes.empty()) write_finding(findings_, f, state_.statistics);
  }

  // A worker died, and says where it was.
  void blame(const WorkerAnswer& a) {
    BlockWork w = take(a);
    if (a.item / kBlockCases != w.range.block)
      throw Error(ErrorCode::kInternal, "a worker " + a.death + " outside of any case; it printed: " + a.output, "");
    const uint64_t number = a.item;
    std::erase_if(w.range.deadly, [&](const DeadlyCase& d) { return d.number == number; });
    std::erase_if(w.deaths, [&](const Death& d) { return d.number == number; });
    w.range.deadly.push_back({number, a.part});
    // With a whole batch: which case it was is yet to be found out.
    if (a.part != kGpuBatch)
      w.deaths.push_back(
          {number, check_of_death(a.death),
           "case " + std::to_string(number) + " " + a.death + (a.output.empty() ? "" : "; it printed: " + a.output)});
    waiting_.push_front(std::move(w));
  }

  WorkerOrder tick() {
    tell_time();
    if (options_.progress) options_.progress(state_.statistics);
    if (options_.stops && options_.stops() > 1) return WorkerOrder::kGiveUp;
    if (is_over()) return WorkerOrder::kFinish;
    if (Clock::now() - saved_at_ > std::chrono::seconds(10)) save();
    return WorkerOrder::kGoOn;
  }

  void save() {
    saved_at_ = Clock::now();
    state_.partial.clear();
    const auto note = [&](const BlockWork& w) { state_.partial[w.range.block] = {w.range.first, w.range.deadly}; };
    for (const BlockWork& w : waiting_) note(w);
    for (const auto& [block, w] : running_) note(w);
    // A case whose death was not told yet is met again.
    const auto untold = [&](const BlockWork& w) {
      for (const Death& d : w.deaths)
        std::erase_if(state_.partial[w.range.block].deadly, [&](const DeadlyCase& c) { return c.number == d.number; });
    };
    for (const BlockWork& w : waiting_) untold(w);
    for (const auto& [block, w] : running_) untold(w);
    if (!runner_.out.empty()) write_file(state_path(runner_.out), to_json(state_));
  }

  const CampaignOptions& options_;
  RunnerOptions runner_;
  std::string findings_;  // the folder
  CampaignState state_;
  std::deque<BlockWork> waiting_;          // died, or partly done
  std::map<uint64_t, BlockWork> running_;  // by block
  Clock::time_point start_, saved_at_;
  double base_seconds_ = 0;
  bool over_ = false;
};

}  // namespace

CampaignState run_campaign(const CampaignOptions& options) { return CampaignRun(options).run(); }

}  // namespace fusebox::fuzz
