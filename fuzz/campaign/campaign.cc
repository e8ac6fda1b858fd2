#include "fuzz/campaign/campaign.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <optional>
#include <unistd.h>
#include <utility>

#include "fuzz/campaign/folder_lock.h"
#include "fuzz/reduce/reduce.h"
#include "ir/table/error.h"
#include "replay/cli/json.h"
#include "replay/data/file.h"
#include "replay/gate/gate_workers.h"
#include "serde/decode.h"

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

// A block that waits or runs.
struct BlockWork {
  BlockRange range;
  std::vector<Death> deaths;
};

// -- the messages between parent and worker

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

// The beginning of a request to judge a GPU finding again; all other requests are blocks.
constexpr std::string_view kSuspectRequest = "{\"suspect\":";

// The worker's side. A process has one, so its state lasts from block to block.
class BlockWorker {
 public:
  BlockWorker(const CampaignOptions& options, std::map<Signature, uint64_t> saved)
      : options_(options.runner), at_(options.at), saved_(std::move(saved)) {}

  std::string work(const JsonValue& request, WorkerNote& note, const WorkerTell& tell) {
    const BlockRange range = range_of(request);
    note.begin(range.block * kBlockCases + range.first, kDrawing);
    uint64_t last_deadly = 0;
    for (const DeadlyCase& d : range.deadly) last_deadly = std::max(last_deadly, d.number + 1);
    Statistics shown;  // findings made of deadly cases
    BlockHooks hooks;
    uint64_t number = 0;
    hooks.at = [&](uint64_t n, uint64_t part, uint64_t patience) {
      note.begin(number = n, part, patience);
      if (at_) at_(n, part);
    };
    hooks.stops = [&] { return note.stop.load(); };
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
    const auto answer = [&](const Statistics& s) {
      return JsonObject().raw("statistics", to_json(s)).raw("deadly", to_json(std::exchange(shown, {}))).text();
    };
    hooks.told = [&](const Statistics& s) { tell(answer(s)); };
    return answer(run_block(options_, range, hooks));
  }

 private:
  bool wants_bundle(const Finding& f, uint64_t number) {
    // A finding of the GPU needs a file, because it is judged again from that.
    if (options_.out.empty() && f.signature.stage != "gpu") return false;
    const auto [at, is_new] = saved_.emplace(f.signature, number);
    const bool wants = is_new || number < at->second;
    at->second = std::min(at->second, number);
    return wants;
  }

  RunnerOptions options_;
  std::function<void(uint64_t, uint64_t)> at_;
  std::map<Signature, uint64_t> saved_;  // the lowest case whose bundle was sent
};

}  // namespace

namespace {

class CampaignRun {
 public:
  explicit CampaignRun(const CampaignOptions& options) : options_(options), runner_(options.runner) {
    state_.configuration = configuration_of(runner_);
    state_.statistics.judged.resize(oracle_rows().size());
    if (runner_.runs == 0 && runner_.seconds == 0) runner_.runs = 1000;
    if (runner_.out.empty()) return;
    findings_ = runner_.out + "/findings";
    make_folder(runner_.out);
    make_folder(findings_);
    lock_.emplace(runner_.out);
    std::error_code unknown;
    if (std::filesystem::exists(state_path(runner_.out), unknown) || unknown) resume();
  }

  CampaignState run() {
    start_ = saved_at_ = Clock::now();
    base_seconds_ = state_.statistics.seconds;
    save();  // from now on the folder tells which campaign it holds
    std::map<Signature, uint64_t> saved;
    for (const KeptFinding& f : state_.statistics.findings) saved.emplace(f.finding.signature, f.number);
    BlockWorker worker(options_, std::move(saved));
    WorkerCalls calls;
    calls.next = [&] { return next(); };
    calls.work_in_parts = [&](const std::string& request, WorkerNote& note, const WorkerTell& tell) {
      const JsonValue r = parse_json(request);
      return r.find("suspect") ? judge_alone(r.at("suspect").count(), note) : worker.work(r, note, tell);
    };
    calls.next_fresh = [&] { return next_suspect(); };
    calls.told = [&](const WorkerAnswer& a) { count_part(running_.at(block_of(a)), parse_json(a.answer)); };
    calls.done = [&](const WorkerAnswer& a) {
      if (a.request.starts_with(kSuspectRequest))
        convict(a);
      else
        a.death.empty() ? count(a) : blame(a);
    };
    calls.tick = [&] { return tick(); };
    WorkerOptions workers;
    workers.jobs = options_.jobs;
    workers.timeout_s = options_.case_seconds > 0 ? options_.case_seconds : 1e6;
    workers.memory_bytes = options_.memory_bytes;
    workers.retry = false;
    workers.grace_s = options_.grace_s;
    run_workers(workers, calls);
    while (!suspects_.empty()) leave(suspects_.begin()->first);
    tell_time();
    add_sample(state_, true);
    save();
    return std::move(state_);
  }

