// rfactor: a reduction in two stages.
//
// %y = sum %x over r, r split into o, t; rfactor over [o]:
//   %p = sum %x over r    root [.., r], logical [.., o reduce, t iter]: the split became the op's own
//   %y = sum %p over t    t, which the split made from r, is now an axis of %p
// The domains that stay with %y keep their ids. %p gets copies of all domains, with their loops and parallel types.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/scalar/scalar.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

bool holds(std::span<const DomainId> list, DomainId d) { return position_in(list, d) < list.size(); }

// The logical domain after the transforms that lead to `listed` have become the op's own.
std::vector<DomainId> staged_domain(const Graph& g, const Tensor& t, std::span<const DomainId> listed) {
  std::vector<DomainId> result = t.logical;
  for (TransformId id : transforms_between(g, t.logical, listed)) {
    const Transform& tr = g[id];
    const auto at = std::find(result.begin(), result.end(), tr.inputs[0]);
    result.insert(at, tr.outputs.begin(), tr.outputs.end());
    std::erase_if(result, [&](DomainId d) { return holds(tr.inputs, d); });
  }
  return result;
}

class Stages {
 public:
  Stages(Graph& g, ValueId y, std::span<const DomainId> listed, std::vector<DomainId> staged, const Defects& defects)
      : g_(g), result_(y), tensor_(g[y].tensor), listed_(listed), staged_(std::move(staged)), defects_(defects) {}

  // Makes the tensor of the first stage.
  ValueId make_first(const std::string& name) {
    first_ = copy_tensor(g_, result_, name, &copied_);
    const std::vector<DomainId> had = domains_of(g_, g_[first_].tensor);
    Tensor& p = g_.tensor_of(first_);
    const std::vector<DomainId> root = root_of(p);
    p.logical.clear();
    for (DomainId d : staged_) p.logical.push_back(copied_.at(d));
    p.root = root == p.logical ? std::vector<DomainId>() : root;
    if (p.loop.empty()) {
      std::vector<DomainId> loop;
      for (DomainId d : loop_of(g_[tensor_])) loop.push_back(copied_.at(d));
      set_loop(g_, g_[first_].tensor, std::move(loop));
    }
    set_loop(g_, g_[first_].tensor, std::vector<DomainId>(loop_of(p)));
    p.allocation.clear();
    p.contiguity.clear();
    p.memory = MemoryType::kUnset;
    p.inline_at = DomainId();
    p.circular_depth = 0;
    // A reduction that does not lead to a listed domain is an iteration in the first stage.
    std::vector<DomainId> reduced;
    for (DomainId d : listed_) reduced.push_back(copied_.at(d));
    const auto leading = ancestors(g_, reduced);
    for (const auto& [from, to] : copied_)
      if (g_[to].iter_type == IterType::kReduction && !holds(leading, to)) g_[to].iter_type = IterType::kIteration;
    prune(g_, g_[first_].tensor, had);
    return first_;
  }

  // The positions of the axes that the op of the first stage reduces.
  std::vector<int64_t> first_axes() const {
    std::vector<int64_t> axes;
    const auto& root = root_of(g_.tensor_of(first_));
    for (size_t i = 0; i < root.size(); ++i)
      if (g_[root[i]].iter_type == IterType::kReduction) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }

  // Turns `y` into the result of the second stage. `before` is its op. Returns the positions of the axes that it
  // reduces.
  std::vector<int64_t> make_second(OpId before) {
    const std::vector<DomainId> had = domains_of(g_, tensor_);
    std::vector<DomainId> rest = staged_;
    std::erase_if(rest, [&](DomainId d) { return holds(listed_, d); });
    for (DomainId d : rest) {
      if (!g_[d].def) continue;
      const ValueId extent = emit_extent(g_, scalar::Place::before_op(g_, before), d);
      g_[d].extent = extent;
      if (g_[d].iter_type == IterType::kReduction && defects_.has(Defect::kRfactorAxisLost))
        g_[d].extent = constant_index(g_, 1);
      g_[d].def = TransformId();
    }
    std::vector<DomainId> loop = loop_of(g_[tensor_]);
    std::erase_if(loop, [&](DomainId d) { return holds(listed_, d); });
    g_[tensor_].root.clear();
    g_[tensor_].logical = rest;
    set_loop(g_, tensor_, std::move(loop));
    move_stand_ins(g_, copied_);
    prune(g_, tensor_, had);
    std::vector<int64_t> axes;
    for (size_t i = 0; i < rest.size(); ++i)
      if (g_[rest[i]].iter_type == IterType::kReduction) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }

 private:
  Graph& g_;
  ValueId result_;
  TensorId tensor_;
  std::span<const DomainId> listed_;
  std::vector<DomainId> staged_;
  const Defects& defects_;
  ValueId first_;
  DomainMap copied_;
};

