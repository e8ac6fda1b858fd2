// Steps of a PythonProgram. Each is applied to the scheduled copy at once, so that a mistake is reported where it is
// made. A list that is loaded with a fusion waits for symbolic axes to be decided, if it needs them.
#include <algorithm>
#include <set>

#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "replay/data/file.h"
#include "replay/python/program.h"
#include "replay/record/record.h"
#include "serde/decode.h"
#include "serde/limits.h"

namespace fusebox::python {
namespace {

AttrValue attr_value(AttrKey key, const py::handle& given) {
  const AttrKind kind = row_of(key).kind;
  if (key == AttrKey::kThreads) {
    std::vector<int64_t> ids;
    for (const std::string& word : given.cast<std::vector<std::string>>()) {
      const auto p = parse_enum<ParallelType>(word);
      if (!p) throw Error(ErrorCode::kBadAttribute, "no parallel type has this name; use one of ParallelType", word);
      ids.push_back(static_cast<int64_t>(*p));
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  if (kind == AttrKind::kInts) return given.cast<std::vector<int64_t>>();
  if (kind == AttrKind::kInt || kind == AttrKind::kBool) return given.cast<int64_t>();
  const auto word = given.cast<std::string>();
  if (kind == AttrKind::kString) return word;
  if (kind == AttrKind::kDtype) return dtype_named(word);
  const auto texts = enum_texts_of(kind);
  const auto it = std::find(texts.begin(), texts.end(), word);
  if (it == texts.end())
    throw Error(ErrorCode::kBadAttribute, "the attribute `" + std::string(row_of(key).text) + "` has no such value",
                word);
  return static_cast<int64_t>(it - texts.begin());
}

Attrs attrs_of(const py::dict& given) {
  Attrs attrs;
  for (const auto& [name, value] : given) {
    const auto word = name.cast<std::string>();
    const auto rows = attr_rows();
    const auto it = std::find_if(rows.begin(), rows.end(), [&](const AttrRow& r) { return r.text == word; });
    if (it == rows.end()) throw Error(ErrorCode::kBadAttribute, "no attribute has this name", word);
    attrs.set(it->key, attr_value(it->key, value));
  }
  return attrs;
}

const Tensor& tensor_named(const Graph& g, const std::string& name) {
  const auto v = find_value(g, name);
  if (!v || !g.is_tensor(*v))
    throw Error(ErrorCode::kStepReferent, "no tensor of the fusion has this name", "%" + name);
  return g.tensor_of(*v);
}

// The scheduled graph of each segment, for a list that assigns ops.
std::vector<Graph> scheduled_segments(const Graph& g, std::span<const Step> steps) {
  std::vector<Graph> result;
  for (const Segment& segment : plan_steps(g, steps).segments) {
    result.push_back(extract(g, segment));
    apply_steps(result.back(), segment.steps);
  }
  return result;
}

Step step_of(const std::string& kind, const std::vector<StepWord>& operands, const std::vector<std::string>& results,
             const py::dict& attrs) {
  const auto parsed = parse_step_kind(kind);
  if (!parsed) throw Error(ErrorCode::kStepNotApplicable, "no step has this name; see the step table", kind);
  Step s{*parsed, {}, results, attrs_of(attrs)};
  for (const StepWord& word : operands) {
    if (const auto* n = std::get_if<int64_t>(&word)) {
      s.operands.push_back(StepOperand::number(*n));
    } else {
      const auto& [value, domain] = std::get<1>(word);
      s.operands.push_back(StepOperand::domain_of(value, domain));
    }
  }
  return s;
}

bool is_assigned(std::span<const Step> steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.kind == StepKind::kAssign; });
}

std::unique_ptr<PythonProgram> program_of(const Module& m, const std::string& fusion, const std::string& steps) {
  if (m.graphs.empty()) throw Error(ErrorCode::kUnknownName, "the text holds no fusion; write one", fusion);
  const Graph* found = fusion.empty() ? &main_graph(m) : find_graph(m, fusion);
  if (found == nullptr || found->level != Level::kMath)
    throw Error(ErrorCode::kUnknownName, "the text holds no fusion of this name; name one of those in it", fusion);
  auto program = std::make_unique<PythonProgram>(found->name);
  program->graph = *found;
  const StepList* list = find_steps(m, found->name, steps);
  if (list == nullptr && !steps.empty())
    throw Error(ErrorCode::kUnknownName, "the fusion has no list of steps of this name; name one of those in the text",
                steps);
  verify(program->graph);
  if (list != nullptr) program->take(std::span<const Step>(list->steps));
  return program;
}

bool has_symbolic_axes(const Graph& g) {
  return std::ranges::any_of(g.domains, [](const IterDomain& d) { return d.iter_type == IterType::kSymbolic; });
}

// Whether a step makes a tensor with the name of an input that nothing reads.
bool names_unread_input(const Graph& g, std::span<const Step> steps) {
  const auto readers = uses(g);
  std::set<std::string_view> unread;
  for (ValueId v : inputs(g))
    if (readers[v.index].empty()) unread.insert(g[v].name);
  return std::ranges::any_of(steps, [&](const Step& s) {
    return std::ranges::any_of(s.results, [&](const std::string& name) { return unread.contains(name); });
  });
}

}  // namespace

std::unique_ptr<PythonProgram> PythonProgram::of_text(const std::string& text, const std::string& fusion,
                                                      const std::string& steps) {
  return program_of(parse_module(text), fusion, steps);
}

std::unique_ptr<PythonProgram> PythonProgram::of_file(const std::string& path, const std::string& fusion,
                                                      const std::string& steps) {
  const std::vector<std::byte> content = read_file(path, limits::kFileBytes);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  if (is_module(bytes)) return program_of(decode_module(bytes), fusion, steps);
  if (!is_bundle(bytes) && !path.ends_with(".fuse")) {
    const Module m = parse_module({reinterpret_cast<const char*>(content.data()), content.size()});
    verify(m);
    return program_of(m, fusion, steps);
  }
  const Bundle bundle = decode_bundle(bytes);
  const Module* const given = find_stage(bundle, Stage::kFusion);
  if (given == nullptr) throw Error(ErrorCode::kInvalidField, "the bundle holds no fusion; record it again", "stages");
  Module m = *given;
  if (steps.empty()) {
    take_recorded_schedule(bundle, m);
    assign_recorded_segments(bundle, m);
  }
  auto program = program_of(m, fusion, steps);
  if (const std::string* const defects = find_value(bundle.options, "defects"))
    program->defects = parse_defect_list(*defects);
  return program;
}

void PythonProgram::step(const std::string& kind, const std::vector<StepWord>& operands,
                         const std::vector<std::string>& results, const py::dict& attrs) {
  take(step_of(kind, operands, results, attrs));
}

void PythonProgram::take(const std::string& line) { take(parse_step(line)); }

void PythonProgram::take(std::span<const Step> list) {
  const size_t rewrites = leading_rewrites(list);
  for (const Step& s : list.first(rewrites)) take(s);
  if (rewrites < list.size()) take_schedule(list.subspan(rewrites));
}

void PythonProgram::take_schedule(std::span<const Step> list) {
  const Graph start = current();
  const std::vector<Step> before = steps;
  const bool is_symbolic = has_symbolic_axes(start);
  try {
    // Kernels have no input that nothing reads. A schedule that was made for a kernel may give its name to a tensor.
    if (!is_symbolic && !is_assigned(list) && names_unread_input(start, list)) {
      Graph kernel = extract(start, plan_single(start, {}).segments.at(0));
      kernel.name = start.name;
      scheduled = std::move(kernel);
    }
    for (const Step& s : list) take(s);
  } catch (const Error& e) {
    if (!is_symbolic || row_of(e.code).outcome == Outcome::kInternal) throw;
    // The steps were made for axes that are decided. They may name domains that only those have.
    scheduled = start;
    segments_.clear();
    steps = before;
    steps.insert(steps.end(), list.begin(), list.end());
    waiting_ = list.size();
  }
}

void PythonProgram::take(const Step& s) {
  if (waiting_ > 0)
    throw Error(ErrorCode::kStepNotApplicable,
                "the steps so far wait for symbolic axes; call fd.sched.concretize first, or execute as it is",
                "@" + graph.name);
  std::vector<Step> list = steps;
  list.push_back(s);
  const size_t rewrites = leading_rewrites(list);
  if (is_concretized_ && s.kind == StepKind::kRewrite)
    throw Error(ErrorCode::kStepNotApplicable, "symbolic axes have been decided; run rewrites before that",
                "@" + graph.name);
  Graph next = current();
  std::vector<Graph> segments;
  if (s.kind == StepKind::kAssign) {
    if (next.level != Level::kMath || !segments_.empty())
      throw Error(ErrorCode::kStepNotApplicable, "a schedule step has been taken; assign operations before it",
                  "@" + graph.name);
    for (const StepOperand& v : s.operands) tensor_named(next, v.value);
  } else if (is_assigned(list)) {
    segments = scheduled_segments(next, std::span(list).subspan(rewrites));
  } else {
    apply_step(next, s);
  }
  scheduled = std::move(next);
  segments_ = std::move(segments);
  steps = std::move(list);
  forget_plans();
}

// Tries a step on a copy if it assigns or rewrites, or if ops are assigned. For other steps nothing is copied.
std::optional<std::tuple<std::string, std::string, std::string>> PythonProgram::refusal(const std::string& line) const {
  const Step s = parse_step(line);
  try {
    if (waiting_ > 0 || is_assigned(steps) || s.kind == StepKind::kAssign || changes_fusion(s.kind)) {
      copy()->take(s);
      return std::nullopt;
    }
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return std::tuple(code_text(e.code), std::string(e.what()), e.place);
  }
  const auto refused = step_refusal(current(), s);
  if (!refused) return std::nullopt;
  return std::tuple(code_text(refused->code), refused->message, refused->place);
}

std::vector<std::string> PythonProgram::step_lines() const {
  std::vector<std::string> lines;
  for (const Step& s : steps) lines.push_back(print(s));
  return lines;
}

std::string step_line(const std::string& kind, const std::vector<StepWord>& operands,
                      const std::vector<std::string>& results, const py::dict& attrs) {
  return print(step_of(kind, operands, results, attrs));
}

std::vector<const Graph*> PythonProgram::parts() const {
  std::vector<const Graph*> all;
  for (const Graph& g : segments_) all.push_back(&g);
  if (all.empty()) all.push_back(&current());
  return all;
}

const Graph& PythonProgram::with(const std::string& tensor) const {
  for (const Graph& g : segments_)
    if (const auto v = find_value(g, tensor); v && g[g[*v].def].kind != OpKind::kInput) return g;
  return current();
}

std::string PythonProgram::fresh_value(const std::string& wanted) const {
  const auto is_free = [&](const std::string& name) {
    for (const Graph* g : parts())
      if (find_value(*g, name)) return false;
    return !find_value(current(), name);
  };
  std::string name = fresh_name(current(), wanted);
  for (int n = 1; !is_free(name); ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

std::vector<LoopInfo> PythonProgram::loops(const std::string& tensor) const {
  const Graph& g = with(tensor);
  std::vector<LoopInfo> result;
  for (DomainId d : loop_of(tensor_named(g, tensor)))
    result.push_back(
        {g[d].name, std::string(fusebox::text(g[d].iter_type)), std::string(fusebox::text(g[d].parallel))});
  return result;
}

std::vector<std::string> PythonProgram::sizes() const {
  std::vector<std::string> names;
  const Graph& g = current();
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kSize)
      for (ValueId v : g[id].results) names.push_back(g[v].name);
  return names;
}

std::vector<std::string> PythonProgram::tensors() const {
  std::vector<std::string> names;
  for (const Graph* g : parts())
    for (OpId op : ops_in_order(*g))
      for (ValueId v : (*g)[op].results)
        if (g->is_tensor(v) && std::find(names.begin(), names.end(), (*g)[v].name) == names.end())
          names.push_back((*g)[v].name);
  return names;
}

bool PythonProgram::is_reduction(const std::string& tensor) const {
  const Graph& g = with(tensor);
  const auto& logical = tensor_named(g, tensor).logical;
  return std::any_of(logical.begin(), logical.end(),
                     [&](DomainId d) { return g[d].iter_type == IterType::kReduction; });
}

// Whether steps may inline the tensor: an op makes it, and an op other than `output` reads it.
bool PythonProgram::is_read(const std::string& tensor) const {
  const Graph& g = with(tensor);
  const ValueId v = tensor_named(g, tensor).value;
  if (g[g[v].def].kind == OpKind::kInput) return false;
  const auto readers = uses(g)[v.index];
  return std::any_of(readers.begin(), readers.end(), [&](OpId op) { return g[op].kind != OpKind::kOutput; });
}

std::string PythonProgram::fresh_loop(const std::string& tensor, const std::string& wanted) const {
  const Graph& g = with(tensor);
  const TensorId t = g[tensor_named(g, tensor).value].tensor;
  std::string name = wanted;
  for (int n = 1; find_domain(g, t, name); ++n) name = wanted + std::to_string(n);
  return name;
}

Value PythonProgram::value_named(const std::string& name) const {
  const Graph& g = with(name);
  const ValueId v = tensor_named(g, name).value;
  const auto original = find_value(graph, name);
  return {original ? *original : ValueId(), name, g.is_tensor(v), serial_};
}

}  // namespace fusebox::python
