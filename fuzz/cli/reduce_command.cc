// `fusebox reduce`: a finding made small.
#include <CLI/CLI.hpp>
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
    R"(FILE is a bundle of `fusebox fuzz --out` or of `fusebox run --record`, or a program as text with its schedule and inputs. What
fails, and how, is found out by judging it: the signature is stage, check and kind of place. Steps, ops, outputs, axes, extents,
layouts, values are deleted, many at once and then one by one, as long as the signature stays: the result is one of which nothing
more can be deleted. Each try runs in a process of its own, so that a crash or a hang can be reduced too.

With --on cuda, as for a finding of the GPU, each try runs there too: it takes about a second.

OUT is a bundle, or text where its name ends in .fir. With seeded defects, the result fails with them and not without.

Exits 0 where it was reduced, 1 where the failure does not show.

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
  // A case is far too small for ATen's threads, which would spin between two of them.
  ::setenv("OMP_NUM_THREADS", "1", 0);
  fuzz::LoadedFinding f = fuzz::load_finding(a.file);
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
      fmt::print(stderr, "\r{:.0f} s, {} candidates: {}  ", seconds, candidates, size_text(best));
    };
  const Reduction r = fuzz::reduce(f, options);
  if (live) fmt::print(stderr, "\r");
  if (!r.shows) return not_shown(r, f, common);
  write_reduced(r, f.defects, a.out);
  print_reduction(r, a.out, !f.defects.empty(), common);
  return 0;
}

}  // namespace

void add_reduce(CLI::App& app, Common& common, Chosen& chosen) {
  const auto a = std::make_shared<ReduceArguments>();
  CLI::App* c = add_subcommand(app, "reduce", kAbout, kFooter);
  c->add_option("file", a->file, "A bundle, or a program as text");
  c->add_option("-o,--out", a->out, "Where the result goes: a bundle, or text where it ends in .fir");
  c->add_option("--time", a->time, "How long: 60, 60s, 5m; then the best so far is written")->capture_default_str();
  c->add_option("--case-time", a->case_time, "Of one try; what takes longer is a failure of its own")
      ->capture_default_str();
  c->add_option("--on", a->on, "cuda: a GPU beside the host executor; else where the signature is the GPU's")
      ->check(CLI::IsMember({"host", "cuda"}));
  c->add_option("--signature", a->signature, "The failure to keep, where the file shows several");
  add_defects(*c, a->defects);
  c->add_flag("--list", a->list, "Prints what is tried, in order");
  c->callback([a, &common, &chosen] { chosen = [a, &common] { return reduce_command(*a, common); }; });
}

}  // namespace fusebox::cli
