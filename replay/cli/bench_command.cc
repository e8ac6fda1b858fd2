#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "ir/infer/bind.h"
#include "ir/text/print.h"
#include "replay/cli/bench_against.h"
#include "replay/cli/choose.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"
#include "replay/cli/timing_report.h"
#include "replay/data/file.h"
#include "replay/picture/roofline.h"
#include "replay/record/record.h"
#include "replay/run/aten_segment.h"

namespace fusebox::cli {
namespace {

constexpr size_t kBarCells = 24;

struct Row {
  std::string file, program;
  std::optional<Timing> timing;  // or
  std::optional<Error> error;
};

// The device and the settings by which all programs are timed.
struct Bench {
  explicit Bench(const BenchArguments& a) : runs(a.runs), plan(a.plan) {
    head.executor = choose_executor(a.on);
    if (head.executor == Executor::kCuda) {
      device = make_cuda_device();
      clock = std::make_unique<GpuClock>(device);
      head.gpu = clock->gpu();
    } else {
      device = make_host_device({.threads = a.threads});
      head.threads = a.threads;
    }
    head.where = !a.where.empty() ? a.where : head.executor == Executor::kCuda ? "gpu" : "host";
    head.unfused = a.plan.plan == "unfused";
    is_where_given = !a.where.empty();
  }

  std::vector<Argument> arguments_of(const LoadedFile& file, const Graph& fusion) const {
    if (file.bundle && !file.bundle->ranks.empty() && !is_where_given) return bundle_arguments(*file.bundle);
    const InputSpecs* specs = find_input_specs(file.module, fusion.name, head.where);
    if (!specs && !inputs(fusion).empty())
      throw Error(ErrorCode::kMissingInput,
                  "the program has no default inputs for `" + head.where + "`; add `inputs @" + fusion.name + " " +
                      head.where + "`, or choose others with --where",
                  "@" + fusion.name);
    return make_arguments(fusion, specs, {});
  }

  CompileOptions compile_options(const LoadedFile& file, const Graph& fusion,
                                 std::span<const Argument> arguments) const {
    RunOptions run{.executor = head.executor, .device = planned_device(plan, head.executor)};
    run.infer_contiguity = plan.infer_contiguity;
    run.unfused = head.unfused;
    take_recorded_plan(file, plan, run);
    CompileOptions options;
    options.inputs = bound_inputs(arguments);
    if (run.infer_contiguity) options.infer = infer_by_aten();
    if (run.unfused) return options;
    options.device = run.device;
    options.steps = run.steps;
    if (const StepList* list = find_steps(file.module, fusion.name); list && !options.steps)
      options.steps = list->steps;
    return options;
  }

  Row measure(const std::string& path, Common& common) {
    Row row{path, {}, {}, {}};
    try {
      LoadedFile file = load_file(path);
      choose_plan(file.module, plan);
      common.subject = subject_of(file);
      const Graph& fusion = main_graph(file.module);
      row.program = fusion.name;
      const std::vector<Argument> arguments = arguments_of(file, fusion);
      const CompileOptions options = compile_options(file, fusion, arguments);
      const Compiled compiled = compile(fusion, bind_sizes(fusion, options.inputs), options);
      std::vector<RunTensor> inputs;
      for (const Argument& a : arguments)
        if (!a.is_scalar) inputs.push_back(device->upload(a.tensor));
      row.timing =
          time_program({fusion, compiled, arguments, std::move(inputs)}, device, {.runs = runs, .clock = clock.get()});
    } catch (const Error& e) {
      if (row_of(e.code).outcome == Outcome::kInternal) throw;
      row.error = e;
    }
    return row;
  }

  BenchHead head;
  int runs;
  PlanArguments plan;
  bool is_where_given = false;
  std::shared_ptr<Device> device;
  std::unique_ptr<GpuClock> clock;
};

std::string head_json(const Bench& b) {
  JsonObject o;
  o.raw("bench", b.head.json()).add("runs", int64_t{b.runs});
  o.raw("copy_gb_s", b.clock ? fmt::format("{}", b.clock->copy_rate() / 1000) : "null");
  o.raw("empty_us", b.clock ? fmt::format("{}", b.clock->empty_us()) : "null");
  return o.text();
}

std::string head_text(const Bench& b) {
  if (b.clock)
    return fmt::format(
        "{}: a copy moves {:.0f} GB/s, two events alone measure {}; {} runs of each program, by events\n",
        b.clock->gpu(), b.clock->copy_rate() / 1000, time_text(b.clock->empty_us()), b.runs);
  return fmt::format(
      "the host executor, {} thread{}: {} runs of each program, by the wall clock; no GPU was measured, no floor is "
      "known\n",
      b.head.threads, b.head.threads == 1 ? "" : "s", b.runs);
}

// The names of files in the table: without folder and suffix where that leaves them apart.
std::vector<std::string> short_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(std::filesystem::path(file).stem());
  return std::set<std::string>(names.begin(), names.end()).size() == names.size() ? names : files;
}

// Letters, of which UTF-8 may need several bytes.
size_t letters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool to_right) {
  const std::string space(width - std::min(width, letters(text)), ' ');
  return to_right ? space + text : text + space;
}

