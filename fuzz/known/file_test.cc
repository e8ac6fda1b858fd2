#include "fuzz/known/file_test.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <sstream>

#include "codegen/bytecode.h"
#include "codegen/cuda.h"
#include "fuzz/generate/generate_inputs.h"
#include "fuzz/known/file_digests.h"
#include "fuzz/known/file_kinds.h"
#include "fuzz/known/recorded.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/dot.h"
#include "ir/text/json.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/automatic/plan_report.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/tune.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/neighbours.h"
#include "passes/segment/segment.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/host/bank_conflicts.h"
#include "replay/host/host_executor.h"
#include "replay/picture/render.h"
#include "replay/run/aten_segment.h"
#include "replay/run/host_program.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirst = "// test: ";

// The main graph with the steps that the module has for it.
Graph scheduled(const Module& m) {
  Graph g = main_graph(m);
  if (const StepList* list = find_steps(m, g.name)) apply_steps(g, list->steps);
  return g;
}

LowerOptions lower_options(const FileRequest& r) {
  LowerOptions options;
  if (r.has("32")) options.index_bits = 32;
  return options;
}

// parse: the text in its standard form.
std::string run_parse(const Module& m, const FileRequest&) { return print(m); }

// verify: `ok`, or the first error.
std::string run_verify(const Module& m, const FileRequest&) {
  verify(m);
  return "ok\n";
}

// What a scheduler decided, and why others declined.
std::string decision_text(const Decision& d) {
  std::string out = "// @" + d.segment + ": " + text(d.heuristics) + "\n";
  for (const Declined& other : d.declined) out += "//   not " + other.scheduler + ": " + other.why + "\n";
  return out;
}

// The automatic plan for the module's inputs `host`: what each segment's scheduler chose, and the segmentation without the
// steps of its kernels.
std::string automatic_plan(const Module& m) {
  const Graph& g = main_graph(m);
  const std::vector<Argument> arguments = host_arguments(m, g);
  CompileOptions options;
  options.inputs = bound_inputs(arguments);
  options.device = default_device();
  if (const StepList* list = find_steps(m, g.name)) options.steps = list->steps;
  Compiled c = compile(g, bind_sizes(g, options.inputs), options);
  std::string out;
  for (const Decision& d : c.automatic->decisions) out += decision_text(d);
  for (Segment& s : c.segmentation.segments) s.steps.clear();
  return out + print(c.segmentation);
}

// Why segments that hand a tensor to one another are apart.
std::string merges_text(const Graph& fusion, const Bindings& bindings, const Compiled& c,
                        const DeviceProperties& device) {
  const PlanReport report =
      report_plan(c.concretized, c.segmentation, c.automatic->decisions,
                  {.sizes = rebind(fusion, bindings, c.concretized), .memory = c.automatic->memory, .device = device});
  std::string out;
  for (const PlanMerge& m : report.merges) {
    out += fmt::format("// @{} and @{} are apart\n", report.parts[m.from].segment, report.parts[m.to].segment);
    if (!m.heuristics.empty()) out += "//   or " + m.heuristics + "\n";
    for (const Declined& other : m.declined) out += "//   not " + other.scheduler + ": " + other.why + "\n";
  }
  return out;
}

// schedule [DEVICE] [neighbours] [merges]: what schedulers decide on this GPU for the module's inputs `host`, of which only
// shapes and strides count, so they may be large; and the steps that this gives. neighbours: the choices that a search would
// try. merges: why segments are apart, in place of the steps.
std::string run_schedule(const Module& m, const FileRequest& r) {
  verify(m);
  const Graph& g = main_graph(m);
  const CompileOptions options{
      .device = device_of(r), .inputs = bound_inputs(host_specs(m, g)), .others = r.has("neighbours")};
  const Bindings bindings = bind_sizes(g, options.inputs);
  const Compiled c = compile(g, bindings, options);
  if (r.has("merges")) return merges_text(g, bindings, c, device_of(r));
  std::string out;
  for (const Decision& d : c.automatic->decisions) {
    out += decision_text(d);
    if (!r.has("neighbours")) continue;
    for (const Heuristics& h : d.others) out += "//   or " + text(h) + "\n";
    for (const Heuristics& h : neighbours(d.heuristics)) out += "//   near " + text(h) + "\n";
    if (const auto narrower = with_narrower_vectors(d.heuristics)) out += "//   narrower " + text(*narrower) + "\n";
  }
  return out + print(StepList{"", g.name, c.automatic->steps});
}

