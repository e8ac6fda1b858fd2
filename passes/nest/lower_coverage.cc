// Checks that a tensor's loops reach all of its elements. Splits, merges and swizzles keep every element; a resize may
// leave some out.
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/nest/coverage.h"

namespace fusebox {
namespace {

// A stage of a reduction keeps a part of the axis that it splits, so its loops must come from the parts. A loop that is
// made from both a reduced axis and a kept one would have one accumulator for all elements.
void check_stages(const Graph& g, OpId op) {
  const ValueId v = g[op].results[0];
  const Tensor& t = g.tensor_of(v);
  if (!demands(g[op].kind, kReduction) || t.root.empty()) return;
  // Each domain is looked at once: a swizzle leads to its inputs from either output.
  std::set<DomainId> seen;
  const auto comes_from_logical = [&](auto&& self, DomainId d) -> bool {
    if (!seen.insert(d).second) return true;
    if (std::find(t.logical.begin(), t.logical.end(), d) != t.logical.end()) return true;
    if (!g[d].def) return std::find(t.root.begin(), t.root.end(), d) == t.root.end();
    const auto& from = g[g[d].def].inputs;
    return std::all_of(from.begin(), from.end(), [&](DomainId x) { return self(self, x); });
  };
  for (DomainId d : loop_of(t))
    if (!comes_from_logical(comes_from_logical, d))
      throw Error(ErrorCode::kIllegalReduction,
                  "this loop is not made from the axes that the first stage of the reduction gives; loop over those",
                  "%" + g[v].name + "." + g[d].name);
}

bool holds(const std::vector<DomainId>& list, DomainId d) { return std::ranges::count(list, d) > 0; }

// Whether the resize may cut, if sign is 1, or may expand, if sign is −1.
bool may_be_beyond(const Graph& g, const Transform& resize, int64_t sign) {
  return std::ranges::any_of(std::array{resize.factor, resize.right}, [&](ValueId by) {
    const auto constant = constant_integer(g, by);
    return !constant || *constant * sign < 0;
  });
}

std::vector<TransformId> resizes_of(const Graph& g, const Tensor& t) {
  std::vector<TransformId> result;
  for (TransformId id : t.transforms)
    if (g[id].kind == TransformKind::kResize) result.push_back(id);
  return result;
}

// A layout made from a cut domain has no place for elements that other loops make.
void refuse_cut_layout(const Graph& g, ValueId v) {
  const Tensor& t = g.tensor_of(v);
  const std::vector<TransformId> resizes = resizes_of(g, t);
  if (resizes.empty()) return;
  const auto of_op = op_transforms(g, t);
  const auto laid_out = ancestors(g, t.allocation), looped = ancestors(g, loop_of(t));
  for (TransformId id : resizes) {
    const DomainId cut = g[id].outputs[0];
    if (std::ranges::count(of_op, id) > 0 || !holds(laid_out, cut) || holds(looped, cut)) continue;
    if (may_be_beyond(g, g[id], 1))
      throw Error(ErrorCode::kIllegalAllocation,
                  "a resize may cut this layout short of the tensor's elements; lay the tensor out without it",
                  "%" + g[v].name + "." + g[cut].name);
  }
}

}  // namespace

void refuse_cut_loop(const Graph& g, CutLoop cut) {
  const ValueId v = g[cut.op].results[0];
  throw Error(ErrorCode::kIllegalInline,
              "a resize may cut this loop short of the tensor's elements; inline the tensor at the loop, or leave the "
              "resize out",
              "%" + g[v].name + "." + g[loop_of(g.tensor_of(v))[cut.position]].name);
}

std::vector<CutLoop> cut_loops(const Graph& g, const NestPlan& plan) {
  std::vector<CutLoop> result;
  std::set<ValueId> given_out;
  for (const OutputRef& out : outputs(g)) given_out.insert(out.value);
  for (const Nest& nest : plan.nests) {
    check_stages(g, nest.op);
    const auto& results = g[nest.op].results;
    // A result in global memory is laid out by its own allocation, any other result by that of the first.
    for (ValueId v : results)
      if (v == results[0] || g.tensor_of(v).memory == MemoryType::kGlobal || given_out.contains(v))
        refuse_cut_layout(g, v);
    const Tensor& t = g.tensor_of(results[0]);
    const std::vector<TransformId> resizes = resizes_of(g, t);
    if (resizes.empty()) continue;
    const auto& loop = loop_of(t);
    const auto of_op = op_transforms(g, t);
    std::vector<std::vector<DomainId>> made_from;  // by loop
    for (DomainId d : loop) made_from.push_back(ancestors(g, std::span(&d, 1)));
    const auto is_looped = [&](DomainId d) {
      return std::ranges::any_of(made_from, [&](const auto& list) { return holds(list, d); });
    };
    const bool is_given_out =
        std::any_of(results.begin(), results.end(), [&](ValueId v) { return given_out.contains(v); });
    for (TransformId id : resizes) {
      const Transform& resize = g[id];
      // Loops made from a resize's output have too few points if the resize cut. For the op's own resize the elements
      // are those of its output, so loops made from its input have too few points if it expanded.
      const bool is_ops = std::ranges::count(of_op, id) > 0;
      const DomainId looped = is_ops ? resize.inputs[0] : resize.outputs[0];
      if (is_ops == is_looped(resize.outputs[0]) || !is_looped(looped)) continue;
      if (!may_be_beyond(g, resize, is_ops ? -1 : 1)) continue;
      // A reader in the same iteration does not miss the elements that no loop point makes.
      for (size_t i = 0; i < loop.size(); ++i) {
        if (!holds(made_from[i], looped)) continue;
        if (is_given_out) refuse_cut_loop(g, {nest.op, i, looped});
        if (i >= nest.shared) result.push_back({nest.op, i, looped});
      }
    }
  }
  return result;
}

void check_coverage(const Graph& g, const NestPlan& plan) { (void)cut_loops(g, plan); }

}  // namespace fusebox
