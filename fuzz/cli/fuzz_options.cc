// `fusebox fuzz`: its options and its help.
#include <CLI/CLI.hpp>
#include <memory>

#include "fuzz/cli/commands.h"

namespace fusebox::cli {
namespace {

constexpr const char* kAbout = "Looks for bugs: random programs, schedules and inputs, judged by oracles.";

constexpr const char* kFooter =
    R"(Each case is a program with a schedule and inputs, drawn from a seed or mutated from earlier ones. It is compiled, run on the host
executor, and judged by oracles: by ATen, by the same program unfused, by what the executor checks, by its text, its bytes and its
digests; --list-oracles says what each judges. Cases run in processes of their own: one that dies, takes too long or too much
memory is a finding too. Findings of one signature (stage, check, kind of place) count as one.

The same seed gives the same cases, whatever --jobs is. DIR holds a bundle of each finding, findings/NAME.fuse, a page, report.html,
and the campaign's state, campaign.json, from which the same command goes on: with --runs up to so many cases in all, with --time
for so long again. Ctrl-C ends it after the cases that run now, and so does the end of the time; what takes seconds more is ended.

With --on cuda, a case that was found by the GPU is judged again from its file, in a process of its own. If it shows nothing there, its
check begins with `batch`, and NAME.batch.fir beside its file holds what was on the GPU before it: --case judges them together.

--case judges one file by all oracles. --score runs a campaign for each seeded defect until something is found that is not there
without it, on --seeds seeds, each for at most --time (60s) of a processor, and prints what was found, and after how long.

Exits 1 where something was found; with --score where a defect was not.

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
  c->add_option("--time", a->time, "How long: 60, 60s, 5m, 1h; else until --runs");
  c->add_option("--runs", a->runs, "How many cases; 1000 where no time is given either");
  c->add_option("--seed", a->seed, "Of the campaign")->capture_default_str();
  c->add_option("--jobs", a->jobs, "Processes; else as many as the machine has processors and memory for")
      ->check(CLI::Range(0, 1024));
  c->add_option("--on", a->on, "cuda: a GPU beside the host executor")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  c->add_option("--gpu-turns", a->gpu_turns, "Processes that may use the GPU at a time; 0: all of them")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  c->add_option("--oracle", a->oracles, "Oracles, with commas between; else all, each as often as it pays")
      ->delimiter(',')
      ->type_size(1)
      ->allow_extra_args(false);
  c->add_option("--out", a->out, "A folder for findings, report and state");
  add_defects(*c, a->defects);
  c->add_option("--stop-after", a->stop_after, "Ends the campaign after so many findings");
  c->add_option("--case-time", a->case_time, "What takes longer is a finding; 20s");
  c->add_option("--memory", a->memory_mib, "MiB of a process; what takes more is a finding; 0: no limit")
      ->capture_default_str();
  c->add_option("--case", a->case_file, "Judges one .fir or .fuse, instead of a campaign")->type_name("FILE");
  c->add_flag("--score", a->score, "Runs a campaign for each seeded defect, or those of --defect");
  c->add_option("--seeds", a->seeds, "Of the score: so many from --seed on")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_flag("--coverage", a->coverage, "Prints every row of the coverage table");
  c->add_option("--print-case", a->print_case, "Prints the case of a seed as text, and runs nothing")
      ->type_name("SEED");
  c->add_flag("--list-oracles", a->list_oracles, "Prints the oracles, and what each judges");
  c->add_flag("--list-defects", a->list_defects, "Prints the seeded defects, and what each breaks");
  c->callback([a, c, &common, &chosen] {
    a->has_print_case = c->count("--print-case") > 0;
    chosen = [a, &common] { return fuzz_command(*a, common); };
  });
}

}  // namespace fusebox::cli