// pass: the graph after the file's steps. pass segment: the segmentation that the steps give, or one kernel for each
// op. pass automatic: the automatic plan.
std::string run_pass(const Module& m, const FileRequest& r) {
  verify(m);
  if (r.has("automatic")) return automatic_plan(m);
  if (r.has("segment")) {
    const Graph& fusion = main_graph(m);
    const StepList* list = find_steps(m, fusion.name);
    return print(list ? plan_steps(fusion, list->steps) : plan_unfused(fusion));
  }
  const Graph g = scheduled(m);
  verify(g);
  return print(g);
}

// The texts of all kernels of the program as it is compiled, one after another.
template <class Text>
std::string of_kernels(const Module& m, const FileRequest& r, Text text) {
  verify(m);
  const Compiled c = compiled_for_host(m, r);
  std::string out;
  for (size_t i = 0; i < c.kernels.size(); ++i)
    if (c.segmentation.segments[i].executor == SegmentExecutor::kKernel) out += (out.empty() ? "" : "\n") + text(c, i);
  return out;
}

// lower [32]: kernel and launch program. lower legal: whether lowering accepts it. lower compiled: of all kernels.
std::string run_lower(const Module& m, const FileRequest& r) {
  if (r.has("compiled"))
    return of_kernels(m, r,
                      [](const Compiled& c, size_t i) { return print(c.kernels[i]) + "\n" + print(c.launches[i]); });
  verify(m);
  const Graph g = scheduled(m);
  const std::optional<Error> refused = legal(g);
  if (r.has("legal")) {
    if (refused) throw *refused;
    return "legal\n";
  }
  const Lowered lowered = lower(g, lower_options(r));
  verify(lowered.kernel);
  verify(lowered.launch);
  return print(lowered.kernel) + "\n" + print(lowered.launch);
}

// The plan of a scheduled graph. Its text reads back as a plan of the same text and of the same kernel.
std::string plan_text(const Graph& scheduled) {
  const KernelPlan plan = plan_kernel(scheduled);
  const std::string text = print_plan(plan);
  const KernelPlan read = parse_plan(scheduled, text);
  check_internal(print_plan(read) == text, "a plan's text reads back as another plan");
  check_internal(print(emit_kernel(read).kernel) == print(emit_kernel(plan).kernel),
                 "a plan that was read gives another kernel");
  return text;
}

// plan: the kernel plan. plan compiled: of all kernels.
std::string run_plan(const Module& m, const FileRequest& r) {
  if (r.has("compiled"))
    return of_kernels(m, r, [](const Compiled& c, size_t i) { return plan_text(canonical_order(c.scheduled[i])); });
  verify(m);
  return plan_text(scheduled(m));
}

// emit [32] [plain]: CUDA C++ of the main graph; lowers it first if it is no kernel. plain: nothing is moved out of loops.
// emit compiled: of all kernels.
std::string run_emit(const Module& m, const FileRequest& r) {
  if (r.has("compiled"))
    return of_kernels(m, r, [](const Compiled& c, size_t i) { return emit_cuda(c.kernels[i]).text; });
  verify(m);
  const Graph& g = main_graph(m);
  CudaOptions options;
  options.hoist = !r.has("plain");
  return emit_cuda(g.level == Level::kKernel ? g : lower(scheduled(m), lower_options(r)).kernel, options).text;
}

// checks FOLDER: for each program in the folder, scheduled and unfused, the number of predicates in its kernels: of
// domains, of loop extents that the launch may exceed, of threads that alone store; and the comparisons to which these
// fold.
std::string run_checks(const Module&, const FileRequest& r) {
  std::vector<fs::path> programs;
  for (const auto& entry : fs::directory_iterator(r.options.at(0))) programs.push_back(entry.path());
  std::sort(programs.begin(), programs.end());
  std::string out;
  for (const fs::path& path : programs) {
    const Module m = parse_module(read_text_file(path.string()));
    const Graph& g = main_graph(m);
    const std::vector<Argument> arguments = host_arguments(m, g);
    const StepList* list = find_steps(m, g.name);
    for (const bool unfused : {false, true}) {
      if (!unfused && list == nullptr) continue;
      CompileOptions options;
      if (!unfused) options.steps = list->steps;
      const Compiled c = compile(g, bind_sizes(g, bound_inputs(arguments)), options);
      std::array<int, 3> counts = {};
      size_t kernels = 0, comparisons = 0;
      for (size_t i = 0; i < c.scheduled.size(); ++i) {
        if (c.segmentation.segments[i].executor != SegmentExecutor::kKernel) continue;
        ++kernels;
        std::set<std::string> predicates;
        for (const CheckNote& n : lower(canonical_order(c.scheduled[i]), {.explain = true}).notes) {
          counts[static_cast<size_t>(n.kind)] += n.checked;
          if (!n.predicate.empty()) predicates.insert(n.predicate);
        }
        comparisons += predicates.size();
      }
      out += fmt::format("{}{}: {} domains, {} loop extents, {} threads; {} comparisons in {} kernels\n", g.name,
                         unfused ? " unfused" : "", counts[0], counts[1], counts[2], comparisons, kernels);
    }
  }
  return out;
}

