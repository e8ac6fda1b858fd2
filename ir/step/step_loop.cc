// Steps on the loops of one tensor. They change the loops of all results of its op.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

// Applies a transform to all results of the op that makes `t`. The inputs are domains of `t`. The outputs take the
// places of the inputs if they are as many, else the place of the first input.
void transform_all(const StepContext& c, TensorId t, const Transform& transform) {
  Graph& g = *c.target;
  c.begin();
  const auto all = siblings(g, t);
  // Finds all inputs before the first change: while only some results have changed, their loops do not correspond.
  std::vector<Transform> transforms;
  for (TensorId s : all) {
    transforms.push_back(transform);
    for (DomainId& d : transforms.back().inputs) d = in_sibling(g, s, d);
  }
  for (size_t k = 0; k < all.size(); ++k) {
    const TensorId s = all[k];
    const Transform& own = transforms[k];
    const TransformId id = add_transform(g, s, own, c.step.results);
    std::vector<DomainId> loop = loop_of(g[s]);
    const auto outputs = g[id].outputs;
    if (outputs.size() == own.inputs.size()) {
      for (size_t i = 0; i < outputs.size(); ++i) loop[position_in(loop, own.inputs[i])] = outputs[i];
    } else {
      const auto at = loop.begin() + static_cast<std::ptrdiff_t>(position_in(loop, own.inputs[0]));
      loop.insert(loop.erase(at), outputs.begin(), outputs.end());
      for (size_t i = 1; i < own.inputs.size(); ++i) std::erase(loop, own.inputs[i]);
    }
    set_loop(g, s, std::move(loop));
  }
}

// Throws unless these are two loops of one tensor.
void require_pair(const StepContext& c, DomainId a, DomainId b) {
  if (c.g[a].tensor != c.g[b].tensor) c.refuse("both loops must be of one tensor", c.place(b));
  if (a == b) c.refuse("name two different loops", c.place(b));
}

void require_transformable(const StepContext& c, const Transform& t, DomainId d) {
  // The op's other results are transformed too. One of them may have a broadcast where this one has an axis.
  for (TensorId s : siblings(c.g, c.g[d].tensor)) {
    if (s == c.g[d].tensor) continue;
    Transform own = t;
    for (DomainId& input : own.inputs) input = in_sibling(c.g, s, input);
    if (!can_transform(c.g, own))
      c.refuse(
          "%" + c.g[c.g[s].value].name + ", which the same op makes, has a domain there that cannot be transformed so",
          c.place(d));
  }
  if (can_transform(c.g, t)) return;
  if (c.g[d].iter_type == IterType::kSymbolic) c.refuse("this domain is symbolic; concretize it first", c.place(d));
  if (t.inputs.size() == 2 && c.g[t.inputs[0]].iter_type != c.g[t.inputs[1]].iter_type)
    c.refuse("one of these loops is " + std::string(text(c.g[t.inputs[0]].iter_type)) + ", the other " +
                 std::string(text(c.g[t.inputs[1]].iter_type)) + "; transform loops of one kind",
             c.place(d));
  c.refuse("a loop of kind " + std::string(text(c.g[d].iter_type)) + " cannot be transformed so", c.place(d));
}

}  // namespace

void step_split(StepContext& c) {
  const DomainId d = c.serial_loop(0);
  const TensorId t = c.g[d].tensor;
  c.check_scalar(1, t, 1);
  Transform split{.kind = TransformKind::kSplit, .inputs = {d}, .outputs = {}, .factor = {}, .right = {}};
  split.inner_split = !c.step.attrs.flag(AttrKey::kOuter);
  require_transformable(c, split, d);
  c.require_free_names(t);
  if (!c.target) return;
  split.factor = c.scalar(1);
  transform_all(c, t, split);
}

void step_merge(StepContext& c) {
  const DomainId outer = c.serial_loop(0), inner = c.serial_loop(1);
  require_pair(c, outer, inner);
  const Transform merge{
      .kind = TransformKind::kMerge, .inputs = {outer, inner}, .outputs = {}, .factor = {}, .right = {}};
  require_transformable(c, merge, inner);
  c.require_free_names(c.g[outer].tensor);
  if (c.target) transform_all(c, c.g[outer].tensor, merge);
}

void step_swizzle(StepContext& c) {
  const DomainId first = c.serial_loop(0), second = c.serial_loop(1);
  require_pair(c, first, second);
  Transform swizzle{
      .kind = TransformKind::kSwizzle, .inputs = {first, second}, .outputs = {}, .factor = {}, .right = {}};
  swizzle.swizzle = c.step.attrs.enumerator(AttrKey::kSwizzle, SwizzleType::kXor);
  require_transformable(c, swizzle, second);
  c.require_free_names(c.g[first].tensor);
  if (c.target) transform_all(c, c.g[first].tensor, swizzle);
}