std::string table(const Bench& b, const std::vector<Row>& rows, const std::vector<std::string>& names) {
  const bool on_gpu = b.clock != nullptr;
  double slowest = 0;
  for (const Row& row : rows)
    if (row.timing) slowest = std::max(slowest, row.timing->whole_us.median);
  std::vector<std::vector<std::string>> lines;
  lines.push_back({"program", "must move", "time", "(p10 – p90)", "kernels", "host"});
  lines[0].push_back(on_gpu ? "of the floor" : "of the slowest");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].timing) {
      lines.push_back({names[i]});
      continue;
    }
    const Timing& t = *rows[i].timing;
    const double part = on_gpu ? t.fraction().value_or(0) : slowest > 0 ? t.whole_us.median / slowest : 0;
    // Cut, not rounded: a goal is reached or it is not.
    const std::string end = fmt::format("{} {:.2f}", bar(part, kBarCells), std::floor(100 * part + 1e-6) / 100);
    lines.push_back({names[i], bytes_text(static_cast<double>(t.bytes.total())), time_text(t.whole_us.median),
                     fmt::format("({} – {})", time_text(t.whole_us.p10), time_text(t.whole_us.p90)),
                     fmt::format("{} in {}", t.launches, time_text(t.kernels_us.median)), time_text(t.host_us.median),
                     end});
  }
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], letters(line[i]));
  std::string out;
  for (size_t k = 0; k < lines.size(); ++k) {
    for (size_t i = 0; i < lines[k].size(); ++i)
      out += (i == 0 ? "" : "  ") + (i + 1 == lines[0].size() ? lines[k][i] : padded(lines[k][i], widths[i], i > 0));
    if (k > 0 && rows[k - 1].error) {
      const Error& e = *rows[k - 1].error;
      out += fmt::format("  {}{}{}: {}", code_text(e.code), e.place.empty() ? "" : " ", e.place, e.what());
    }
    while (out.ends_with(' ')) out.pop_back();
    out += "\n";
  }
  return out;
}

std::string row_json(const Row& row, const BenchChange* change) {
  JsonObject o;
  o.add("file", row.file).add("program", row.program);
  if (row.timing) o.raw("timing", timing_json(*row.timing));
  if (row.error) o.raw("error", error_object(row.error->code, row.error->what(), row.error->place));
  if (change) o.add("before_us", change->before_us).add("ratio", change->ratio()).add("slower", change->is_slower);
  return o.text();
}

std::string against_text(const std::vector<BenchChange>& changes, const BenchArguments& a,
                         const std::map<std::string, std::string>& names, size_t timed) {
  std::string out;
  size_t slower = 0, faster = 0;
  for (const BenchChange& c : changes) {
    slower += c.is_slower ? 1 : 0;
    faster += c.is_faster ? 1 : 0;
    if (c.is_slower || c.is_faster)
      out += fmt::format("{} {}: {} before, {} now, {:.2f} times as long\n", c.is_slower ? "SLOWER" : "faster",
                         names.at(c.file), time_text(c.before_us), time_text(c.now_us), c.ratio());
  }
  return out + fmt::format("against {}: {} compared, {} slower and {} faster by more than {:g} %, {} not there\n",
                           a.against, changes.size(), slower, faster, 100 * a.tolerance, timed - changes.size());
}

}  // namespace

int bench_command(const BenchArguments& a, Common& common) {
  Bench bench(a);
  std::optional<EarlierBench> earlier;
  if (!a.against.empty()) {
    earlier = parse_bench(read_text_file(a.against), a.against);
    require_comparable(*earlier, bench.head, a.against);
  }
  const std::vector<std::string> names = short_names(a.files);
  std::vector<Row> rows;
  std::map<std::string, std::string> name_of;
  for (size_t i = 0; i < a.files.size(); ++i) {
    name_of[a.files[i]] = names[i];
    rows.push_back(bench.measure(a.files[i], common));
    common.subject.reset();
  }
  std::vector<BenchChange> changes;
  picture::Roofline plot{head_text(bench).substr(0, head_text(bench).find(':')), {}, 0, 0};
  if (bench.clock) plot.copy_rate = bench.clock->copy_rate(), plot.empty_us = bench.clock->empty_us();
  if (!bench.clock) plot.title += ", no GPU was measured: no roof";
  int code = 0;
  size_t timed = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].error) code = 2;
    if (!rows[i].timing) continue;
    ++timed;
    const Timing& t = *rows[i].timing;
    plot.points.push_back({names[i], static_cast<double>(t.bytes.total()), t.whole_us.median});
    if (earlier)
      if (const auto it = earlier->median_us.find(rows[i].file); it != earlier->median_us.end())
        changes.push_back(change_of(rows[i].file, it->second, t.whole_us.median, a.tolerance));
  }
  if (!a.plot.empty()) write_file(a.plot, to_svg(plot));
  if (common.json) {
    print_line(head_json(bench));
    for (const Row& row : rows) {
      const auto it = std::ranges::find(changes, row.file, &BenchChange::file);
      print_line(row_json(row, row.timing && it != changes.end() ? &*it : nullptr));
    }
  } else {
    print_text(head_text(bench) + table(bench, rows, names));
    if (earlier) print_text(against_text(changes, a, name_of, timed));
  }
  const bool is_slower = std::ranges::any_of(changes, &BenchChange::is_slower);
  return code != 0 ? code : is_slower ? 1 : 0;
}

}  // namespace fusebox::cli