 private:
  void resume() {
    const std::string path = state_path(runner_.out);
    const std::string text = read_text_file(path);
    JsonValue configuration;
    CampaignState state;
    try {
      const JsonValue json = parse_json(text);
      state = campaign_state_of(json);
      configuration = json.at("configuration");
    } catch (const Error& e) {
      if (e.code == ErrorCode::kNewerVersion) throw Error(e.code, e.what(), path);
      throw Error(e.code,
                  "the campaign's state cannot be used: " + std::string(e.what()) +
                      "; put back a copy of the file, or begin anew in another folder",
                  path + (e.place.empty() ? "" : ": " + e.place));
    }
    if (!same(configuration, parse_json(state_.configuration)))
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
    const bool was_over = over_;
    over_ = over_ || (runner_.seconds > 0 && elapsed() >= runner_.seconds) ||
            (runner_.stop_after > 0 && found.size() >= runner_.stop_after) || (options_.stops && options_.stops() > 0);
    if (over_ && !was_over) over_s_ = elapsed();
    return over_;
  }

  // The end of this block, given how many cases the campaign has.
  uint64_t end_of(uint64_t block) const {
    if (runner_.runs == 0) return kBlockCases;
    const uint64_t begin = block * kBlockCases;
    return runner_.runs <= begin ? 0 : std::min(kBlockCases, runner_.runs - begin);
  }

  std::optional<std::string> next_suspect() {
    if (is_over() && elapsed() > over_s_ + options_.grace_s) return std::nullopt;
    for (auto& [number, s] : suspects_)
      if (!std::exchange(s.is_tried, true)) return std::string(kSuspectRequest) + std::to_string(number) + "}";
    return std::nullopt;
  }

