#include <algorithm>
#include <map>
#include <optional>

#include "ir/domain/domain.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan_queries.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"
#include "replay/picture/picture.h"

namespace fusebox::picture {
namespace {

class Describer {
 public:
  Describer(const Graph& g, const Defects& defects)
      : g_(g), options_{.defects = defects}, number_(g.domains.size(), kNone) {}

  Picture run() {
    picture_.name = g_.name;
    for (OpId op : g_[Graph::body()].ops)
      for (ValueId v : g_[op].results)
        if (g_.is_tensor(v)) tensor(op, v);
    if (const auto refused = legal(g_, options_)) note(*refused);
    for (size_t k = 0; k < kGraphKinds; ++k) groups(static_cast<IdGraphKind>(k));
    try {
      KernelPlan plan(g_, {options_.defects, options_.sizes});
      promoted_ = plan.nest_plan.promoted;
      const bool planned = plan_memory(plan);
      for (const Nest& nest : plan.nest_plan.nests) describe_nest(plan, nest, planned);
    } catch (const Error& e) {
      note(e);
    }
    return std::move(picture_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void note(const Error& e) {
    if (picture_.note.empty())
      picture_.note = code_text(e.code) + (e.place.empty() ? "" : " at " + e.place) + ": " + e.what();
  }

  // -- what stands in the graph

  void tensor(OpId op, ValueId v) {
    const Tensor& t = g_.tensor_of(v);
    TensorPicture out;
    out.name = print_value(g_, v);
    out.type = print_type(g_, v);
    out.op = print_op(g_, op);
    // The type stands beside it.
    if (g_[op].kind == OpKind::kInput)
      out.op = out.name + " = input";
    else if (const size_t type = out.op.rfind(" : "); type != std::string::npos)
      out.op.resize(type);
    for (DomainId d : domains_of(g_, t)) out.domains.push_back(domain(t, d));
    const auto positions = [&](const std::vector<DomainId>& list) {
      std::vector<size_t> result;
      for (DomainId d : list) result.push_back(number_[d.index]);
      return result;
    };
    out.root = positions(t.root);
    out.logical = positions(t.logical);
    out.allocation = positions(t.allocation);
    out.loop = positions(t.loop);
    out.loop_broadcasts = positions(t.loop_broadcasts);
    for (size_t i = 0; i < out.allocation.size(); ++i) picture_.domains[out.allocation[i]].allocation = i;
    for (TransformId id : t.transforms)
      out.transforms.push_back({transform_text(g_[id]), positions(g_[id].inputs), positions(g_[id].outputs)});
    tensor_of_[v] = picture_.tensors.size();
    picture_.tensors.push_back(std::move(out));
  }

  size_t domain(const Tensor& t, DomainId id) {
    const IterDomain& d = g_[id];
    DomainPicture out;
    out.id = id;
    out.tensor = picture_.tensors.size();
    out.name = d.name;
    out.full_name = print_domain(g_, id);
    out.extent = extent_text(id);
    if (d.def) out.made_by = made_by(g_[d.def], id);
    if (d.stands_for) out.made_by = "stands for " + print_domain(g_, d.stands_for);
    out.iter_type = d.iter_type;
    out.parallel = d.parallel;
    out.is_inline_at = t.inline_at == id;
    number_[id.index] = picture_.domains.size();
    picture_.domains.push_back(std::move(out));
    return number_[id.index];
  }

  // A sum of products of named scalars.
  std::string form_text(const ScalarForm& form) const {
    std::string out;
    const auto add = [&](int64_t coefficient, const std::string& factors) {
      out += out.empty() ? (coefficient < 0 ? "-" : "") : (coefficient < 0 ? " - " : " + ");
      const std::string number = std::to_string(coefficient).substr(coefficient < 0 ? 1 : 0);
      out += factors.empty() ? number : number == "1" ? factors : number + "*" + factors;
    };
    for (const ScalarForm::Term& term : form.terms) {
      std::string factors;
      for (ValueId v : term.factors) factors += (factors.empty() ? "" : "*") + print_value(g_, v).substr(1);
      add(term.coefficient, factors);
    }
    if (form.constant != 0 || out.empty()) add(form.constant, "");
    return out;
  }
  std::string scalar_text(ValueId v) const { return form_text(form_of(g_, v)); }

  // Whether the domain is, or is made from, a broadcast that a shared loop gives another extent.
  bool is_promoted(DomainId id) const {
    const auto from = leaves(g_, id);
    return std::any_of(from.begin(), from.end(), [&](DomainId d) { return promoted_.contains(d); });
  }

  // The extent as the transforms make it, as a number if it is constant.
  std::string extent_text(DomainId id) {
    const IterDomain& d = g_[id];
    if (const auto it = promoted_.find(id); it != promoted_.end()) return scalar_text(it->second);
    if (const auto number = is_promoted(id) ? std::nullopt : evaluate_extent(g_, id)) {
      if (d.iter_type != IterType::kBroadcast || !d.expanded) return std::to_string(*number);
      return std::to_string(*number) + "*" + scalar_text(d.expanded);
    }
    if (const auto form = is_promoted(id) ? std::nullopt : extent_form(g_, id)) return form_text(*form);
    if (!d.def) return d.extent ? scalar_text(d.extent) : "?";
    const Transform& t = g_[d.def];
    const auto factor = [&](const std::string& text) {
      return text.find(' ') == std::string::npos || (text.starts_with("ceil(") && text.ends_with(')'))
                 ? text
                 : "(" + text + ")";
    };
    switch (t.kind) {
      case TransformKind::kSplit:
        if ((t.outputs[1] == id) == t.inner_split) return scalar_text(t.factor);
        return "ceil(" + factor(extent_text(t.inputs[0])) + " / " + factor(scalar_text(t.factor)) + ")";
      case TransformKind::kMerge: {
        const std::string first = factor(extent_text(t.inputs[0])), second = factor(extent_text(t.inputs[1]));
        return first == "1" ? second : second == "1" ? first : first + "*" + second;
      }
      case TransformKind::kSwizzle:
        return extent_text(t.inputs[t.outputs[0] == id ? 0 : 1]);
      case TransformKind::kResize:
        return extent_text(t.inputs[0]) + " + " + factor(scalar_text(t.factor)) + " + " + factor(scalar_text(t.right));
    }
    return {};
  }

  std::string transform_text(const Transform& t) const {
    const std::string kind(text(t.kind));
    switch (t.kind) {
      case TransformKind::kSplit:
        return kind + " " + scalar_text(t.factor) + (t.inner_split ? "" : " outer");
      case TransformKind::kMerge:
        return kind;
      case TransformKind::kSwizzle:
        return kind + " " + std::string(text(t.swizzle));
      case TransformKind::kResize:
        return kind + " " + scalar_text(t.factor) + ", " + scalar_text(t.right);
    }
    return {};
  }

  std::string made_by(const Transform& t, DomainId id) const {
    std::string out = transform_text(t) + " of ";
    for (size_t i = 0; i < t.inputs.size(); ++i) out += (i == 0 ? "" : ", ") + g_[t.inputs[i]].name;
    if (t.outputs.size() < 2) return out;
    const bool is_first = t.outputs[0] == id;
    if (t.kind == TransformKind::kSplit) return (is_first ? "outer of " : "inner of ") + out;
    return (is_first ? "first of " : "second of ") + out;
  }

  // -- groups

  void groups(IdGraphKind kind) {
    const auto k = static_cast<size_t>(kind);
    std::optional<IdGraph> graph;
    try {
      graph = id_graph(g_, kind, options_.defects);
    } catch (const Error& e) {
      note(e);
    }
    std::map<DomainId, Group> classes;
    for (size_t i = 0; i < picture_.domains.size(); ++i) {
      const DomainId id = picture_.domains[i].id;
      const DomainId first = graph ? graph->representative[id.index] : DomainId();
      classes[first ? first : id].push_back(i);
    }
    auto& list = picture_.groups[k];
    for (auto& [first, members] : classes)
      if (members.size() > 1) list.push_back(std::move(members));
    std::sort(list.begin(), list.end());
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t member : list[i]) picture_.domains[member].group[k] = static_cast<uint32_t>(i + 1);
    if (graph)
      for (const IdProof& proof : graph->proofs)
        picture_.joins.push_back({number_[proof.a.index], number_[proof.b.index], join_text(proof)});
  }

  std::string join_text(const IdProof& proof) const {
    std::string out = proof.reason;
    if (proof.nest) out += " (in the nest of " + print_value(g_, g_[proof.nest].value) + ")";
    for (const std::string& fact : proof.facts) out += "; " + fact;
    return out;
  }

  // -- what lowering computes

  // Returns false if the schedule cannot be lowered. Then threads and memory are not known.
  bool plan_memory(KernelPlan& plan) {
    try {
      plan = plan_replicas(plan_buffers(plan_threads(plan)));
      return true;
    } catch (const Error& e) {
      note(e);
      return false;
    }
  }

  DomainPicture* shown(DomainId d) { return number_[d.index] == kNone ? nullptr : &picture_.domains[number_[d.index]]; }

  void describe_nest(const KernelPlan& plan, const Nest& nest, bool planned) {
    StatementView view(plan, nest.op);
    const auto& results = g_[nest.op].results;
    for (ValueId v : results) {
      picture_.tensors[tensor_of_[v]].has_nest = true;
      const auto& loop = loop_of(g_.tensor_of(v));
      for (size_t i = 0; i < loop.size() && i < nest.path.size(); ++i)
        shown(loop[i])->parallel = plan.parallel_of(nest.path[i]);
      if (v == results[0]) {
        own_values(plan, view, v, view.own);
        continue;
      }
      // Other results have the loops of the first one.
      DomainValues values(g_, plan.nest_plan, view.symbols, view.algebra, g_[v].tensor);
      for (size_t i = 0; i < loop.size() && i < nest.path.size(); ++i) values.set(loop[i], view.loop(i));
      values.propagate();
      own_values(plan, view, v, values);
    }
    for (size_t k = 0; k < g_[nest.op].operands.size(); ++k) add_reads(view, nest.op, k);
    if (planned) add_conditions(plan, view, StatementKind::kMain);
    if (!planned || !demands(g_[nest.op].kind, kReduction)) return;
    // A reduction's accumulator belongs to the thread. Its result is stored outside the reduction's loops.
    Statement last{nest.op, StatementKind::kFinal, nest.path};
    const auto& loop = loop_of(g_.tensor_of(results[0]));
    for (size_t i = 0; i < loop.size(); ++i)
      if (is_reduction(g_, loop[i])) last.path[i] = LoopNode::kNoNode;
    StatementView store(plan, last);
    add_conditions(plan, store, StatementKind::kFinal);
  }

  void own_values(const KernelPlan& plan, StatementView& view, ValueId v, DomainValues& values) {
    IndexAlgebra& algebra = view.algebra;
    for (size_t i : picture_.tensors[tensor_of_[v]].domains) {
      DomainPicture& d = picture_.domains[i];
      if (!values.known(d.id)) continue;
      const Form value = values.value(d.id), extent = values.extent(d.id);
      d.index = algebra.to_string(value);
      if (is_promoted(d.id)) {
        const auto number = algebra.constant_value(extent);
        d.extent = (promoted_.contains(d.id) ? d.extent + " as " : "") +
                   (number ? std::to_string(*number) : extent_text(d.id));
      }
      // A broadcast that is not promoted is read at index 0.
      const bool is_read_at_0 =
          g_[d.id].iter_type == IterType::kBroadcast && !g_[d.id].def && !promoted_.contains(d.id);
      d.may_leave = !is_read_at_0 && !(algebra.prove_nonneg(value) && algebra.prove_less(value, extent));
    }
    for (const DomainVerdict& verdict : values.verdicts())
      if (DomainPicture* d = shown(verdict.domain)) {
        d->rule = row_of(verdict.reason).text;
        d->reason = row_of(verdict.reason).says;
      }
    for (const DomainCheck& check : domain_checks(plan, view, values))
      if (DomainPicture* d = shown(check.domain)) {
        const std::string below = algebra.to_string(check.value) + " < " + algebra.to_string(check.extent);
        d->check = check.lower ? "0 <= " + below : below;
        d->may_leave = true;
        picture_.tensors[tensor_of_[v]].conditions.push_back(d->check);
      }
  }

  // Conditions on threads: a launch may be larger than the loop, and one thread stores memory that several see.
  void add_conditions(const KernelPlan& plan, StatementView& view, StatementKind kind) {
    for (const Condition& c : conditions_of(plan, view, kind)) {
      if (!c.guard) continue;
      const std::string thread(text(*c.guard));
      const std::string condition =
          c.compare == OpKind::kEq ? thread + " = 0" : thread + " < " + view.algebra.to_string(c.bound);
      for (ValueId v : g_[view.op].results) {
        auto& list = picture_.tensors[tensor_of_[v]].conditions;
        if (std::find(list.begin(), list.end(), condition) == list.end()) list.push_back(condition);
      }
    }
  }

  // Adds the indices by which the op reads the domains of an operand.
  void add_reads(StatementView& view, OpId op, size_t operand) {
    const ValueId v = g_[op].operands[operand];
    if (!v || !g_.is_tensor(v) || !tensor_of_.contains(v)) return;
    std::optional<Form> loaded;
    if (read_of(g_[op].kind, operand) == fusebox::Read::kData) loaded = view.loaded();
    DomainValues values = view.feed(operand, loaded);
    for (size_t i : picture_.tensors[tensor_of_[v]].domains) {
      DomainPicture& d = picture_.domains[i];
      if (!values.known(d.id)) continue;
      Read read{print_value(g_, g_[op].results[0]), view.algebra.to_string(values.value(d.id))};
      if (std::find(d.reads.begin(), d.reads.end(), read) == d.reads.end()) d.reads.push_back(std::move(read));
    }
  }

  const Graph& g_;
  const LowerOptions options_;
  Picture picture_;
  std::vector<size_t> number_;  // by domain index: in Picture::domains
  std::map<ValueId, size_t> tensor_of_;
  std::map<DomainId, ValueId> promoted_;
};

}  // namespace

const DomainPicture* Picture::domain(std::string_view full_name) const {
  for (const DomainPicture& d : domains)
    if (d.full_name == full_name) return &d;
  return nullptr;
}

Picture describe(const Graph& scheduled, const Defects& defects) { return Describer(scheduled, defects).run(); }

}  // namespace fusebox::picture
