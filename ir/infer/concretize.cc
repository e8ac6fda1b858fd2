#include "ir/infer/concretize.h"

#include <algorithm>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/infer/infer.h"
#include "ir/infer/infer_rules.h"

namespace fusebox {
namespace {

[[noreturn]] void refuse(const Graph& g, TensorId t, const std::string& message) {
  throw Error(ErrorCode::kStepNotApplicable, message, "%" + g[g[t].value].name);
}

void need_math(const Graph& g, TensorId t) {
  if (g.level != Level::kMath) refuse(g, t, "axes are resolved before a program is scheduled");
}

OpId def_of(const Graph& g, TensorId t) {
  const OpId def = g[g[t].value].def;
  if (!def) refuse(g, t, "no op makes this tensor");
  return def;
}

// An axis of an op that stretches, which repeats one element because the operand's axis does, and to the same size.
struct CopiedAxis {
  OpId op;
  size_t from = 0, to = 0;  // positions in the operand, without its reductions, and in the result
};

std::vector<CopiedAxis> copied_axes(const Graph& g) {
  std::vector<CopiedAxis> copied;
  for (OpId id : ops_in_order(g)) {
    const Op& op = g[id];
    if (!stretches(op.kind)) continue;
    const auto from = logical_without_reductions(g, g.tensor_of(op.operands[0]));
    const auto& to = g.tensor_of(op.results[0]).logical;
    const auto relation = axis_relation(g, op, 0);
    for (size_t i = 0; i < from.size(); ++i) {
      const size_t position = relation[i].result;
      if (g[from[i]].expanded && position < to.size() && g[to[position]].expanded == g[from[i]].expanded)
        copied.push_back({id, i, position});
    }
  }
  return copied;
}

// Resolving one axis may show an operand's axis as a broadcast, and resolving the next one shows that it has an element for
// each place. An axis that copied it has as many elements. Inference may no longer find both sizes equal, and it would keep
// the broadcast as one that a step made.
//
//   %s = slice %e from [%a] to [%b]     // %e, of one element, is expanded to a size: until the size is known to be 1, %s repeats it
//   %y = expand %s to [%n]              // where %n is the length of %s
void release_copies(Graph& g, OpId op, std::span<const CopiedAxis> copied) {
  for (const CopiedAxis& c : copied) {
    if (c.op != op) continue;
    const auto from = logical_without_reductions(g, g.tensor_of(g[op].operands[0]));
    IterDomain& axis = g[g.tensor_of(g[op].results[0]).logical[c.to]];
    if (!axis.expanded || g[from[c.from]].iter_type == IterType::kBroadcast) continue;
    axis.iter_type = IterType::kIteration;
    axis.extent = std::exchange(axis.expanded, ValueId());
  }
}

// Infers every op again that depends on this value, in text order. `copied` are the axes before the change.
void infer_downstream(Graph& g, ValueId changed, std::span<const CopiedAxis> copied, const Defects& defects) {
  std::vector<bool> stale(g.values.size());
  stale[changed.index] = true;
  for (OpId op : ops_in_order(g)) {
    const bool reads = std::any_of(g[op].operands.begin(), g[op].operands.end(),
                                   [&](ValueId v) { return v && v.index < stale.size() && stale[v.index]; });
    // An output may show an axis that a later step resolves. Outputs are checked after all steps.
    if (!reads || g[op].kind == OpKind::kOutput) continue;
    release_copies(g, op, copied);
    infer(g, op, {}, defects);
    for (ValueId v : g[op].results) stale[v.index] = true;
  }
}

// Whether an axis of an input gives this size its value.
bool is_bound(const Graph& g, ValueId size) {
  for (ValueId v : inputs(g)) {
    if (!g.is_tensor(v)) continue;
    for (DomainId d : logical_without_reductions(g, g.tensor_of(v)))
      if (g[d].size() == size) return true;
  }
  return false;
}

// A size that is 1 and that no input shows any more becomes `set 1`. It keeps its name, and its value is known.
void fix_size_to_one(Graph& g, ValueId size, std::span<const CopiedAxis> copied, const Defects& defects) {
  const OpId def = g[size].def;
  if (!def || g[def].kind != OpKind::kSize || is_bound(g, size)) return;
  Op one;
  one.kind = OpKind::kSet;
  one.operands = {constant_index(g, 1)};
  one.results = {size};
  if (g[def].results.size() == 1) {
    g[def] = std::move(one);
  } else {
    std::erase(g[def].results, size);
    insert_after(g, def, std::move(one));
  }
  infer_downstream(g, size, copied, defects);
}

// The sizes of a reshape's domains as forms.
std::vector<ScalarForm> counted_sizes(const Graph& g, std::span<const DomainId> domains) {
  std::vector<ScalarForm> result;
  for (DomainId d : domains) {
    const auto form = size_form(g, d);
    result.push_back(form ? *form : ScalarForm::atom(ValueId(d.index)));
  }
  return result;
}

// The op that is not evaluated although its operands are known, and so leaves this scalar unknown. Nothing if the
// scalar is unknown because a size is not bound.
std::optional<OpKind> unevaluated_op(const Graph& g, ValueId v, const Bindings& bindings) {
  for (int budget = 1000; budget > 0; --budget) {
    if (!v || !g[v].def || evaluate(g, v, bindings)) return std::nullopt;
    const Op& op = g[g[v].def];
    ValueId next;
    for (ValueId o : op.operands)
      if (!next && o && !evaluate(g, o, bindings)) next = o;
    if (!next) return demands(op.kind, kPointwise) ? std::optional(op.kind) : std::nullopt;
    v = next;
  }
  return std::nullopt;
}

// Resolves an axis. Readers of its tensor are not inferred again, but those of a size that an input fixes to 1 are.
void resolve_domain(Graph& g, DomainId domain, Resolution to, std::span<const CopiedAxis> copied,
                    const Defects& defects) {
  const IterType type = to.type;
  const TensorId t = g[domain].tensor;
  need_math(g, t);
  if (g[domain].iter_type != IterType::kSymbolic && !(to.is_one_element && is_stretched(g, domain)))
    refuse(g, t, "this axis is not symbolic");
  if (type != IterType::kIteration && type != IterType::kBroadcast)
    refuse(g, t, "an axis becomes iteration or broadcast");
  const auto& logical = g[t].logical;
  if (std::find(logical.begin(), logical.end(), domain) == logical.end())
    refuse(g, t, "this domain is not a logical one");
  const OpKind kind = g[def_of(g, t)].kind;
  if (kind != OpKind::kInput && !stretches(kind)) refuse(g, t, "this axis follows from others; resolve those");
  if (to.is_one_element && (type != IterType::kBroadcast || !stretches(kind)))
    refuse(g, t, "only a broadcast of an op that stretches is resolved to one element");
  // A broadcast has no contiguity.
  if (type == IterType::kBroadcast && !g[t].contiguity.empty()) {
    const auto allocation = allocation_of(g, g[t]);
    // One element may have any stride if its axis is not contiguous. The axis outside of it continues from that stride, so
    // it is not contiguous to what remains.
    bool is_free = false;
    for (size_t i = allocation.size(); i > 0; --i) {
      Contiguity& c = g[t].contiguity[i - 1];
      if (allocation[i - 1] == domain) {
        is_free = c == Contiguity::kFalse;
        c = Contiguity::kNone;
      } else if (is_free && c != Contiguity::kNone) {
        c = Contiguity::kFalse;
        is_free = false;
      }
    }
  }
  g[domain].iter_type = type;
  if (type != IterType::kBroadcast) return;
  const ValueId extent = g[domain].extent;
  if (to.is_one_element)
    g[domain].expanded = ValueId();
  else if (stretches(kind))
    g[domain].expanded = extent;
  g[domain].extent = constant_index(g, 1);
  if (kind == OpKind::kInput) fix_size_to_one(g, extent, copied, defects);
}

// Gives a reshape its groups. Readers of its tensor are not inferred again.
void regroup(Graph& g, TensorId tensor, std::span<const int64_t> groups) {
  need_math(g, tensor);
  const OpId id = def_of(g, tensor);
  if (g[id].kind != OpKind::kReshape) refuse(g, tensor, "only a reshape has groups");
  const Attrs attrs;
  InferContext c{g, scalar::Place::before_op(g, id), OpKind::kReshape, g[id].operands, attrs, {}, 1};
  ResultSpec spec = infer_reshape(c);
  const auto is_counted = [&](const Axis& a) { return !form_of(g, a.size()).equals(ScalarForm::of(1)); };
  const int64_t from = std::count_if(spec.root.begin(), spec.root.end(), is_counted);
  const int64_t to = std::count_if(spec.axes.begin(), spec.axes.end(), is_counted);
  int64_t merged = 0, split = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t n = groups[i];
    if (n < 0 || n > from + to) refuse(g, tensor, "a group of a reshape has a count of axes");
    (i % 2 == 0 ? merged : split) += n;
  }
  if (groups.size() % 2 != 0 || merged != from || split != to)
    refuse(g, tensor,
           "the groups of this reshape must cover " + std::to_string(from) + " axes and make " + std::to_string(to));
  for (Axis& a : spec.axes)
    if (a.type == IterType::kSymbolic) a.type = IterType::kIteration;
  spec.groups.assign(groups.begin(), groups.end());
  make_domains(g, tensor, spec);
}

constexpr Resolution kOneElement{.type = IterType::kBroadcast, .is_one_element = true};

// The effect of an op that stretches axes to a size of 1.
enum class OneElement : uint8_t {
  kFixed,      // an iteration, or a broadcast expanded to 1: its readers have extent 1 too
  kStretches,  // a broadcast of one element
};

class Planner {
 public:
  Planner(const Graph& g, const Bindings& bindings, OneElement ones, const Defects& defects)
      : given_(g), g_(g), bindings_(bindings), ones_(ones), defects_(defects) {}