// The elements in row-major order, one line for each run along the last axis.
std::string elements_text(const ProgramOutput& output) {
  const TensorData& t = output.value.tensor;
  std::string out = "%" + output.name + " = " + describe(t) + "\n";
  for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
    out += " ";
    for (int64_t i = 0; i < count; ++i) {
      const std::string literal = print_literal(t.dtype, load_element(t, position + i * stride));
      out += " " + literal.substr(0, literal.rfind('_'));
    }
    out += "\n";
  });
  return out;
}

// run: the outputs of the host executor for the module's inputs `host`, with the module's steps. run unfused: without
// them. run layouts: tensors of ATen's have the layouts that ATen gives them.
std::string run_run(const Module& m, const FileRequest& r) {
  verify(m);
  const Graph& g = main_graph(m);
  const std::vector<Argument> arguments = host_arguments(m, g);
  CompileOptions options;
  const StepList* list = find_steps(m, g.name);
  if (list != nullptr && !r.has("unfused")) options.steps = list->steps;
  if (r.has("layouts")) options.inputs = bound_inputs(arguments), options.infer = infer_by_aten();
  const Compiled compiled = compile(g, bind_sizes(g, bound_inputs(arguments)), options);
  const std::vector<NamedKernel> kernels = named_kernels(compiled);
  const auto device = make_host_device();
  std::string out;
  HostProgramOptions host;
  host.run_aten = run_aten_segments(compiled);
  for (const ProgramOutput& output : run_host_program(compiled.host, kernels, *device, arguments, host).outputs)
    out += elements_text(output);
  return out;
}

// picture GRAPH…: the picture of each named id graph, as text, after the file's steps.
std::string run_picture(const Module& m, const FileRequest& r) {
  verify(m);
  const picture::Picture p = picture::describe(scheduled(m));
  std::string out;
  for (const std::string& word : r.options)
    out += (out.empty() ? "" : "\n") + picture::to_text(p, parse_id_graph_kind(word).value());
  return out;
}

// The program of a file that others begin with: the graph after the steps of the file, or what it is lowered or compiled to.
Graph requested_graph(const Module& m, const FileRequest& r) {
  verify(m);
  if (r.has("kernel")) return lower(scheduled(m), lower_options(r)).kernel;
  if (r.has("launch")) return lower(scheduled(m), lower_options(r)).launch;
  return r.has("host") ? compiled_for_host(m, {}).host : scheduled(m);
}

// changes: every change of one member of the graph, and what the verifier says of it. changes module: those of step lists,
// segments, inputs and host programs. changes steps: the steps, applied. changes record: the host program's launch record.
std::string run_changes(const Module& m, const FileRequest& r) {
  if (r.has("steps")) return recorded_step_changes(m);
  if (r.has("record")) return recorded_launch_changes(compiled_for_host(m, {}).host);
  if (!r.has("module")) return recorded_changes(requested_graph(m, r));
  const Compiled c = compiled_for_host(m, {});
  Module whole = m;
  whole.graphs.push_back(c.host);
  for (const Graph& g : c.kernels)
    if (!g.regions[0].ops.empty()) whole.graphs.push_back(g);
  whole.segmentations.push_back(c.segmentation);
  return recorded_module_changes(whole);
}

// members: every change of one byte of the module, and what reading it says. members bundle: changes of one member of a bundle of
// the program as compiled.
std::string run_members(const Module& m, const FileRequest& r) {
  return r.has("bundle") ? recorded_bundle_changes(m) : recorded_byte_changes(m);
}

// ops: each op with drawn operands. sweep: each kind of step.
std::string run_ops(const Module& m, const FileRequest& r) { return recorded_ops(requested_graph(m, r)); }
std::string run_sweep(const Module& m, const FileRequest& r) { return recorded_steps(requested_graph(m, r)); }

// calls TABLE: calls with known results.
std::string run_calls(const Module&, const FileRequest& r) { return recorded_calls(r.options.at(0)); }

// json; dot: the module as JSON, the graph after its steps for Graphviz.
std::string run_json(const Module& m, const FileRequest&) { return to_json(m) + "\n"; }
std::string run_dot(const Module& m, const FileRequest& r) {
  const Graph g = requested_graph(m, r);
  return ops_to_dot(g) + "\n" + domains_to_dot(g);
}

