#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <thread>
#include <unistd.h>

#include "ir/table/error.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"
#include "replay/data/file.h"
#include "replay/gate/gate.h"

namespace fusebox::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

std::string gate_json(const GateResult& r) {
  JsonObject stages;
  for (const StageVerdict& v : r.stages) stages.add(v.stage, text(v.verdict));
  std::vector<std::string> changes;
  for (const GateChange& c : r.changes)
    changes.push_back(JsonObject().add("stage", c.stage).add("was", c.was).add("is", c.is).text());
  JsonObject all;
  all.add("bundle", r.path).add("ok", r.ok()).add("status", text(r.status)).add("program", r.program);
  all.add("executor", r.executor).add("records_bug", r.records_bug);
  all.raw("first_difference", r.stage.empty() ? "null" : json_string(r.stage)).add("message", r.message);
  all.add("difference", r.difference).raw("stages", stages.text()).raw("changes", json_list(changes));
  return all.add("seconds", r.seconds).text();
}

// The lines about a bundle; none if it passed.
std::string gate_text(const GateResult& r) {
  if (r.status == GateStatus::kPassed) return "";
  std::string out = fmt::format("{:<9} {}: ", text(r.status), r.path);
  if (r.status == GateStatus::kBlessed) {
    for (const GateChange& c : r.changes) out += (&c == r.changes.data() ? "" : ", ") + c.stage;
    return out + "\n";
  }
  out += r.message + "\n";
  for (size_t at = 0; at < r.difference.size();) {
    const size_t end = std::min(r.difference.find('\n', at), r.difference.size());
    out += "    " + r.difference.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// Progress: on a terminal one line that is overwritten, in a log now and then a line.
class Progress {
 public:
  Progress(size_t all, bool quiet) : all_(all), is_terminal_(::isatty(STDERR_FILENO) == 1), quiet_(quiet) {}
  void show(size_t count, size_t failed) {
    const double now = seconds_since(began_);
    if (quiet_ || (now < next_ && count < all_)) return;
    if (!is_terminal_ && now < kLogPause_s) return;
    next_ = now + (is_terminal_ ? 0.1 : kLogPause_s);
    const std::string line = fmt::format("{} of {} bundles, {} failed, {:.0f} a second", count, all_, failed,
                                         static_cast<double>(count) / now);
    std::fputs(fmt::format("{}{}{}", is_terminal_ ? "\r" : "gate: ", line, is_terminal_ ? "\x1b[K" : "\n").c_str(),
               stderr);
    std::fflush(stderr);
    drawn_ = is_terminal_;
  }
  // Clears the line before other text is printed.
  void clear() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
    drawn_ = false;
  }

 private:
  static constexpr double kLogPause_s = 30;
  const size_t all_;
  const bool is_terminal_, quiet_;
  const Clock::time_point began_ = Clock::now();
  double next_ = 0;
  bool drawn_ = false;
};

std::string summary(const std::vector<GateResult>& results, double seconds) {
  std::map<GateStatus, size_t> counts;
  size_t bugs = 0;
  for (const GateResult& r : results) {
    ++counts[r.status];
    bugs += r.status == GateStatus::kPassed && r.records_bug ? 1 : 0;
  }
  std::string out =
      fmt::format("gate: {} bundle{} in {:.1f} s:", results.size(), results.size() == 1 ? "" : "s", seconds);
  for (const auto& [status, count] : counts) {
    out += fmt::format("{} {} {}", status == counts.begin()->first ? "" : ",", count, text(status));
    if (status == GateStatus::kPassed && bugs > 0) out += fmt::format(" ({} of them bugs, as recorded)", bugs);
  }
  return out + "\n";
}

void check_usage(const GateArguments& a) {
  if (!a.bless) {
    if (!a.reason.empty()) throw Error(ErrorCode::kUsage, "--reason belongs to --bless", "--reason");
    return;
  }
  if (a.reason.find_first_not_of(" \t\r\n") == std::string::npos)
    throw Error(ErrorCode::kUsage, "say why with --reason \"…\"; it is kept beside the bundles", "--bless");
  if (!a.on.empty() || a.from != "fusion" || !a.only.empty() || !a.defects.empty())
    throw Error(ErrorCode::kUsage,
                "a bundle is recorded anew as it was recorded; leave out --on, --from, --only and --defect", "--bless");
  const char* ci = std::getenv("CI");
  if (ci && *ci != '\0' && std::string_view(ci) != "false" && std::string_view(ci) != "0")
    throw Error(ErrorCode::kUsage, "CI does not bless; do it where a person reads what changes", "--bless");
}

GateOptions gate_options(const GateArguments& a) {
  GateOptions o;
  if (!a.on.empty()) o.replay.executor = parse_executor(a.on);
  o.replay.from = *parse_replay_from(a.from);
  o.replay.threads = a.threads;
  o.replay.defects = parse_defects(a.defects);
  o.jobs = a.jobs > 0 ? a.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  o.timeout_s = a.timeout_s;
  o.only = a.only;
  o.allow_skips = !a.no_skips;
  if (a.bless) o.bless_reason = a.reason;
  return o;
}

}  // namespace

int gate_command(const GateArguments& a, Common& common) {
  check_usage(a);
  const GateOptions options = gate_options(a);
  const std::vector<std::string> paths = find_bundles(a.paths);
  const auto began = Clock::now();
  std::vector<GateResult> results;
  Progress progress(paths.size(), common.json);
  gate(
      paths, options,
      [&](const GateResult& r) {
        results.push_back(r);
        progress.clear();
        const std::string told = common.json ? gate_json(r) + "\n" : gate_text(r);
        if (!told.empty()) print_text(told);
      },
      [&](size_t count, size_t failed) { progress.show(count, failed); });
  progress.clear();
  const double seconds = seconds_since(began);
  if (!a.junit.empty()) write_file(a.junit, junit_xml(results, seconds));
  const bool ok = std::all_of(results.begin(), results.end(), [](const GateResult& r) { return r.ok(); });
  if (!common.json) {
    print_text(summary(results, seconds));
    if (!ok && !a.bless)
      note(
          "`fusebox replay FILE` shows a bundle's stages; `fusebox gate PATH --bless --reason \"…\"` accepts what "
          "changed");
  }
  return ok ? 0 : 1;
}

}  // namespace fusebox::cli
