// The options and the help of `fusebox fuzz`.
#include <CLI/CLI.hpp>
#include <memory>

#include "fuzz/cli/commands.h"
#include "replay/cli/numbers.h"

namespace fusebox::cli {
namespace {

constexpr const char* kAbout = "Looks for bugs: random programs, schedules and inputs, judged by oracles.";

constexpr const char* kFooter =
    R"(A case is a program with a schedule and inputs. It is drawn from a seed or mutated from earlier cases, compiled, and
run on the host executor. Oracles judge it: ATen, the same program unfused, the executor's checks, its text, its
bytes, its digests; --list-oracles lists them. Cases run in worker processes. A case that kills its worker, takes
too long or takes too much memory is a finding too. Findings with the same signature (stage, check, kind of place)
count as one.

The same seed gives the same cases, whatever --jobs is. The folder of --out gets a bundle for each finding
(findings/NAME.fuse), a page (report.html) and the campaign's state (campaign.json). The same command goes on from
that state: with --runs up to that many cases in all, with --time for that long again. After Ctrl-C or at the end of
the time, the cases that run now may finish; a case that takes seconds more is killed.

With --on cuda, a finding of the GPU is judged again from its file, in a process of its own. If it does not show
there, its check begins with `batch`, and NAME.batch.fir holds the cases that ran on the GPU before it: --case
judges them together.

--case judges one file by all oracles. --score runs a campaign for each seeded defect until it finds something that
does not show without the defect. Each of the --seeds seeds gets at most --time (60s) of processor time. It prints
each finding and its time.

Exits 1 if something was found; with --score, if a defect was missed.

  fusebox fuzz --time 60s
  fusebox fuzz --runs 1000000 --jobs 8 --seed 7 --out found
  fusebox fuzz --runs 1000 --oracle aten,schedules --defect split-swapped
  fusebox fuzz --case found/findings/aten-differs-add.fuse
  fusebox fuzz --score --time 30s --jobs 2 --defect split-swapped --defect unswitch-first
  fusebox fuzz --print-case 4294967729)";

}  // namespace

void add_fuzz(CLI::App& app, Common& common, Chosen& chosen) {
  const auto a = std::make_shared<FuzzArguments>();
  CLI::App* c = add_subcommand(app, "fuzz", kAbout, kFooter);
  c->add_option("--time", a->time, "How long: 60, 60s, 5m, 1h; without it, until --runs");
  c->add_option("--runs", a->runs, "How many cases; 1000 without --runs and --time")
      ->transform(whole_number(1, kMostSigned));
  c->add_option("--seed", a->seed, "Seed of the campaign")
      ->transform(whole_number(0, kMostUnsigned))
      ->capture_default_str();
  c->add_option("--jobs", a->jobs, "Worker processes; by default as many as processors and memory allow")
      ->transform(whole_number(0, 1024));
  c->add_option("--on", a->on, "cuda: judges on a GPU too, beside the host executor")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  c->add_option("--gpu-turns", a->gpu_turns, "How many processes may use the GPU at a time; 0: all")
      ->transform(whole_number(0, 1024))
      ->capture_default_str();
  c->add_option("--oracle", a->oracles, "Oracles, separated by commas; by default all, each as often as it pays")
      ->delimiter(',')
      ->type_size(1)
      ->allow_extra_args(false);
  c->add_option("--out", a->out, "A folder for findings, report and state");
  add_defects(*c, a->defects);
  c->add_option("--stop-after", a->stop_after, "Ends the campaign after this many findings")
      ->transform(whole_number(1, kMostSigned));
  c->add_option("--case-time", a->case_time, "A case that takes longer is a finding; 20s by default");
  c->add_option("--memory", a->memory_mib, "MiB for a process; a case that takes more is a finding; 0: no limit")
      ->transform(whole_number(0, kMostSigned >> 20))
      ->capture_default_str();
  c->add_option("--case", a->case_file, "Judges one .fir or .fuse file and runs no campaign")->type_name("FILE");
  c->add_flag("--score", a->score, "Runs a campaign for each seeded defect, or for those of --defect");
  c->add_option("--seeds", a->seeds, "How many seeds --score uses, from --seed on")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  c->add_flag("--coverage", a->coverage, "Prints every row of the coverage table");
  c->add_option("--print-case", a->print_case, "Prints the case of a seed as text and runs nothing")
      ->type_name("SEED")
      ->transform(whole_number(0, kMostUnsigned));
  c->add_flag("--list-oracles", a->list_oracles, "Lists the oracles and what each judges");
  c->add_flag("--list-defects", a->list_defects, "Lists the seeded defects and what each breaks");
  c->callback([a, c, &common, &chosen] {
    a->has_print_case = c->count("--print-case") > 0;
    chosen = [a, &common] { return fuzz_command(*a, common); };
  });
}

}  // namespace fusebox::cli