// Whether the loops are made from the logical axes, and not from a root before them.
bool have_loops_of_axes(const Graph& g, const Tensor& t) {
  std::vector<DomainId> from = t.logical;
  for (DomainId d : t.loop_broadcasts)
    if (std::ranges::any_of(loop_of(t), [&](DomainId l) { return follows_from(g, l, d); })) from.push_back(d);
  return is_complete(g, from, loop_of(t));
}

void check_listed(const StepContext& c, TensorId t, std::span<const DomainId> listed) {
  const Tensor& tensor = c.g[t];
  if (listed.empty()) c.refuse("rfactor needs at least one loop to reduce first", c.place(t));
  for (DomainId d : listed) {
    if (c.g[d].tensor != t) c.refuse("rfactor takes loops of the tensor that it splits", c.place(d));
    if (c.g[d].iter_type != IterType::kReduction) c.refuse("this is no reduction; list reduction loops", c.place(d));
    c.require_free(d);
    for (DomainId leaf : ancestors(c.g, std::span(&d, 1)))
      if ((holds(tensor.logical, leaf) && c.g[leaf].iter_type != IterType::kReduction) ||
          holds(tensor.loop_broadcasts, leaf))
        c.refuse("this loop is partly made from an axis that is not reduced; merge reductions with reductions",
                 c.place(d));
    const auto leads = ancestors(c.g, std::span(&d, 1));
    for (DomainId a : leads)
      if (c.g[a].def && c.g[c.g[a].def].kind == TransformKind::kResize)
        c.refuse("this loop comes from a resized one, whose elements are not the tensor's; rfactor before resizing",
                 c.place(d));
    if (std::none_of(leads.begin(), leads.end(), [&](DomainId a) { return holds(tensor.logical, a); }))
      c.refuse("this loop does not follow from the tensor's axes, so it cannot become one", c.place(d));
  }
}

}  // namespace

void step_rfactor(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const ValueId y = c.g[t].value;
  const OpId def = c.g[y].def;
  const OpKind kind = c.g[def].kind;
  const auto listed = c.domains_from(1);
  if (!demands(kind, kReduction)) c.refuse("this tensor is not made by a reduction; rfactor splits one", c.place(t));
  check_listed(c, t, listed);
  if (!have_loops_of_axes(c.g, c.g[t]))
    c.refuse("the loops of this tensor are not made from its axes; rfactor before set_loop_domain", c.place(t));
  const auto staged = staged_domain(c.g, c.g[t], listed);
  bool any_left = false, all_listed = true;
  for (DomainId d : staged)
    if (c.g[d].iter_type == IterType::kReduction && !holds(listed, d)) any_left = true;
  for (DomainId d : listed) all_listed = all_listed && holds(staged, d);
  if (!all_listed)
    c.refuse("these loops cannot all become axes; list loops of which none follows from another", c.place(t));
  if (!any_left)
    c.refuse("rfactor must leave a reduction for the second stage; split one, and list a part of it", c.place(t));
  const size_t count = c.g[def].results.size();
  if (c.step.results.size() != count)
    c.refuse("the op has " + std::to_string(count) + " results; name as many for the first stage", c.place(t));
  const Dtype averaged = c.g[c.g[c.g[y].def].results[0]].dtype;
  if (kind == OpKind::kWelford && is_reduced_float(averaged))
    c.refuse("the averages of parts would be rounded to " + std::string(text(averaged)) +
                 "; cast the operand of welford to f32 first",
             c.place(t));
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;

  Op first = g[def];
  std::vector<ValueId> made;
  std::vector<int64_t> first_axes, second_axes;
  // Makes the first stages of all results before anything else, so that nothing takes their names.
  std::vector<Stages> stages;
  std::vector<std::vector<DomainId>> own_listed(count);
  for (size_t r = 0; r < count; ++r) {
    const ValueId result = g[def].results[r];
    const TensorId s = g[result].tensor;
    for (DomainId d : listed) own_listed[r].push_back(in_sibling(g, s, d));
    stages.emplace_back(g, result, own_listed[r], staged_domain(g, g[s], own_listed[r]), c.defects);
    made.push_back(stages.back().make_first(c.step.results[r]));
    first_axes = stages.back().first_axes();
  }
  for (Stages& s : stages) second_axes = s.make_second(def);

  first.results = made;
  first.attrs.set(AttrKey::kAxes, first_axes);
  Op& second = g[def];
  second.operands = made;
  second.attrs.set(AttrKey::kAxes, second_axes);
  if (kind == OpKind::kSum || kind == OpKind::kProd) {
    // The first stage keeps the precision that the sum is computed in.
    const Dtype dtype = g[y].dtype, computed = compute_dtype(dtype);
    if (computed != dtype) {
      g[made[0]].dtype = computed;
      first.attrs.set(AttrKey::kDtypeAttr, computed);
      second.attrs.set(AttrKey::kDtypeAttr, dtype);
    }
  }
  insert_before(g, def, std::move(first));
}

}  // namespace fusebox
