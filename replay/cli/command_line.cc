// The commands of this room: run, bench, replay, gate, show, cache, explain, verify, fmt, diff, convert.
#include "replay/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <new>
#include <sstream>
#include <unistd.h>

#include "ir/module/device_properties.h"
#include "ir/table/defect.h"
#include "passes/rewrite/rewrite.h"
#include "replay/cli/commands.h"
#include "replay/cli/numbers.h"
#include "replay/cli/report.h"
#include "replay/gate/gate.h"

namespace fusebox::cli {
namespace {

constexpr const char* kAbout =
    R"(Runs fused tensor programs. Every state of that work is a file that can be shown, compared and replayed.

Files: .fir is a program as text; .fuse is a bundle, a program with the record of a run.)";

constexpr const char* kFooter = R"(With --json, anywhere, each result is one JSON object on a line of standard output.
Exit codes: 0 as expected; 1 a difference or a failing check was found; 2 bad input or usage; 3 an internal error, with the path of a
bundle that reproduces it. Each command has its own --help with examples.)";

const CLI::IsMember kExecutors({"cuda", "host", "aten"});

void add_threads(CLI::App& command, int& threads, const std::string& about) {
  command.add_option("--threads", threads, about)->transform(whole_number(1, 1024))->capture_default_str();
}

}  // namespace

CLI::App* add_subcommand(CLI::App& app, const char* name, const char* about, const std::string& footer) {
  CLI::App* command = app.add_subcommand(name, about);
  command->footer(footer);
  return command;
}

void add_device(CLI::App& command, PlanArguments& plan) {
  std::vector<std::string> names;
  for (const DeviceProperties& d : device_presets()) names.push_back(d.name);
  command
      .add_option("--device", plan.device,
                  "The GPU that the automatic plan is for; default: the one that runs it, else h200")
      ->check(CLI::IsMember(names));
}

void add_plan(CLI::App& command, PlanArguments& plan) {
  CLI::Option* const choice =
      command
          .add_option("--plan", plan.plan,
                      "automatic: schedulers cut and schedule the program; unfused: one kernel for each op; default: "
                      "the program's own steps, else automatic")
          ->check(CLI::IsMember({"automatic", "unfused"}));
  command.add_flag_callback(
             "--unfused", [&plan] { plan.plan = "unfused"; }, "The same as --plan unfused")
      ->excludes(choice);
  command.add_flag_callback(
      "--no-infer-contiguity", [&plan] { plan.infer_contiguity = false; },
      "Makes the results of ATen segments contiguous, instead of asking before the run how ATen will lay them out");
  add_device(command, plan);
}

void add_precision(CLI::App& command, std::string& word) {
  command
      .add_option("--precision", word,
                  "fast: a GPU may compute elementary functions and divisions of f32 and narrower floats by its "
                  "approximations; exact: it may "
                  "not. A step at the head of the program's steps says so; default: what the program says, else exact")
      ->check(CLI::IsMember({"fast", "exact"}));
}

void add_defects(CLI::App& command, std::vector<std::string>& names) {
  const std::string text =
      "Breaks a rule of lowering on purpose, so that the checks find it; may be repeated; "
      "`fusebox fuzz --list-defects` prints the names";
  command.add_option("--defect", names, kDefectsCompiledIn ? text : "Not in this build: it has no seeded defects")
      ->type_name("NAME")
      ->type_size(1)
      ->allow_extra_args(false);
}

namespace {

// The help on rewrites, with which a list of steps may start.
std::string rewrites() {
  std::string all = "\n\nA list of steps may start with rewrites, such as `rewrite name \"dead_code\"`:\n";
  for (const RewriteRow& row : rewrite_rows()) all += fmt::format("\n  {:<22} {}", row.name, row.summary);
  all += "\n\nEach takes options, such as `rewrite name \"dead_code\" options \"limit=1\"`:\n";
  for (const RewriteOptionRow& row : rewrite_option_rows()) all += fmt::format("\n  {:<22} {}", row.name, row.summary);
  return all;
}

// An empty file name would silently mean that the option was not given.
void refuse_empty_values(const CLI::App& app) {
  const auto is_given = [](const CLI::Option* o) { return o->count() > 0 && !o->get_positional(); };
  for (const CLI::Option* o : app.get_options(is_given))
    for (const std::string& value : o->results())
      if (value.empty())
        throw Error(ErrorCode::kUsage, "the option has an empty value; give one, or leave out the option",
                    o->get_name());
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
}

int command_line(int argc, char** argv, std::span<const AddCommand> extra, Common& common) {
  // Takes --json out first, so that it may stand anywhere.
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    if (std::strcmp(argv[i], "--json") == 0)
      common.json = true;
    else
      words.emplace_back(argv[i]);
  }

