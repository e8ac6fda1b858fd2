// `fusebox reduce`: makes a finding small.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "fuzz/cli/commands.h"
#include "fuzz/reduce/reduce.h"
#include "ir/table/error.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"

namespace fusebox::cli {
namespace {

using fuzz::CaseSize;
using fuzz::Reduction;

constexpr const char* kAbout =
    "Makes a finding small: the least program, schedule and inputs that fail in the same way.";

constexpr const char* kFooter =
    R"(FILE is a bundle from `fusebox fuzz --out` or `fusebox run --record`, or a program as text with its schedule and
inputs. It is judged first, which gives the signature of its failure: stage, check and kind of place. Then steps,
ops, outputs, axes, extents, layouts and values are deleted, many at once and then one by one, as long as the
signature stays the same. The result is minimal: nothing more can be deleted. Each try runs in a process of its own,
so a crash or a hang can be reduced too.

With --on cuda, and for a finding of the GPU, each try runs there too and takes about a second.

The result is a bundle, or text if the name of --out ends in .fir. With seeded defects, it fails with them and not
without.

Exits 0 if FILE was reduced, 1 if its failure does not show.

  fusebox reduce findings/aten-differs-add.fuse -o small.fuse
  fusebox reduce finding.fuse -o small.fir --time 10s
  fusebox reduce wrong.fir -o small.fir --defect split-swapped)";

struct ReduceArguments {
  std::string file, out, signature;
  std::string time = "60s";
  std::string case_time = "10s";
  std::string on = "";
  std::vector<std::string> defects;
  bool list = false;
};

std::string size_text(const CaseSize& s) {
  return fmt::format("{} ops, {} steps, {} elements", s.ops, s.steps, s.elements);
}

std::string size_object(const CaseSize& s) {
  return JsonObject().add("ops", s.ops).add("steps", s.steps).add("elements", s.elements).text();
}

double factor(const Reduction& r) { return r.before.product() / std::max(r.after.product(), 1.0); }

void print_reduction(const Reduction& r, const std::string& out, bool has_defects, const Common& common) {
  if (common.json)
    return print_line(JsonObject()
                          .add("signature", text(r.finding.signature))
                          .add("message", r.finding.message)
                          .raw("before", size_object(r.before))
                          .raw("after", size_object(r.after))
                          .add("factor", factor(r))
                          .add("candidates", static_cast<int64_t>(r.candidates))
                          .add("judged", static_cast<int64_t>(r.judged))
                          .add("accepted", static_cast<int64_t>(r.accepted))
                          .add("seconds", r.seconds)
                          .add("finished", r.finished)
                          .add("needs_defects", r.needs_defects)
                          .add("file", out)
                          .text());
  print_text(fmt::format(
      "{}\n  {}\nbefore: {}\nafter:  {}, {:.0f} times smaller\n{} candidates, {} judged, {} accepted in {:.1f} "
      "s{}\n{}\n",
      text(r.finding.signature), r.finding.message, size_text(r.before), size_text(r.after), factor(r), r.candidates,
      r.judged, r.accepted, r.seconds, r.finished ? "" : "; time ran out: more might go with a longer --time", out));
  if (has_defects && !r.needs_defects) print_line("it fails without the seeded defects, too");
}

int not_shown(const Reduction& r, const fuzz::LoadedFinding& f, const Common& common) {
  const std::string shown = text(r.finding.signature);
  if (common.json)
    print_line(JsonObject().add("signature", f.signature).add("shows", r.finding.message.empty() ? "" : shown).text());
  else if (!r.finding.message.empty())
    print_line(fmt::format("the file shows another failure than `{}`: {}; give --signature \"{}\" to reduce that one",
                           f.signature, shown, shown));
  else
    print_line(f.signature.empty()
                   ? "no oracle finds a failure in the file: there is nothing to reduce"
                   : fmt::format("the failure `{}` does not show: there is nothing to reduce", f.signature));
  return 1;
}

int list_rows(const Common& common) {
  for (const fuzz::ReductionRow& row : fuzz::reduction_rows())
    print_line(common.json ? JsonObject().add("reduction", row.text).add("summary", row.summary).text()
                           : fmt::format("{:<12} {}", row.text, row.summary));
  return 0;
}

int reduce_command(const ReduceArguments& a, Common& common) {
  if (a.list) return list_rows(common);
  if (a.file.empty()) throw Error(ErrorCode::kUsage, "no file is given; name a finding", "FILE");
  if (a.out.empty()) throw Error(ErrorCode::kUsage, "nothing says where the result goes; give --out", "--out");
  // A case is far too small for ATen's threads. They would spin between cases.
  ::setenv("OMP_NUM_THREADS", "1", 0);
  fuzz::LoadedFinding f = fuzz::load_finding(a.file);
  note_other_inputs(f);
  if (!a.defects.empty()) f.defects = parse_defects(a.defects);
  if (!a.signature.empty()) f.signature = a.signature;
  fuzz::ReduceOptions options;
  options.seconds = seconds_of(a.time, "--time");
  options.case_seconds = seconds_of(a.case_time, "--case-time");
  options.on_gpu = a.on.empty() ? f.signature.starts_with("gpu ") : a.on == "cuda";
  if (options.on_gpu) check_device("cuda");
  const bool live = ::isatty(STDERR_FILENO) != 0 && !common.json;
  double shown = 0;
  if (live)
    options.progress = [&](double seconds, uint64_t candidates, const CaseSize& best) {
      if (seconds - shown < 0.5) return;
      shown = seconds;
      std::fputs(fmt::format("\r{:.0f} s, {} candidates: {}  ", seconds, candidates, size_text(best)).c_str(), stderr);
    };
  const Reduction r = fuzz::reduce(f, options);
  if (live) std::fputs("\r", stderr);
  if (!r.shows) return not_shown(r, f, common);
  write_reduced(r, f.defects, a.out);
  print_reduction(r, a.out, !f.defects.empty(), common);
  return 0;
}

}  // namespace

void note_other_inputs(const fuzz::LoadedFinding& f) {
  if (f.has_other_inputs)
    note("the bundle holds inputs as bytes, which a case does not; it is judged with generated elements");
}

void add_reduce(CLI::App& app, Common& common, Chosen& chosen) {
  const auto a = std::make_shared<ReduceArguments>();
  CLI::App* c = add_subcommand(app, "reduce", kAbout, kFooter);
  c->add_option("file", a->file, "A bundle, or a program as text");
  c->add_option("-o,--out", a->out, "File for the result: text if its name ends in .fir, otherwise a bundle");
  c->add_option("--time", a->time, "How long: 60, 60s, 5m; then writes the best result so far")->capture_default_str();
  c->add_option("--case-time", a->case_time, "Limit for one try; a try that takes longer is a failure of another kind")
      ->capture_default_str();
  c->add_option("--on", a->on, "cuda: judges on a GPU too; by default if the signature is one of the GPU")
      ->check(CLI::IsMember({"host", "cuda"}));
  c->add_option("--signature", a->signature, "The failure to keep, if the file shows several");
  add_defects(*c, a->defects);
  c->add_flag("--list", a->list, "Lists the reductions in the order in which they are tried");
  c->callback([a, &common, &chosen] { chosen = [a, &common] { return reduce_command(*a, common); }; });
}

}  // namespace fusebox::cli