void step_resize(StepContext& c) {
  constexpr int64_t kLeast = -(int64_t{1} << 31);
  const DomainId d = c.serial_loop(0);
  const TensorId t = c.g[d].tensor;
  c.check_scalar(1, t, kLeast);
  c.check_scalar(2, t, kLeast);
  Transform resize{.kind = TransformKind::kResize, .inputs = {d}, .outputs = {}, .factor = {}, .right = {}};
  require_transformable(c, resize, d);
  c.require_free_names(t);
  if (!c.target) return;
  resize.factor = c.scalar(1);
  resize.right = c.scalar(2);
  transform_all(c, t, resize);
}

void step_reorder(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const auto listed = c.domains_from(1);
  const auto& loop = loop_of(c.g[t]);
  std::vector<size_t> places;
  for (DomainId d : listed) {
    if (c.g[d].tensor != t) c.refuse("reorder takes loops of one tensor", c.place(d));
    c.require_free(d);
    places.push_back(position_in(loop, d));
  }
  if (!c.target) return;
  c.begin();
  std::sort(places.begin(), places.end());
  Graph& g = *c.target;
  const std::vector<DomainId> old = loop_of(g[t]);
  for (TensorId s : siblings(g, t)) {
    const std::vector<DomainId> own = loop_of(g[s]);
    std::vector<DomainId> reordered = own;
    for (size_t i = 0; i < listed.size(); ++i) {
      const size_t from = position_in(old, listed[i]);
      if (c.defects.has(Defect::kReorderInverse))
        reordered[from] = own[places[i]];
      else
        reordered[places[i]] = own[from];
    }
    set_loop(g, s, std::move(reordered));
  }
}

void step_parallelize(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const DomainId d = c.domain(0);
  const auto& loop = loop_of(c.g[t]);
  if (position_in(loop, d) == loop.size())
    c.refuse("this is not one of the tensor's loops; parallelize a loop that no other step has used up", c.place(d));
  if (!c.step.attrs.has(AttrKey::kParallel)) c.refuse("parallelize needs a parallel type, such as block.x", c.place(d));
  const ParallelType p = c.step.attrs.enumerator<ParallelType>(AttrKey::kParallel);
  const std::string name(text(p));
  const bool is_mesh = p >= ParallelType::kMeshX && p <= ParallelType::kMeshZ;
  if (is_mesh && c.g[t].devices.empty())
    c.refuse("the tensor is on no device mesh, so no loop can be " + name + "; use set_mesh first", c.place(d),
             ErrorCode::kIllegalParallel);
  if (p == ParallelType::kVectorize && c.g[d].iter_type == IterType::kReduction)
    c.refuse("a reduction cannot be vectorized; use rfactor, or unroll it", c.place(d), ErrorCode::kIllegalParallel);
  if (is_thread(p) || is_mesh)
    for (DomainId other : loop)
      if (other != d && c.g[other].parallel == p)
        c.refuse("another loop, " + c.place(other) + ", is " + name + " already; merge the two or choose another type",
                 c.place(d), ErrorCode::kIllegalParallel);
  if (!c.target) return;
  c.begin();
  for (TensorId s : siblings(*c.target, t)) (*c.target)[in_sibling(*c.target, s, d)].parallel = p;
}

void step_loop_broadcast(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const TensorId other = c.tensor(1);
  const DomainId like = c.domain(1);
  if (std::ranges::count(siblings(c.g, t), other) > 0)
    c.refuse("a loop broadcast stands for a domain of another op's tensor", c.place(like));
  if (c.g[like].def)
    c.refuse("a loop broadcast stands for an axis, not for what transforms made of it; split or merge it likewise",
             c.place(like));
  const DomainId original = c.g[like].stands_for ? c.g[like].stands_for : like;
  if (std::ranges::count(siblings(c.g, t), c.g[original].tensor) > 0)
    c.refuse("this domain stands for one of the tensor's own already", c.place(like));
  for (DomainId d : c.g[t].loop_broadcasts)
    if (c.g[d].stands_for == original)
      c.refuse("a loop broadcast of the tensor stands for this domain already", c.place(d));
  if (fixed_loops(c.g, t) > 0) c.refuse("inlining has fixed the outermost loop; add loops before inlining", c.place(t));
  c.require_free_names(t);
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  for (TensorId s : siblings(g, t)) {
    std::vector<DomainId> loop = loop_of(g[s]);
    loop.insert(loop.begin(), add_loop_broadcast(g, s, like, c.step.results[0]));
    set_loop(g, s, std::move(loop));
  }
}

}  // namespace fusebox
