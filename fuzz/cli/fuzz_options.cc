// `fusebox fuzz`: its options and its help.
#include <CLI/CLI.hpp>
#include <memory>

#include "fuzz/cli/commands.h"

namespace fusebox::cli {
namespace {

constexpr const char* kAbout = "Looks for bugs: random programs, schedules and inputs, judged by oracles.";

constexpr const char* kFooter =
    R"(Each case is a program with a schedule and inputs, drawn from a seed or mutated from earlier ones. It is compiled, run on the host
executor, and judged by oracles: by ATen, by the same program unfused, by what the executor checks, by its text and its bytes ...
--list-oracles says what each judges. Findings of one signature (stage, check, kind of place) count as one.

The same seed gives the same cases. Exits 1 where something was found.

  fusebox fuzz --time 60s
  fusebox fuzz --runs 20000 --seed 7 --out findings
  fusebox fuzz --runs 1000 --oracle aten,schedules --defect split-swapped
  fusebox fuzz --print-case 4294967729)";

}  // namespace

void add_fuzz(CLI::App& app, Common& common, Chosen& chosen) {
  const auto a = std::make_shared<FuzzArguments>();
  CLI::App* c = add_subcommand(app, "fuzz", kAbout, kFooter);
  c->add_option("--time", a->time, "How long: 60, 60s, 5m, 1h; else until --runs");
  c->add_option("--runs", a->runs, "How many cases; 1000 where no time is given either");
  c->add_option("--seed", a->seed, "Of the campaign")->capture_default_str();
  c->add_option("--oracle", a->oracles, "Oracles, with commas between; else all, each as often as it pays")
      ->delimiter(',')
      ->type_size(1)
      ->allow_extra_args(false);
  c->add_option("--out", a->out, "A folder for a bundle of each finding");
  add_defects(*c, a->defects);
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