// digests: a line for each program of the file (file_digests.h).
std::string run_digests(const Module& m, const FileRequest&) {
  verify(m);
  return digests_of(m);
}

std::string run_explain(const Module& m, const FileRequest& r) {
  verify(m);
  return explain_text(r.has("compiled") ? compiled_for_host(m, r).scheduled.at(0) : scheduled(m), r);
}

// Kinds whose input is more than a module, or none.
std::string run_algebra(const std::string& input, const FileRequest&) { return algebra_text(input); }
std::string run_plan_slips(const std::string& input, const FileRequest&) {
  return slips_text(scheduled(parse_module(input)), input);
}

// The same of texts below the line of the request.
std::string below_request(const std::string& input) {
  return input.substr(std::min(input.find('\n'), input.size() - 1) + 1);
}
std::string run_slips(const std::string& input, const FileRequest&) { return recorded_slips(below_request(input)); }
std::string run_texts(const std::string& input, const FileRequest&) { return recorded_texts(below_request(input)); }
std::string run_lines(const std::string& input, const FileRequest& r) {
  return recorded_lines(below_request(input), r.options.empty() ? "" : r.options[0]);
}

// The number behind `NAME=` among the options, and those behind commas.
std::vector<int64_t> numbers_of(const FileRequest& r, std::string_view name) {
  std::vector<int64_t> result;
  for (const std::string& word : r.options) {
    if (!word.starts_with(std::string(name) + "=")) continue;
    std::istringstream rest(word.substr(name.size() + 1));
    for (std::string number; std::getline(rest, number, ',');) result.push_back(std::stoll(number));
  }
  return result;
}

std::string banks_text(const BankCounter& banks) {
  std::string out;
  for (const BankAccess& a : banks.accesses())
    out += fmt::format("line {} {} {}: {} accesses, {} wavefronts, {} ideal, {} ways\n", a.line,
                       a.is_store ? "stores" : "loads", a.buffer, a.totals.accesses, a.totals.wavefronts,
                       a.totals.ideal, a.totals.ways);
  return out;
}

// launch grid=… block=… [shared=BYTES] [workers=N] [limit=STEPS] [unwritten=K,…] [over=K,J,BYTE] [banks]: a kernel on the
// host executor: the size of its bytecode, and its tensors after the launch, or what the launch broke, as a whole sentence.
// unwritten: the numbers of inputs that hold no values. over: input K begins at this byte of input J.
std::string run_launch(const Module& m, const FileRequest& r) {
  verify(m);
  const Graph& k = main_graph(m);
  LaunchDims dims;
  for (auto [name, list] : {std::pair("grid", &dims.grid), std::pair("block", &dims.block)}) {
    const auto given = numbers_of(r, name);
    std::copy_n(given.begin(), std::min(given.size(), list->size()), list->begin());
  }
  for (int64_t bytes : numbers_of(r, "shared")) dims.shared_bytes = bytes;
  HostOptions options;
  for (int64_t n : numbers_of(r, "workers")) options.threads = static_cast<int>(n);
  for (int64_t n : numbers_of(r, "limit")) options.step_limit = n;
  const auto unwritten = numbers_of(r, "unwritten");
  std::vector<Argument> given = host_arguments(m, k);
  if (const auto over = numbers_of(r, "over"); over.size() == 3) {
    TensorData& t = given.at(static_cast<size_t>(over[0])).tensor;
    const TensorData& of = given.at(static_cast<size_t>(over[1])).tensor;
    t = external_tensor(t.dtype, of.storage.get() + over[2], t.shape, t.strides, of.storage);
  }
  std::vector<std::vector<uint8_t>> written(given.size());
  std::vector<HostArgument> args;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].is_scalar) {
      args.push_back(HostArgument::scalar(given[i].dtype, given[i].bits));
      continue;
    }
    const TensorData& t = given[i].tensor;
    written[i].assign(static_cast<size_t>(t.storage_elems), std::ranges::count(unwritten, int64_t(i)) == 0);
    args.push_back(HostArgument::memory(t.dtype, t.storage.get(), t.storage_elems, written[i]));
    args.back().extents = t.shape;
  }
  try {
    const Bytecode code = compile_bytecode(k);
    std::string out = fmt::format("{} instructions, {} constants\n", code.code.size(), code.constants.size());
    BankCounter banks(code);
    if (r.has("banks")) options.banks = &banks;
    const HostResult result = run_kernel(code, dims, args, options);
    if (result.finding) throw result.finding->error();
    out += fmt::format("{} thread-instructions\n", result.thread_instructions);
    const auto names = inputs(k);
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i].is_scalar) continue;
      out += "%" + k[names[i]].name + " =";
      for (int64_t e = 0; e < given[i].tensor.storage_elems; ++e) {
        const std::string text = print_literal(given[i].dtype, load_element(given[i].tensor, e));
        out += written[i][static_cast<size_t>(e)] ? " " + text.substr(0, text.rfind('_')) : " -";
      }
      out += "\n";
    }
    return r.has("banks") ? out + banks_text(banks) : out;
  } catch (const Error& e) {  // also kInternal: a launch that no schedule makes
    return "error " + code_text(e.code) + " at " + e.place + ": " + e.what() + "\n";
  }
}