  // After `run`: throws kSizeMismatch if the sizes do not fit the concretized program.
  void check() const { check_sizes(g_, bindings_); }
  // After `run`: whether an op stretches a symbolic axis to 1.
  bool has_ones() const { return has_ones_; }

  std::vector<Step> run() {
    // Inputs come first: an input may fix a size to 1, and earlier ops that read this size are inferred again.
    for (OpId id : ops_in_order(g_))
      if (g_[id].kind == OpKind::kInput) resolve_results(id);
    copied_ = copied_axes(g_);
    // Each other op is inferred again at most once, after its operands are resolved.
    for (OpId id : ops_in_order(g_)) {
      if (g_[id].kind == OpKind::kInput) continue;
      infer_if_stale(id);
      resolve_results(id);
    }
    for (OpId id : ops_in_order(g_))
      if (g_[id].kind == OpKind::kOutput) infer(g_, id);
    return std::move(steps_);
  }

 private:
  std::string name(DomainId d) const { return "%" + g_[g_[g_[d].tensor].value].name + "." + g_[d].name; }

  int64_t known(std::optional<int64_t> size, DomainId d) const {
    if (size) return *size;
    const auto op = unevaluated_op(g_, g_[d].size(), bindings_);
    if (op)
      throw Error(ErrorCode::kNotConcretized,
                  "the extent of this axis is computed by " + std::string(row_of(*op).text) +
                      ", which no extent can be; compute it of sizes and integers by add, sub, mul and div",
                  name(d));
    throw Error(ErrorCode::kNotConcretized, "the extent of this axis is not bound; give the program's inputs", name(d));
  }

