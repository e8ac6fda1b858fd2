#include "passes/schedule/apply_steps.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "ir/canonical/canonical.h"
#include "ir/infer/concretize.h"
#include "ir/step/apply.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "ir/verify/verify.h"
#include "passes/rewrite/rewrite.h"

namespace fusebox {
namespace {

ParsedRewrite checked_rewrite(const Graph& g, const Step& step) {
  ParsedRewrite parsed = parse_rewrite(step);
  if (g.level != Level::kMath)
    throw Error(ErrorCode::kStepNotApplicable,
                "a rewrite applies to a fusion of level math that no step has scheduled; put it first",
                std::string(parsed.pass->name));
  return parsed;
}

}  // namespace

std::optional<StepRefusal> step_refusal(const Graph& g, const Step& step) {
  if (step.kind != StepKind::kRewrite) return inapplicable(g, step);
  try {
    checked_rewrite(g, step);
  } catch (const Error& e) {
    return StepRefusal{e.code, e.what(), e.place};
  }
  return std::nullopt;
}

void apply_step(Graph& g, const Step& step, const Defects& defects) {
  if (step.kind != StepKind::kRewrite) return apply(g, step, defects);
  ParsedRewrite parsed = checked_rewrite(g, step);
  parsed.options.defects = defects;
  // Names of what a rewrite makes depend on the values that a text shows, and on no dead ones.
  Graph next = compact(g);
  if (!parsed.pass->run(next, parsed.options)) return;
  next = compact(next);
  if (const auto error = find_error(next, defects))
    throw Error(
        ErrorCode::kInternal,
        "the rewrite " + std::string(parsed.pass->name) + " made a program that does not verify: " + error->what(),
        error->place);
  g = std::move(next);
}

// A step checks everything before it changes anything, so an applicable step is not checked twice.
bool try_step(Graph& g, const Step& step) {
  try {
    apply_step(g, step);
    return true;
  } catch (const Error&) {
    if (!step_refusal(g, step)) throw;
    return false;
  }
}

void apply_steps(Graph& g, std::span<const Step> steps, const Defects& defects) {
  std::optional<StepApplier> applier;  // valid until a rewrite makes another graph
  for (const Step& step : steps) {
    if (step.kind == StepKind::kRewrite) {
      applier.reset();
      apply_step(g, step, defects);
    } else {
      if (!applier) applier.emplace(g, defects);
      applier->apply(step);
    }
  }
}

size_t leading_rewrites(std::span<const Step> steps) {
  const auto refuse_late = [&](auto from, StepKind kind, const char* why) {
    const auto late = std::find_if(from, steps.end(), [&](const Step& s) { return s.kind == kind; });
    if (late == steps.end()) return;
    throw Error(ErrorCode::kStepNotApplicable, why,
                kind == StepKind::kRewrite ? std::string(parse_rewrite(*late).pass->name) : std::string());
  };
  const auto skip = [&](auto from, StepKind kind) {
    return std::find_if_not(from, steps.end(), [&](const Step& s) { return s.kind == kind; });
  };
  const auto first_rewrite = skip(steps.begin(), StepKind::kPrecision);
  const auto rest = skip(first_rewrite, StepKind::kRewrite);
  refuse_late(rest, StepKind::kRewrite, "a rewrite stands after another step; put rewrites first");
  refuse_late(first_rewrite, StepKind::kPrecision,
              "a precision step stands after a step of another kind; put precision steps first");
  return static_cast<size_t>(rest - steps.begin());
}

Step precision_step(bool fast) {
  Step step{StepKind::kPrecision, {}, {}, {}};
  step.attrs.set_flag(fast ? AttrKey::kFast : AttrKey::kExact);
  return step;
}

Graph with_precision(const Graph& fusion, std::span<const Step> steps) {
  Graph result = fusion;
  for (const Step& s : steps)
    if (s.kind == StepKind::kPrecision) try_step(result, s);
  return result;
}

namespace {

// Sizes and inputs keep their names. A computed scalar may have a name that another scalar had before.
bool is_given(const Graph& g, ValueId v) {
  const OpId def = g[v].def;
  return def && (g[def].kind == OpKind::kSize || g[def].kind == OpKind::kInput);
}

}  // namespace

Rebinder::Rebinder(const Graph& from, const Bindings& bindings) : bindings_(bindings) {
  for (size_t i = 0; i < from.values.size(); ++i)
    if (is_given(from, ValueId(i))) given_.emplace(from.values[i].name, i);
}

Bindings Rebinder::to(const Graph& g) const {
  Bindings result(g.values.size());
  for (size_t i = 0; i < g.values.size(); ++i) {
    if (!is_given(g, ValueId(i))) continue;
    if (const auto it = given_.find(g.values[i].name); it != given_.end() && it->second < bindings_.size())
      result[i] = bindings_[it->second];
  }
  for (OpId op : g[Graph::body()].ops)
    for (ValueId v : g[op].results)
      if (!g.is_tensor(v) && !result[v.index]) result[v.index] = evaluate(g, v, result);
  return result;
}

namespace {

// Whether a value of the program has an axis that is not resolved. The graph keeps domains that inference has replaced, too.
bool is_unresolved(const Graph& g) {
  return std::ranges::any_of(g[Graph::body()].ops, [&](OpId op) {
    return std::ranges::any_of(g[op].results, [&](ValueId v) { return g.is_tensor(v) && symbolic_axes(g, v) > 0; });
  });
}

// The tensors of a graph by name, with the place of each among the ops. Inputs stand first, as they are resolved first.
std::unordered_map<std::string, size_t> places_of_tensors(const Graph& g) {
  std::unordered_map<std::string, size_t> places;
  size_t place = 0;
  for (OpId op : ops_in_order(g)) {
    ++place;
    for (ValueId v : g[op].results)
      if (g.is_tensor(v)) places.emplace(g[v].name, g[op].kind == OpKind::kInput ? 0 : place);
  }
  return places;
}

// Applies the steps up to one that is refused, and returns how many those are. Throws if the first one is refused.
size_t apply_while_possible(Graph& g, const std::vector<Step>& steps, const Defects& defects) {
  StepApplier applier(g, defects);
  for (size_t i = 0; i < steps.size(); ++i) {
    try {
      applier.apply(steps[i]);
    } catch (const Error&) {
      if (i == 0) throw;
      return i;
    }
  }
  return steps.size();
}

}  // namespace

// Each step infers the ops behind its axis. A scalar that is made on the way may keep an extent from being found equal to
// another one, so that an axis is symbolic that was none in the plan. The steps of ops behind that axis would be inferred again
// with it. So they are dropped, and the plan goes on from the steps in front of it. Only these can have made it symbolic, and
// the next such axis stands further behind. A step behind it may be refused before it is known.
std::vector<Step> plan_resolution(const Graph& fusion, const Bindings& bindings, Graph& g, const Defects& defects) {
  if (!has_symbolic_axes(g)) return {};
  g = canonical_order(g);
  std::unordered_map<std::string, size_t> places;
  const auto place_of = [&](const Step& s) { return places.at(s.operands.at(0).value); };
  std::vector<Step> steps;
  Graph resolved = g;
  size_t begins = 0;
  while (true) {
    const std::vector<Step> more = plan_concretize(resolved, rebind(fusion, bindings, resolved), defects);
    if (more.empty()) return steps;
    if (!steps.empty()) {
      if (places.empty()) places = places_of_tensors(g);
      const size_t late = place_of(more[0]);
      const auto behind = std::ranges::find_if(steps, [&](const Step& s) { return place_of(s) >= late; });
      if (late > begins && behind != steps.end()) {
        begins = late;
        steps.erase(behind, steps.end());
        resolved = g;
        apply_steps(resolved, steps, defects);
        continue;
      }
    }
    const size_t applied = apply_while_possible(resolved, more, defects);
    steps.insert(steps.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(applied));
    if (!is_unresolved(resolved)) return steps;
  }
}

Bindings rebind(const Graph& from, const Bindings& bindings, const Graph& to) {
  return Rebinder(from, bindings).to(to);
}

}  // namespace fusebox