// tune [DEVICE]: the search for better choices, where a program's time is a number that its digest gives.
std::string run_tune(const Module& m, const FileRequest& r) {
  verify(m);
  const Graph& g = main_graph(m);
  const CompileOptions options{.device = device_of(r), .inputs = bound_inputs(host_specs(m, g))};
  const auto measure = [](const Compiled& c) -> std::optional<double> {
    uint64_t sum = 0;
    for (const Decision& d : c.automatic->decisions)
      for (const char letter : text(d.heuristics)) sum = sum * 237 + static_cast<unsigned char>(letter);
    if (sum % 7 == 3) return std::nullopt;
    return static_cast<double>(100 + sum % 100);
  };
  const Tuned tuned = tune(g, bind_sizes(g, options.inputs), options, measure, {.most_tries = 40});
  std::string out;
  for (const TunedSegment& s : tuned.segments)
    out += fmt::format("// @{}: {} tries, {} to {}\n//   {}\n//   {}\n", s.segment, s.tries, s.before, s.after,
                       text(s.chosen), text(s.best));
  return out + print(StepList{"", g.name, tuned.best.automatic->steps});
}

using Kind = std::string (*)(const Module&, const FileRequest&);
const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> list = {
      {"parse", run_parse},     {"verify", run_verify},   {"pass", run_pass},         {"lower", run_lower},
      {"plan", run_plan},       {"emit", run_emit},       {"run", run_run},           {"checks", run_checks},
      {"picture", run_picture}, {"changes", run_changes}, {"ops", run_ops},           {"sweep", run_sweep},
      {"calls", run_calls},     {"json", run_json},       {"dot", run_dot},           {"digests", run_digests},
      {"explain", run_explain}, {"host", host_text},      {"schedule", run_schedule}, {"launch", run_launch},
      {"tune", run_tune},       {"bytes", bytes_text},    {"report", report_text},    {"products", products_text},
      {"members", run_members}};
  return list;
}

// Kinds whose input need not be a module.
using TextKind = std::string (*)(const std::string&, const FileRequest&);
const std::map<std::string, TextKind>& text_kinds() {
  static const std::map<std::string, TextKind> list = {{"slips", run_slips},  {"texts", run_texts},
                                                       {"lines", run_lines},  {"algebra", run_algebra},
                                                       {"range", range_text}, {"plan_slips", run_plan_slips}};
  return list;
}

void check_round_trips(const Module& m) {
  check_internal(parse_module(print(m)) == m, "the text of a module reads back as another module");
  check_internal(decode_module_structure(bytes_of(encode(m))) == m,
                 "the bytes of a module are those of another module");
}

}  // namespace

bool FileRequest::has(std::string_view word) const { return std::ranges::find(options, word) != options.end(); }

FileTest parse_file_test(const std::string& text) {
  FileTest test;
  if (text.starts_with(kFirst)) {
    std::istringstream line(text.substr(kFirst.size(), text.find('\n') - kFirst.size()));
    line >> test.request.kind;
    for (std::string word; line >> word;) test.request.options.push_back(word);
  }
  const size_t split = text.find(kExpectLine);
  test.input = text.substr(0, split);
  if (split != std::string::npos) test.expected = text.substr(split + kExpectLine.size());
  return test;
}

bool is_file_test_kind(std::string_view kind) {
  return kinds().contains(std::string(kind)) || text_kinds().contains(std::string(kind));
}

std::string outcome_of(const FileRequest& r, const std::string& input) {
  try {
    if (const auto it = text_kinds().find(r.kind); it != text_kinds().end()) return it->second(input, r);
    const Module m = parse_module(input);
    check_round_trips(m);
    return kinds().at(r.kind)(m, r);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    const std::string sentence = r.has("sentence") ? std::string(": ") + e.what() : "";
    return "error " + code_text(e.code) + (e.place.empty() ? "" : " at " + e.place) + sentence + "\n";
  }
}

}  // namespace fusebox::fuzz