  void infer_if_stale(OpId id) {
    const auto is_stale = [&](ValueId v) { return v && v.index < stale_.size() && stale_[v.index]; };
    if (g_[id].kind == OpKind::kOutput || std::ranges::none_of(g_[id].operands, is_stale)) return;
    release_copies(g_, id, copied_);
    infer(g_, id, {}, defects_);
    for (ValueId v : g_[id].results) mark_stale(v);
  }

  // Notes that the readers of this value must be inferred again.
  void mark_stale(ValueId v) {
    if (stale_.size() < g_.values.size()) stale_.resize(g_.values.size());
    stale_[v.index] = true;
  }

  void resolve_results(OpId id) {
    for (size_t r = 0; r < g_[id].results.size(); ++r)
      if (const ValueId v = g_[id].results[r]; g_.is_tensor(v)) resolve(id, v);
  }

  void resolve(OpId id, ValueId v) {
    const auto symbolic = [&](DomainId d) { return g_[d].iter_type == IterType::kSymbolic; };
    const auto& axes = g_.tensor_of(v).logical;
    const OpKind kind = g_[id].kind;
    if (kind == OpKind::kReshape && std::any_of(axes.begin(), axes.end(), symbolic))
      return resolve_reshape(id, v);  // its operand is already resolved
    for (size_t i = 0; i < g_.tensor_of(v).logical.size(); ++i) {
      const DomainId d = g_.tensor_of(v).logical[i];
      if (symbolic(d))
        resolve_axis(id, v, d, i);
      else if (is_inferred_as_one(v, d, i) && may_be_one_element(d))
        take(v, d, kOneElement);
    }
  }

