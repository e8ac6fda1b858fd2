#include "ir/infer/inferred.h"

#include <algorithm>

#include "ir/infer/infer.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// Compares two tensors of two graphs whose scalars have the same ids. Ids of domains and transforms do not count.
class TensorComparison {
 public:
  TensorComparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool equal(const Tensor& s, const Tensor& t) {
    return equal(s.root, t.root) && equal(s.logical, t.logical) && equal(s.allocation, t.allocation) &&
           equal(s.loop, t.loop) && equal(s.loop_broadcasts, t.loop_broadcasts) && s.contiguity == t.contiguity &&
           equal_transforms(s, t) && s.memory == t.memory && s.devices == t.devices &&
           equal(s.inline_at, t.inline_at) && s.circular_depth == t.circular_depth;
  }

 private:
  template <class List>
  bool equal(const List& s, const List& t)
    requires requires { s.begin(); }
  {
    return std::equal(s.begin(), s.end(), t.begin(), t.end(), [&](DomainId x, DomainId y) { return equal(x, y); });
  }

  // Domains are compared by name, because names are unique in a tensor.
  bool equal(DomainId x, DomainId y) const {
    if (!x || !y) return x == y;
    const IterDomain &d = a_[x], &e = b_[y];
    return d.name == e.name && d.iter_type == e.iter_type && d.parallel == e.parallel && d.extent == e.extent &&
           d.expanded == e.expanded && static_cast<bool>(d.def) == static_cast<bool>(e.def) &&
           d.stands_for == e.stands_for;
  }

  bool equal_transforms(const Tensor& s, const Tensor& t) {
    return std::equal(s.transforms.begin(), s.transforms.end(), t.transforms.begin(), t.transforms.end(),
                      [&](TransformId x, TransformId y) {
                        const Transform &p = a_[x], &q = b_[y];
                        return p.kind == q.kind && equal(p.inputs, q.inputs) && equal(p.outputs, q.outputs) &&
                               p.factor == q.factor && p.right == q.right && p.inner_split == q.inner_split &&
                               p.swizzle == q.swizzle;
                      });
  }

  const Graph& a_;
  const Graph& b_;
};

}  // namespace

bool InferredTypes::is_inferred(OpId op) {
  // An op without tensors has no short form.
  const auto& results = g_[op].results;
  if (std::none_of(results.begin(), results.end(), [&](ValueId v) { return g_.is_tensor(v); })) return false;
  if (!copy_) copy_ = g_;
  Graph& copy = *copy_;
  // Resets the results as the parser has them before inference: without domains and without a dtype.
  for (ValueId v : results)
    if (g_.is_tensor(v)) {
      copy[v].dtype = Value{}.dtype;
      copy.tensor_of(v) = {};
      copy.tensor_of(v).value = v;
    }
  const size_t ops_before = copy.ops.size();
  if (infer_and_compare(op)) return true;
  // Inference made an extent for this op. The next ops must not see it.
  if (copy.ops.size() != ops_before) {
    copy_ = g_;
    return false;
  }
  // The next ops must see the tensors of the graph.
  for (ValueId v : results) {
    copy[v] = g_[v];
    if (g_.is_tensor(v)) copy[g_[v].tensor] = g_.tensor_of(v);
  }
  return false;
}

bool InferredTypes::infer_and_compare(OpId op) {
  Graph& copy = *copy_;
  const size_t ops_before = copy.ops.size();
  try {
    infer(copy, op);
  } catch (const Error&) {
    return false;
  }
  if (copy.ops.size() != ops_before || copy[op] != g_[op]) return false;
  for (ValueId v : g_[op].results) {
    const Value &was = g_[v], &is = copy[v];
    if (is.kind != was.kind || is.dtype != was.dtype || is.name != was.name) return false;
    if (was.kind == ValueKind::kTensor && !TensorComparison(g_, copy).equal(g_.tensor_of(v), copy.tensor_of(v)))
      return false;
  }
  return true;
}

}  // namespace fusebox
