#include "ir/table/error.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"
#include "replay/record/replay.h"

namespace fusebox::cli {
namespace {

std::string replay_json(const std::string& path, const Replay& r) {
  JsonObject stages, reasons;
  std::vector<std::string> not_comparable;
  for (const StageVerdict& v : r.stages) {
    stages.add(v.stage, text(v.verdict));
    if (v.verdict != Verdict::kNotComparable) continue;
    not_comparable.push_back(json_string(v.stage));
    reasons.add(v.stage, v.why);
  }
  const StageVerdict* first = r.first_difference();
  JsonObject all;
  all.add("bundle", path)
      .add("program", r.run.fusion.name)
      .add("executor", text(r.run.executor))
      .add("identical", r.identical());
  all.raw("first_difference", first ? json_string(first->stage) : "null");
  all.raw("not_comparable", json_list(not_comparable)).raw("why", reasons.text()).raw("stages", stages.text());
  if (first) all.add("difference", first->difference);
  return all.text();
}

std::string replay_text(const std::string& path, const Replay& r) {
  std::string out = path + ": @" + r.run.fusion.name + " on " + std::string(text(r.run.executor)) + "\n";
  for (const StageVerdict& v : r.stages)
    out += fmt::format("  {:<12} {}{}\n", v.stage, text(v.verdict), v.why.empty() ? "" : ": " + v.why);
  if (const StageVerdict* first = r.first_difference())
    out += "replay: differs at " + first->stage + " (- recorded, + now)\n" + first->difference;
  else
    out += "replay: identical\n";
  return out;
}

}  // namespace

int replay_command(const ReplayArguments& a, Common& common) {
  ReplayOptions options;
  if (!a.on.empty()) options.executor = parse_executor(a.on);
  options.from = *parse_replay_from(a.from);
  options.trust_artifacts = a.trust_artifacts;
  options.threads = a.threads;
  options.defects = parse_defects(a.defects);
  int worst = 0;
  for (const std::string& path : a.files) {
    try {
      common.subject = load_bundle(path);
      const Replay r = replay(*common.subject, options);
      common.json ? print_line(replay_json(path, r)) : print_text(replay_text(path, r));
      worst = std::max(worst, r.identical() ? 0 : 1);
    } catch (const Error& e) {
      // A bundle that cannot be replayed does not stop the others.
      if (a.files.size() == 1 || e.code == ErrorCode::kFileWrite || exit_code(e.code) == 3) throw;
      if (!common.json) note("in " + path + ":");
      report_error(e, common);
      worst = 2;
    }
  }
  return worst;
}

}  // namespace fusebox::cli