  // Whether this axis was symbolic until its operand was resolved: as a broadcast, which the op expands to 1, or as an
  // iteration of the same extent, which is 1.
  bool is_inferred_as_one(ValueId v, DomainId d, size_t position) const {
    return is_stretched(g_, d) && given_[given_.tensor_of(v).logical[position]].iter_type == IterType::kSymbolic &&
           evaluate_size(g_, d, bindings_) == 1;
  }

  // Whether this axis, which an op stretches to 1, is to be one element.
  bool may_be_one_element(DomainId d) {
    has_ones_ = true;
    return ones_ == OneElement::kStretches && !concretize_domain_error(g_, d, kOneElement);
  }

  void resolve_axis(OpId id, ValueId v, DomainId d, size_t position) {
    const Op& op = g_[id];
    IterType type = IterType::kIteration;
    if (op.kind == OpKind::kInput) {
      if (known(evaluate_size(g_, d, bindings_), d) == 1) type = IterType::kBroadcast;
    } else if (stretches(op.kind)) {
      const DomainId from = operand_axis(op, position);
      const int64_t n = known(evaluate_size(g_, from, bindings_), from), m = known(evaluate_size(g_, d, bindings_), d);
      if (n != m && n != 1)
        throw Error(ErrorCode::kSizeMismatch,
                    "an axis of extent " + std::to_string(n) + " cannot stretch to " + std::to_string(m) +
                        "; only one of extent 1 can",
                    name(d));
      if (m == 1 && may_be_one_element(d)) return take(v, d, kOneElement);
      if (n != m || g_[from].iter_type == IterType::kBroadcast) type = IterType::kBroadcast;
    } else {
      throw Error(ErrorCode::kNotConcretized, "this axis is symbolic, and no axis that it follows from is", name(d));
    }
    if (type == IterType::kIteration && defects_.has(Defect::kSymbolicBroadcast)) type = IterType::kBroadcast;
    // Some ops stretch no broadcast, for example cat. For them the axis is an iteration that happens to have extent 1.
    if (type == IterType::kBroadcast && op.kind == OpKind::kInput && concretize_domain_error(g_, d, {type}) &&
        !concretize_domain_error(g_, d, {IterType::kIteration}))
      type = IterType::kIteration;
    take(v, d, {type});
  }

  // Makes the step, and carries it out.
  void take(ValueId v, DomainId d, Resolution to) {
    Step step;
    step.kind = StepKind::kConcretize;
    step.operands = {StepOperand::domain_of(g_[v].name, g_[d].name)};
    step.attrs.set_enum(AttrKey::kIterType, to.type);
    if (to.is_one_element) step.attrs.set(AttrKey::kWidth, int64_t{1});
    steps_.push_back(std::move(step));
    if (g_[g_[v].def].kind == OpKind::kInput) return concretize_domain(g_, d, to, defects_);
    resolve_domain(g_, d, to, {}, defects_);
    mark_stale(v);
  }

  DomainId operand_axis(const Op& op, size_t position) const {
    const auto axes = logical_without_reductions(g_, g_.tensor_of(op.operands[0]));
    const auto relation = axis_relation(g_, op, 0);
    for (size_t i = 0; i < axes.size(); ++i)
      if (relation[i].result == position) return axes[i];
    throw Error(ErrorCode::kInternal, "a new axis of an op that stretches is symbolic");
  }