  std::optional<std::string> next() {
    // Deadly cases are reported even when the time is over.
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

  static uint64_t block_of(const WorkerAnswer& a) { return parse_json(a.request).at("block").count(); }

  BlockWork take(const WorkerAnswer& a) {
    const uint64_t block = block_of(a);
    BlockWork w = std::move(running_.at(block));
    running_.erase(block);
    return w;
  }

  void count(const WorkerAnswer& a) {
    BlockWork w = take(a);
    count_part(w, parse_json(a.answer));
    // These cases died while they were drawn, so there is no case to save.
    const std::vector<Death> rest = w.deaths;
    for (const Death& d : rest) keep_death(w, d, "", {});
    write_findings();
    put_back(std::move(w));
    add_sample(state_, false);
  }

  // Keeps the rest of the block for later.
  void put_back(BlockWork w) {
    if (w.range.first >= kBlockCases) return;
    w.deaths.clear();
    waiting_.push_back(std::move(w));
  }

  void count_part(BlockWork& w, const JsonValue& answer) {
    Statistics part = statistics_of(answer.at("statistics"));
    tell_time();
    for (KeptFinding& f : statistics_of(answer.at("deadly")).findings) {
      const auto death =
          std::find_if(w.deaths.begin(), w.deaths.end(), [&](const Death& d) { return d.number == f.number; });
      if (death != w.deaths.end()) keep_death(w, Death(*death), std::move(f.lineage), std::move(f.saved));
    }
    w.range.first += part.cases;
    std::vector<KeptFinding> found = std::exchange(part.findings, {});
    add(state_.statistics, std::move(part));
    for (KeptFinding& f : found) {
      f.seconds = state_.statistics.seconds;
      if (f.finding.signature.stage == "gpu" && !f.saved.bytes.empty())
        suspects_.emplace(++suspected_, Suspect{std::move(f)});
      else
        keep(std::move(f));
    }
    write_findings();
    add_sample(state_, false);
  }

  void keep(KeptFinding f) {
    if (const auto renamed = renamed_.find(f.finding.signature); renamed != renamed_.end())
      f.finding.signature = renamed->second;
    if (runner_.out.empty()) f.saved = {}, f.batch = {};
    add(state_.statistics, std::move(f));
  }

  // -- findings of the GPU, each judged again from its file

  struct Suspect {
    KeptFinding finding;
    bool is_tried = false;
  };

  // The worker's side: judges the finding's file.
  std::string judge_alone(uint64_t suspect, WorkerNote& note) {
    const KeptFinding& f = suspects_.at(suspect).finding;
    const auto at = [&](bool compiles) {
      note.begin(f.number, kFirstOracle + parse_oracles("gpu")[0], compiles ? 6 : 1);
    };
    at(true);
    GpuBatchOptions how{.threads = runner_.gpu_threads, .device = runner_.gpu};
    how.at = [&](bool compiles, uint64_t) { at(compiles); };
    Statistics shown;
    try {
      const LoadedFinding file = read_finding(bytes_of(f.saved.bytes), f.file);
      const JudgeOptions options{.defects = runner_.defects, .step_limit = runner_.step_limit};
      for (Finding& found : judge_on_gpu(file.subject, options, how)) {
        KeptFinding one;
        one.finding = std::move(found);
        add(shown, std::move(one));
      }
    } catch (const Error& e) {
      KeptFinding one;
      one.finding = {{"gpu", code_text(e.code), ""}, e.what()};
      add(shown, std::move(one));
    }
    return to_json(shown);
  }

  void convict(const WorkerAnswer& a) {
    const uint64_t number = parse_json(a.request).at("suspect").count();
    if (a.was_stopped) return leave(number);
    if (!a.death.empty()) return acquit(number, "; its process, alone with it, " + a.death);
    const std::vector<KeptFinding> shown = statistics_of(parse_json(a.answer)).findings;
    KeptFinding& f = suspects_.at(number).finding;
    const auto same = std::find_if(shown.begin(), shown.end(), [&](const KeptFinding& one) {
      return one.finding.signature == f.finding.signature;
    });
    if (same == shown.end())
      return acquit(number, shown.empty() ? "; alone it shows nothing"
                                          : "; alone it shows `" + text(shown[0].finding.signature) + "`");
    f.batch = {};
    keep(std::move(f));
    suspects_.erase(number);
    write_findings();
  }

  // The campaign ended before the finding was judged again.
  void leave(uint64_t number) {
    KeptFinding f = std::move(suspects_.at(number).finding);
    suspects_.erase(number);
    f.finding.message += "; it was not judged again alone, as the campaign ended";
    keep(std::move(f));
    write_findings();
  }

  // The case alone does not show the finding: its check gets the prefix `batch`.
  void acquit(uint64_t number, const std::string& why) {
    KeptFinding f = std::move(suspects_.at(number).finding);
    suspects_.erase(number);
    const Signature was = f.finding.signature;
    f.finding.signature.check = "batch " + was.check;
    f.finding.message += why;
    renamed_[was] = f.finding.signature;
    // Merges the count of the same finding from before its file was judged.
    auto& kept = state_.statistics.findings;
    const auto old = std::find_if(kept.begin(), kept.end(),
                                  [&](const KeptFinding& k) { return k.finding.signature == was && k.file.empty(); });
    if (old != kept.end()) {
      f.count += old->count;
      kept.erase(old);
    }
    keep(std::move(f));
    write_findings();
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

  // A worker died, and its note says where.
  void blame(const WorkerAnswer& a) {
    BlockWork w = take(a);
    if (a.was_stopped) {
      const std::vector<Death> rest = w.deaths;
      for (const Death& d : rest) keep_death(w, d, "", {});
      return put_back(std::move(w));
    }
    const uint64_t number = a.item;
    // A case that died while it was drawn is passed over, so a second such death is not its own.
    const bool is_of_a_case = number / kBlockCases == w.range.block &&
                              (a.part != kDrawing || std::ranges::none_of(w.range.deadly, [&](const DeadlyCase& d) {
                                 return d.number == number && d.part == kDrawing;
                               }));
    if (!is_of_a_case) {
      const std::string what = "a worker " + a.death + " outside of any case; ";
      if (check_of_death(a.death) == "memory") throw Error(ErrorCode::kOutOfMemory, what + "give it more", "--memory");
      throw Error(ErrorCode::kInternal, what + "it printed: " + a.output);
    }
    std::erase_if(w.range.deadly, [&](const DeadlyCase& d) { return d.number == number; });
    std::erase_if(w.deaths, [&](const Death& d) { return d.number == number; });
    w.range.deadly.push_back({number, a.part});
    // A whole batch died: a later run finds out which case it was.
    if (a.part != kGpuBatch)
      w.deaths.push_back({number, check_of_death(a.death),
                          "case " + std::to_string(number) + ", seed " +
                              std::to_string(case_seed(runner_.seed, number)) + ", " + a.death +
                              (a.output.empty() ? "" : "; it printed: " + a.output)});
    waiting_.push_front(std::move(w));
  }

  WorkerOrder tick() {
    tell_time();
    if (options_.progress) options_.progress(state_.statistics);
    if (options_.stops && options_.stops() > 1) return WorkerOrder::kGiveUp;
    if (is_over()) return WorkerOrder::kFinish;
    // A suspect is not counted yet, so the state would miss it.
    if (suspects_.empty() && Clock::now() - saved_at_ > std::chrono::seconds(10)) save();
    return WorkerOrder::kGoOn;
  }

  void save() {
    saved_at_ = Clock::now();
    state_.partial.clear();
    const auto note = [&](const BlockWork& w) { state_.partial[w.range.block] = {w.range.first, w.range.deadly}; };
    for (const BlockWork& w : waiting_) note(w);
    for (const auto& [block, w] : running_) note(w);
    // A case whose death is not reported yet will run and die again.
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
  std::string findings_;  // of findings
  std::optional<FolderLock> lock_;
  CampaignState state_;
  std::deque<BlockWork> waiting_;          // dead, or partly done
  std::map<uint64_t, BlockWork> running_;  // by block
  std::map<uint64_t, Suspect> suspects_;   // in order of arrival
  std::map<Signature, Signature> renamed_;
  uint64_t suspected_ = 0;
  Clock::time_point start_, saved_at_;
  double base_seconds_ = 0, over_s_ = 0;
  bool over_ = false;
};

}  // namespace

CampaignState run_campaign(const CampaignOptions& options) { return CampaignRun(options).run(); }

}  // namespace fusebox::fuzz