  CLI::App app(kAbout, "fusebox");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", FUSEBOX_VERSION);
  app.add_flag("--json", common.json, "One JSON object a line");
  Chosen chosen;

  RunArguments run;
  CLI::App* c = add_subcommand(
      app, "run", "Compiles a program for its inputs and runs it.",
      std::string(
          R"(A program has default inputs: small ones for the host, full ones for a GPU. A bundle is run on its recorded inputs,
by its recorded plan unless --steps, --plan or --device name another, or --tune searches for one.
--check evaluates the program op by op with ATen, and compares every output, also in-place ones. Each element must lie within the
bound of a right implementation.

An input is NAME=SPEC: a dtype, a shape, then any of `strides [..]`, `offset N`, a generator (`normal`, `uniform LOW HIGH`,
`integers LOW HIGH`, `boundary`, `constant value 1.5_f32`) and `seed N`; or a .npy file; or the value of a scalar.

  fusebox run corpus/programs/softmax.fir --check
  fusebox run corpus/programs/rope.fir --on cuda --record rope.fuse
  fusebox run f.fir --input 'x=f32[5, 7] strides [14, 2] uniform -1.0 1.0 seed 7' --input scale=0.5 --output y=y.npy
  fusebox run f.fir --steps other_schedule.txt --check --json
  fusebox run corpus/programs/softmax.fir --on cuda --time 50
  fusebox run corpus/programs/softmax.fir --on cuda --plan automatic --tune --save-steps best.txt)") +
          rewrites());
  c->add_option("FILE", run.file, "A .fir or a .fuse")->required();
  c->add_option("--on", run.on, "The executor: cuda, host or aten; default: cuda if there is a GPU, else host")
      ->check(kExecutors);
  CLI::Option* const run_steps =
      c->add_option("--steps", run.steps, "A list of steps instead of the program's own schedule");
  add_plan(*c, run.plan);
  run_steps->excludes(c->get_option("--plan"))->excludes(c->get_option("--unfused"));
  add_precision(*c, run.precision);
  c->add_option("--input", run.inputs, "NAME=SPEC; may be repeated")->take_all()->type_size(1)->allow_extra_args(false);
  c->add_option("--output", run.outputs,
                "NAME=FILE.npy, where NAME is an output or an overwritten input; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  c->add_option("--record", run.record, "Writes a bundle of the run, whether it succeeds or fails");
  c->add_flag("--check", run.check, "Compares the outputs with ATen");
  CLI::Option* const no_cache =
      c->add_flag("--no-cache", run.no_cache, "Plans and compiles anew, and keeps nothing; `fusebox cache --help`");
  c->add_flag("--cache-only", run.cache_only, "Fails if anything has to be planned or compiled")->excludes(no_cache);
  add_threads(*c, run.threads, "Threads of the host executor; no result depends on it");
  c->add_flag("--tune", run.tune,
              "On a GPU, times schedules like those that the schedulers choose, and runs with the fastest");
  c->add_option("--save-steps", run.save_steps,
                "Writes the steps of the run, also those of the automatic plan; for --steps");
  c->add_option("--time", run.time, "Times this many more runs: the whole, each kernel, and the host's part")
      ->transform(whole_number(1, 1000000));
  add_defects(*c, run.defects);
  c->callback([&] { chosen = [&] { return run_command(run, common); }; });

  BenchArguments bench;
  c = add_subcommand(
      app, "bench", "Times programs, and compares with an earlier run.",
      R"(Compiles each program with its own schedule for its default inputs, runs it repeatedly, and prints a line: the bytes that any run must
move, the median time of the whole (with the values that a tenth lies below and above), of the kernels and of the host. A bundle is timed
on its recorded inputs, by its recorded plan unless --plan or --device name another.

On a GPU, events measure the times, and the L2 cache is flushed before each run. The floor is the time that a copy of 2 GiB in this
process would need for as many bytes. The bar shows the floor as a part of the time. On the host executor, the wall clock measures the
times, and the bar compares a program with the slowest one; these times say nothing about a GPU.

With --against a program is slower if its median is more than the tolerance above the earlier one; then the exit code is 1. The earlier
file must be of the same executor, GPU, inputs and threads. A program that cannot be timed prints its error, and the exit code is 2.

  fusebox bench corpus/schedules/*.fir --on cuda --plot roofline.svg
  fusebox bench corpus/programs/*.fir --on host --json > before.json
  fusebox bench corpus/programs/*.fir --on host --against before.json --tolerance 0.2)");
  c->add_option("FILE", bench.files, ".fir or .fuse files")->required();
  c->add_option("--on", bench.on, "The executor: cuda or host; default: cuda if there is a GPU, else host")
      ->check(CLI::IsMember({"cuda", "host"}));
  c->add_option("--where", bench.where,
                "The default inputs: host (small) or gpu (full); default: those of the executor")
      ->check(CLI::IsMember({"host", "gpu"}));
  c->add_option("--runs", bench.runs, "Timed runs of each program")
      ->transform(whole_number(1, 1000000))
      ->capture_default_str();
  add_plan(*c, bench.plan);
  add_threads(*c, bench.threads, "Threads of the host executor");
  c->add_option("--plot", bench.plot, "Writes a picture of all programs: bytes moved and rate reached, below the roof");
  c->add_option("--against", bench.against, "The output of an earlier `bench --json`");
  c->add_option("--tolerance", bench.tolerance, "How much slower is no slowdown: 0.1 is a tenth")
      ->transform(real_number(0.0, 1000.0))
      ->capture_default_str();
  c->callback([&] { chosen = [&] { return bench_command(bench, common); }; });

  ReplayArguments replay;
  c = add_subcommand(
      app, "replay", "Computes every stage of a recorded run again and compares.",
      R"(Reports each stage as identical, different, or not comparable with the reason, and shows the first difference. A run that failed must
fail the same way. --from takes the programs up to a stage from the bundle, so that the later stages can be tried alone. Code in a
bundle is compiled only with --trust-artifacts: --from source runs the CUDA text.

  fusebox replay softmax.fuse
  fusebox replay finding.fuse --from kernel --on host
  fusebox replay softmax.fuse --from source --trust-artifacts --on cuda
  fusebox replay bundles/*.fuse --json)");
  c->add_option("FILE", replay.files, "Bundles")->required();
  c->add_option("--on", replay.on, "The executor: cuda, host or aten; default: the recorded one")->check(kExecutors);
  c->add_option("--from", replay.from, "The stage to start from")
      ->check(CLI::IsMember({"fusion", "scheduled", "kernel", "source"}))
      ->capture_default_str();
  c->add_flag("--trust-artifacts", replay.trust_artifacts, "Allows code of the bundle to be compiled and run");
  add_threads(*c, replay.threads, "Threads of the host executor; no result depends on it");
  add_defects(*c, replay.defects);
  c->callback([&] { chosen = [&] { return replay_command(replay, common); }; });

  GateArguments gate;
  c = add_subcommand(
      app, "gate", "Replays every bundle of a folder: the check of a change.",
      R"(Replays each .fuse file below PATH, in the order of names, in a child process. A bundle that dies, takes too long or cannot be read
fails, and the others go on. A bundle passes if every stage and the outcome are as recorded, or not comparable here (such as a binary
of another compiler). Otherwise the first stage that differs is shown, and the difference of the kernels' text. A bundle is skipped,
and counted, if it needs a GPU, ATen or seeded defects and they are missing.

A bundle that records a failure is a known bug: it must fail the same way. If it runs now it is `fixed`, and fails the gate until it is
blessed; from then on it must run. --bless records differing bundles anew. It keeps the reason in the bundle and, with every digest
before and after, in the file BLESSED of its folder. It never records a failure over a run that worked, and refuses if CI is set.

  fusebox gate corpus/regress
  fusebox gate bundles --jobs 8 --timeout 30 --junit gate.xml
  fusebox gate corpus/golden --from kernel --only kernel --only outputs
  fusebox gate corpus/regress --bless --reason "stores of a reduction are unrolled"
  fusebox gate bundles --json | jq -r 'select(.ok | not) | .bundle')");
  c->add_option("PATH", gate.paths, "Folders, searched to the bottom, or bundles")->required();
  c->add_option("--on", gate.on, "The executor: cuda, host or aten; default: the recorded one of each")
      ->check(kExecutors);
  c->add_option("--from", gate.from, "The stage to start from; the bundle gives the stages before it")
      ->check(CLI::IsMember({"fusion", "scheduled", "kernel"}))
      ->capture_default_str();
  std::vector<std::string> gate_stage_names(gate_stages().begin(), gate_stages().end());
  c->add_option("--only", gate.only, "Compares this stage and the outcome, instead of all; may be repeated")
      ->check(CLI::IsMember(gate_stage_names))
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
  c->add_option("--jobs", gate.jobs, "Processes; default: one for each processor")->transform(whole_number(1, 1024));
  c->add_option("--timeout", gate.timeout_s, "Seconds that one bundle may take")
      ->transform(real_number(0.001, 1e6))
      ->capture_default_str();
  c->add_option("--junit", gate.junit, "Writes an XML report that CI systems read");
  c->add_flag("--no-skips", gate.no_skips, "A bundle that this machine cannot replay fails");
  c->add_flag("--bless", gate.bless, "Records differing bundles anew");
  c->add_option("--reason", gate.reason, "The reason for --bless");
  add_threads(*c, gate.threads, "Threads of the host executor, of each process");
  add_defects(*c, gate.defects);
  c->callback([&] { chosen = [&] { return gate_command(gate, common); }; });

  ShowArguments show;
  c = add_subcommand(
      app, "show", "Prints a program at any level.",
      R"(Without --level: the file as it is, and how a bundle was recorded. A bundle shows the programs that it holds; a text is compiled for its
default host inputs. --level plan shows the decisions of lowering: loops, buffers, barriers, and for each statement its accesses and its
checks with their reasons. Comments above kernels and CUDA text name their parameters in the program. If a schedule is refused, --level
scheduled shows the result of the steps so far, with the error beside the tensor or domain that it names, and exits with 2.
--graph draws the iteration domains of each tensor, from root to loop. It shows which may leave their extent, their index and predicate,
and their groups in the id graph. An html page holds all five graphs and needs no other file.

  fusebox show corpus/programs/softmax.fir --level kernel
  fusebox show softmax.fuse --level cuda
  fusebox show corpus/programs/rope.fir --level scheduled --format dot | dot -Tsvg > rope.svg
  fusebox show corpus/programs/softmax.fir --graph almost-exact --format html > softmax.html)");
  c->add_option("FILE", show.file, "A .fir or a .fuse")->required();
  c->add_flag("--why", show.why, "With --level kernel: the reason of each check, and of each check left out");
  add_defects(*c, show.defects);
  add_precision(*c, show.precision);
  c->add_option("--level", show.level, "math, heuristics, scheduled, plan, kernel, cuda or host")
      ->check(CLI::IsMember({"math", "heuristics", "scheduled", "plan", "kernel", "cuda", "host"}));
  c->add_option("--graph", show.graph, "A picture of an id graph: exact, almost-exact, broadcast, permissive or loop")
      ->check(CLI::IsMember({"exact", "almost-exact", "broadcast", "permissive", "loop"}));
  c->add_option("--format", show.format, "text, json or dot; with --graph also svg or html")
      ->check(CLI::IsMember({"text", "json", "dot", "svg", "html"}))
      ->capture_default_str();
  add_plan(*c, show.plan);
  c->callback([&] { chosen = [&] { return show_command(show, common); }; });

  ExplainArguments explain;
  c = add_subcommand(
      app, "explain", "Says why two iteration domains are one, or why not; or how a program is cut and scheduled.",
      R"(A domain is %tensor.domain, as in steps, of the program with its schedule applied. "One" has several meanings, and each gets an answer:
in a nest (one value at every loop point, holes included), at elements (one function of the elements that both are made of), and
in each id graph. A proof names its theorems and the facts that it relies on. A refusal gives a point where the two differ, if one is
found: sizes of the symbols, a loop point or an element, and both values there.

This needs no GPU, no ATen and no schedule that compiles: illegal inlining is left out, and named.

--plan explains the automatic plan instead: the segments with their schedulers and the bytes that they read and write, and for segments
that hand tensors to one another, why they are not one kernel. The sizes are those of the program's default inputs.

  fusebox explain corpus/programs/softmax.fir %y.i1 %x.i1
  fusebox explain corpus/programs/swizzled_copy_1d.fir %y.f %y.b
  fusebox explain f.fir %y.o %z.o --steps other_schedule.txt --json
  fusebox explain corpus/programs/layer_norm_backward.fir --plan --where gpu --format html > plan.html)");
  c->add_option("FILE", explain.file, "A .fir or a .fuse")->required();
  c->add_option("A", explain.a, "A domain, %tensor.domain");
  c->add_option("B", explain.b, "Another domain");
  c->add_option("--steps", explain.steps, "A list of steps instead of the program's own schedule");
  CLI::Option* const explain_plan = c->add_flag("--plan", explain.plan, "The automatic plan of the program");
  c->add_option("--format", explain.format, "With --plan: text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->needs(explain_plan);
  c->add_option("--where", explain.where, "With --plan: the default inputs that it is for, host or gpu")
      ->check(CLI::IsMember({"host", "gpu"}))
      ->needs(explain_plan)
      ->capture_default_str();
  add_device(*c, explain.device);
  c->get_option("--device")->needs(explain_plan);
  c->callback([&] { chosen = [&] { return explain_command(explain, common); }; });

  std::vector<std::string> verified;
  c = add_subcommand(app, "verify", "Checks that files hold valid programs.",
                     R"(Reads, decodes and verifies each file. Says which is wrong, where, and why.

  fusebox verify corpus/programs/*.fir
  fusebox verify finding.fuse --json)");
  c->add_option("FILE", verified, ".fir or .fuse files")->required();
  c->callback([&] { chosen = [&] { return verify_command(verified, common); }; });

  std::string first, second;
  c = add_subcommand(app, "fmt", "Prints a program in its one form.",
                     R"(Prints to standard output. Keeps the comment at the head of a text, and no other.

  fusebox fmt mine.fir > formatted.fir)");
  c->add_option("FILE", first, "A .fir or a .fuse")->required();
  c->callback([&] { chosen = [&] { return fmt_command(first, common); }; });

  c = add_subcommand(
      app, "diff", "Compares two programs, or two bundles.",
      R"(Exits 0 if they are the same, 1 if they differ. Programs that differ only in their names, the order of creation and dead ops are the same;
a name that a step gives is a difference. The stages of two bundles are compared in order, then the digests, the recorded inputs, steps,
options, layouts and code. The first difference is shown. The recorded environments and compiled fusions are not compared.

  fusebox diff before.fir after.fir
  fusebox diff yesterday.fuse today.fuse)");
  c->add_option("A", first, "A .fir or a .fuse")->required();
  c->add_option("B", second, "A .fir or a .fuse")->required();
  c->callback([&] { chosen = [&] { return diff_command(first, second, common); }; });

  c = add_subcommand(
      app, "convert", "Turns text into a bundle, or a bundle into text.",
      R"(The suffix of OUT, .fir or .fuse, says which. A bundle made from text holds the program without a run. A text made from a bundle holds
the program with its steps, and those inputs of the run that a generator made.

  fusebox convert softmax.fir softmax.fuse
  fusebox convert finding.fuse finding.fir)");
  c->add_option("IN", first, "A .fir or a .fuse")->required();
  c->add_option("OUT", second, "A .fuse or a .fir")->required();
  c->callback([&] { chosen = [&] { return convert_command(first, second, common); }; });

  add_cache(app, common, chosen);
  for (const AddCommand add : extra) add(app, common, chosen);

  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      // The help or the version. CLI11 itself would not notice that standard output is full.
      std::ostringstream text;
      const int code = app.exit(e, text, text);
      print_text(text.str());
      return code;
    }
    std::string message = e.what();
    for (char& letter : message)
      if (letter == '\n') letter = ' ';
    throw Error(ErrorCode::kUsage, message + "; `fusebox --help` and `fusebox COMMAND --help` say more");
  }
  refuse_empty_values(app);
  return chosen();
}

}  // namespace

int run_command_line(int argc, char** argv, std::span<const AddCommand> extra) {
  // A file that is opened later must not get the number of a closed standard stream. Writing to these still fails.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
  // A write beyond the limit of a file's size (`ulimit -f`) then fails like one on a full disk, and does not end the
  // process before it has removed the unfinished file.
  ::signal(SIGXFSZ, SIG_IGN);
  Common common;
  Error error(ErrorCode::kInternal, "");
  try {
    return command_line(argc, argv, extra, common);
  } catch (const Error& e) {
    error = e;
  } catch (const std::bad_alloc&) {
    error = Error(ErrorCode::kOutOfMemory, "memory ran out; make the inputs smaller");
  } catch (const std::length_error&) {
    error = Error(ErrorCode::kOutOfMemory, "more elements than memory can hold; make the inputs smaller");
  } catch (const std::exception& e) {
    error = Error(ErrorCode::kInternal, e.what());
  }
  try {
    report_error(error, common);
    if (common.subject && exit_code(error.code) == 3) write_reproducer(*common.subject, common);
  } catch (const std::exception&) {
    // Standard output is closed, or the disk is full. The exit code reports the error.
  }
  return exit_code(error.code);
}

}  // namespace fusebox::cli