  void resolve_reshape(OpId id, ValueId v) {
    const Tensor& t = g_.tensor_of(v);
    const auto from_axes = logical_without_reductions(g_, g_.tensor_of(g_[id].operands[0]));
    const auto sizes = [&](const std::vector<DomainId>& domains) {
      const auto forms = counted_sizes(g_, domains);
      std::vector<ScalarForm> result;
      for (size_t i = 0; i < domains.size(); ++i)
        if (!forms[i].equals(ScalarForm::of(1)))
          result.push_back(ScalarForm::of(known(evaluate_size(g_, domains[i], bindings_), domains[i])));
      return result;
    };
    const auto groups = reshape_groups(sizes(from_axes), sizes(t.logical));
    if (!groups)
      throw Error(ErrorCode::kSizeMismatch,
                  "reshape must keep the number of elements; give extents of the same product", "%" + g_[v].name);
    Step step;
    step.kind = StepKind::kConcretizeReshape;
    step.operands = {StepOperand::of(g_[v].name)};
    step.attrs.set(AttrKey::kOrder, *groups);
    steps_.push_back(std::move(step));
    regroup(g_, g_[v].tensor, *groups);
    mark_stale(v);
  }

  const Graph& given_;
  Graph g_;
  const Bindings& bindings_;
  const OneElement ones_;
  const Defects& defects_;
  bool has_ones_ = false;
  std::vector<Step> steps_;
  std::vector<CopiedAxis> copied_;  // before ops behind the inputs are inferred again
  std::vector<bool> stale_;         // for each value: whether it changed since its readers were inferred
};

template <class F>
std::optional<Error> error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

}  // namespace

bool has_symbolic_axes(const Graph& g) {
  return std::ranges::any_of(g.domains, [](const IterDomain& d) { return d.iter_type == IterType::kSymbolic; });
}

size_t symbolic_axes(const Graph& g, ValueId tensor) {
  return static_cast<size_t>(std::ranges::count_if(g.tensor_of(tensor).logical,
                                                   [&](DomainId d) { return g[d].iter_type == IterType::kSymbolic; }));
}

bool is_stretched(const Graph& g, DomainId axis) {
  const OpId def = g[g[g[axis].tensor].value].def;
  if (!def || !stretches(g[def].kind)) return false;
  if (g[axis].expanded) return true;
  const size_t position = position_in(g[g[axis].tensor].logical, axis), operand = position + 1;
  // −1 keeps the operand's axis.
  return g[axis].iter_type == IterType::kIteration && operand < g[def].operands.size() &&
         constant_integer(g, g[def].operands[operand]) != -1;
}

bool has_own_symbolic_axes(OpKind kind) {
  return kind == OpKind::kInput || kind == OpKind::kReshape || stretches(kind);
}

std::vector<Step> plan_concretize(const Graph& g, const Bindings& bindings, const Defects& defects) {
  if (!has_symbolic_axes(g)) return {};
  Planner planner(g, bindings, OneElement::kFixed, defects);
  std::optional<std::vector<Step>> steps;
  const auto refused = error_of([&] {
    steps = planner.run();
    planner.check();
  });
  if (refused && planner.has_ones()) {
    Planner other(g, bindings, OneElement::kStretches, defects);
    std::vector<Step> stretching;
    const auto error = error_of([&] {
      stretching = other.run();
      other.check();
    });
    if (!error) return stretching;
  }
  // Steps that were found are returned even if sizes do not fit: who carries them out checks that.
  if (!steps) throw *refused;
  return *std::move(steps);
}

void concretize_domain(Graph& g, DomainId domain, Resolution to, const Defects& defects) {
  const auto copied = copied_axes(g);
  resolve_domain(g, domain, to, copied, defects);
  infer_downstream(g, g[g[domain].tensor].value, copied, defects);
}

void concretize_reshape(Graph& g, TensorId tensor, std::span<const int64_t> groups, const Defects& defects) {
  const auto copied = copied_axes(g);
  regroup(g, tensor, groups);
  infer_downstream(g, g[tensor].value, copied, defects);
}

std::optional<Error> concretize_domain_error(const Graph& g, DomainId domain, Resolution to) {
  Graph copy = g;
  return error_of([&] { concretize_domain(copy, domain, to); });
}

std::optional<Error> concretize_reshape_error(const Graph& g, TensorId tensor, std::span<const int64_t> groups) {
  Graph copy = g;
  return error_of([&] { concretize_reshape(copy, tensor, groups); });
}

}  // namespace fusebox
