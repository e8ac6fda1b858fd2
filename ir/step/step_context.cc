// Shared by the rules of steps: looks up the names in a step, and refuses a step.
#include <algorithm>
#include <unordered_set>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_rules.h"
#include "ir/token/lex.h"

namespace fusebox {
namespace {

std::string operand_text(const StepOperand& o) {
  if (o.is_integer()) return std::to_string(o.integer);
  return o.domain.empty() ? "%" + o.value : "%" + o.value + "." + o.domain;
}

size_t variant_index(AttrKind kind) {
  switch (kind) {
    case AttrKind::kDtype:
      return 1;
    case AttrKind::kString:
      return 2;
    case AttrKind::kInts:
      return 3;
    case AttrKind::kInt:
    case AttrKind::kBool:
#define FUSEBOX_TYPE(type) case AttrKind::k##type:
      FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
      return 0;
  }
  return 0;
}

void check_attrs(const StepContext& c) {
  const StepRow& row = row_of(c.step.kind);
  for (const Attr& a : c.step.attrs.list()) {
    if (!row.accepts(a.key))
      c.refuse("the step `" + std::string(row.text) + "` takes no attribute `" + std::string(row_of(a.key).text) +
               "`; leave it out");
    const AttrKind kind = row_of(a.key).kind;
    const std::string attr = "attribute `" + std::string(row_of(a.key).text) + "`";
    if (a.value.index() != variant_index(kind)) c.refuse(attr + " has a value of another kind");
    const auto texts = enum_texts_of(kind);
    if (texts.empty()) continue;
    const int64_t v = std::get<int64_t>(a.value);
    if (v < 0 || v >= static_cast<int64_t>(texts.size())) c.refuse(attr + " has a value that does not exist");
  }
}

void check_operand(const StepContext& c, const Slot& slot, const StepOperand& o) {
  if (slot.optional && o == StepOperand{}) return;
  switch (slot.kind) {
    case 'd':
      if (o.is_integer() || o.domain.empty()) c.refuse("this step needs a domain such as %y.i0 here", operand_text(o));
      return;
    case 'x':
      if (!o.is_integer() && !o.domain.empty())
        c.refuse("this step needs an integer or a scalar here", operand_text(o));
      return;
    default:
      if (o.is_integer() || !o.domain.empty()) c.refuse("this step needs a value such as %y here", operand_text(o));
  }
}

// "d, d" takes two names, "t*" at least one.
void check_results(const StepContext& c) {
  const StepRow& row = row_of(c.step.kind);
  const bool any = row.results.find('*') != std::string_view::npos;
  const bool domains = row.results.starts_with('d');
  const size_t wanted =
      row.results.empty() ? 0 : static_cast<size_t>(std::count(row.results.begin(), row.results.end(), ',')) + 1;
  if (any ? c.step.results.empty() : c.step.results.size() != wanted)
    c.refuse("the step `" + std::string(row.text) + "` names " +
             (any ? "at least one result" : std::to_string(wanted) + " results"));
  for (size_t i = 0; i < c.step.results.size(); ++i) {
    const std::string& name = c.step.results[i];
    if (!(domains ? is_plain_word(name) : is_plain_name(name)))
      c.refuse(domains ? "a result's name is a letter or _, then letters, digits and _"
                       : "a result's name has letters, digits and _ alone",
               name);
    for (size_t k = 0; k < i; ++k)
      if (c.step.results[k] == name)
        c.refuse("two results have one name; give each its own", name, ErrorCode::kStepNameTaken);
    if (!domains && c.names.find(name))
      c.refuse("a value has this name already; choose another", "%" + name, ErrorCode::kStepNameTaken);
  }
}

}  // namespace

void StepContext::refuse(const std::string& why, const std::string& place, ErrorCode code) const {
  throw Error(code, why, place);
}

std::string StepContext::place(size_t i) const { return operand_text(step.operands[i]); }
std::string StepContext::place(TensorId t) const { return "%" + g[g[t].value].name; }
std::string StepContext::place(DomainId d) const { return place(g[d].tensor) + "." + g[d].name; }

ValueId StepContext::value(size_t i) const {
  if (const auto v = names.find(step.operands[i].value)) return *v;
  refuse("no value has this name; the step that made it may be missing", "%" + step.operands[i].value,
         ErrorCode::kStepReferent);
}

TensorId StepContext::tensor(size_t i) const {
  const ValueId v = value(i);
  if (!g.is_tensor(v)) refuse("this is no tensor; name one", "%" + step.operands[i].value, ErrorCode::kStepReferent);
  return g[v].tensor;
}

DomainId StepContext::domain(size_t i) const {
  const TensorId t = tensor(i);
  if (const auto d = find_domain(g, t, step.operands[i].domain)) return *d;
  refuse("the tensor has no domain of this name; the step that made it may be missing", place(i),
         ErrorCode::kStepReferent);
}

std::vector<TensorId> StepContext::tensors_from(size_t first) const {
  std::vector<TensorId> result;
  std::unordered_set<uint32_t> listed;
  for (size_t i = first; i < step.operands.size(); ++i) {
    const TensorId t = tensor(i);
    if (!listed.insert(t.index).second) refuse("a tensor is listed twice", place(i));
    result.push_back(t);
  }
  return result;
}

std::vector<DomainId> StepContext::domains_from(size_t first) const {
  std::vector<DomainId> result;
  for (size_t i = first; i < step.operands.size(); ++i) {
    const DomainId d = domain(i);
    if (position_in(result, d) < result.size()) refuse("a domain is listed twice", place(i));
    result.push_back(d);
  }
  return result;
}

void StepContext::require_scheduled(TensorId t) const {
  if (is_input(g, t)) refuse("an input is not scheduled; use cache_after, and schedule the copy", place(t));
  if (!g[g[t].value].def) refuse("nothing makes this tensor", place(t));
}

TensorId StepContext::scheduled_tensor(size_t i) const {
  const TensorId t = tensor(i);
  require_scheduled(t);
  return t;
}

void StepContext::require_free(DomainId d) const {
  const TensorId t = g[d].tensor;
  const auto& loop = loop_of(g[t]);
  const size_t at = position_in(loop, d);
  if (at == loop.size())
    refuse("this is not one of the tensor's loops; name a domain that no other step has used up", place(d));
  if (at < fixed_loops(g, t)) refuse("inlining has fixed this loop; transform it before inlining", place(d));
}

DomainId StepContext::free_loop(size_t i) const {
  scheduled_tensor(i);
  const DomainId d = domain(i);
  require_free(d);
  return d;
}

DomainId StepContext::serial_loop(size_t i) const {
  const DomainId d = free_loop(i);
  if (g[d].parallel != ParallelType::kSerial)
    refuse("this loop is " + std::string(text(g[d].parallel)) + "; transform it before parallelizing it", place(d));
  return d;
}

void StepContext::require_free_names(TensorId t) const {
  for (TensorId s : siblings(g, t))
    for (const std::string& name : step.results)
      if (find_domain(g, s, name))
        refuse("the tensor has a domain of this name already; choose another", place(s) + "." + name,
               ErrorCode::kStepNameTaken);
}

void StepContext::check_scalar(size_t i, TensorId user, int64_t least) const {
  constexpr int64_t kLargest = int64_t{1} << 31;
  const StepOperand& o = step.operands[i];
  if (o.is_integer()) {
    if (o.integer < least || o.integer > kLargest)
      refuse("the number " + std::to_string(o.integer) + " is out of range; use one from " + std::to_string(least) +
             " to 2^31");
    return;
  }
  const auto named = names.find(o.value);
  if (!named)
    refuse("no scalar has this name, or no output needs it; name another, or use it in the program", "%" + o.value,
           ErrorCode::kStepReferent);
  const ValueId v = *named;
  if (g[v].kind == ValueKind::kScalar && is_integer(g[v].dtype) && g[v].dtype != Dtype::kIndex)
    refuse(
        "this scalar is " + std::string(text(g[v].dtype)) +
            ", and a scalar of dtype index is needed here; let the program read its `cast … as index`, and name that",
        place(i), ErrorCode::kStepReferent);
  if (g[v].kind != ValueKind::kScalar || g[v].dtype != Dtype::kIndex)
    refuse("a scalar of dtype index, such as a size, is needed here", place(i), ErrorCode::kStepReferent);
  const OpId user_op = g[g[user].value].def;
  for (OpId op : g[Graph::body()].ops) {
    if (op == g[v].def) return;
    if (op == user_op) break;
  }
  refuse("this scalar is defined after the tensor; use one that stands before it", place(i));
}

ValueId StepContext::scalar(size_t i) const {
  const StepOperand& o = step.operands[i];
  return o.is_integer() ? constant_index(*target, o.integer) : value(i);
}

bool is_input(const Graph& g, TensorId t) {
  const OpId def = g[g[t].value].def;
  return def && g[def].kind == OpKind::kInput;
}

bool is_output(const Graph& g, ValueId v) {
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind == OpKind::kOutput && g[op].operands[0] == v) return true;
  return false;
}

std::vector<OpId> readers(const Graph& g, ValueId v) {
  std::vector<OpId> result;
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind != OpKind::kOutput &&
        std::find(g[op].operands.begin(), g[op].operands.end(), v) != g[op].operands.end())
      result.push_back(op);
  return result;
}

void check_step_form(const StepContext& c) {
  const Graph& g = c.g;
  const Step& step = c.step;
  if (static_cast<size_t>(step.kind) >= step_rows().size()) c.refuse("no step has this number");
  const StepRow& row = row_of(step.kind);
  if (g.level != Level::kMath && g.level != Level::kScheduled)
    c.refuse("steps apply to a fusion, not to a program of level " + std::string(text(g.level)));
  check_attrs(c);
  const auto ranges = slot_ranges(*row.format, step.operands.size());
  if (!ranges) c.refuse("the step `" + std::string(row.text) + "` has the wrong number of operands");
  for (size_t s = 0; s < row.format->all().size(); ++s)
    for (uint32_t i = 0; i < (*ranges)[s].count; ++i)
      check_operand(c, row.format->slots[s], step.operands[(*ranges)[s].begin + i]);
  check_results(c);
}

}  // namespace fusebox
