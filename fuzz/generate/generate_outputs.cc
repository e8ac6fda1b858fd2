// Outputs of a generated fusion: results, inputs, and values that overwrite inputs.
#include <algorithm>

#include "fuzz/base/error_form.h"
#include "fuzz/generate/constants.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/table/error.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox::fuzz {

bool FusionMaker::has_shape_of(ValueId input, ValueId value) {
  if (!g_.is_tensor(input) || g_[input].dtype != g_[value].dtype || extents_of(input) != extents_of(value))
    return false;
  const auto& axes = g_.tensor_of(input).logical;
  return std::none_of(axes.begin(), axes.end(), [&](DomainId d) { return bool(g_[d].expanded); });
}

// Axes are resolved in the order of all outputs. So a later output may show that what an earlier one stores over an input is
// expanded for these sizes, and is then taken back itself.
bool FusionMaker::add_output(ValueId value, ValueId alias) {
  const Mark before = mark();
  try {
    output(g_, value, alias);
    // A symbolic axis may be expanded for these sizes.
    if (Graph resolved = g_; stores_over_inputs_ || alias) plan_resolution(g_, sizes_, resolved);
  } catch (const Error& e) {
    if ((!stores_over_inputs_ && !alias) || row_of(e.code).outcome == Outcome::kInternal) throw;
    take_back(before);
    if (alias) add_output(value, {});
    return false;
  }
  if (!alias) return false;
  stores_over_inputs_ = true;
  std::erase(free_, alias);
  return true;
}

ValueId FusionMaker::target_of(ValueId value) {
  const Extents extents = extents_of(value);
  Shape shape;
  InputOptions layout;
  const auto axes = logical_without_reductions(g_, g_.tensor_of(value));
  for (size_t i = 0; i < extents.size(); ++i) {
    const bool is_broadcast = extents[i] == 1 && (g_[axes[i]].iter_type == IterType::kBroadcast || random_.one_in(2));
    shape.push_back(is_broadcast ? Scalar(1) : extent_scalar(extents[i], false));
    if (options_.layouts) layout.contiguity.push_back(random_.one_in(2) ? Contiguity::kFalse : Contiguity::kTrue);
  }
  if (options_.layouts && extents.size() > 1 && random_.one_in(2))
    layout.allocation_order = permutation(extents.size());
  const ValueId target = input(g_, "", g_[value].dtype, shape, layout);
  free_.push_back(target);
  return target;
}

// Inputs as outputs: by themselves, stored over themselves, and stored over one another.
void FusionMaker::add_inputs_as_outputs() {
  std::vector<ValueId> tensors;
  for (ValueId v : inputs(g_))
    if (g_.is_tensor(v)) tensors.push_back(v);
  if (tensors.empty()) return;
  const ValueId x = random_.pick(tensors);
  const auto is_free = [&](ValueId v) { return std::find(free_.begin(), free_.end(), v) != free_.end(); };
  switch (random_.below(4)) {
    case 0:
      add_output(x, {});
      return;
    case 1:
      add_output(x, options_.aliases && is_free(x) ? x : ValueId());
      return;
    default: {
      if (!options_.aliases) return;
      std::vector<ValueId> others;
      for (ValueId v : tensors)
        if (v != x && is_free(v) && has_shape_of(v, x)) others.push_back(v);
      const ValueId y = others.empty() || random_.one_in(4) ? target_of(x) : random_.pick(others);
      const bool is_taken = add_output(x, y);
      // Usually exchanges the two.
      if (is_taken && is_free(x) && !random_.one_in(4)) add_output(y, x);
    }
  }
}

void FusionMaker::add_scalar_output() {
  const Mark before = mark();
  try {
    const Dtype dtype = dtype_rows()[random_.below(dtype_rows().size())].dtype;
    if (is_storage_only(dtype)) return;
    const ValueId x = options_.symbolic && random_.one_in(4) ? input_scalar(g_, "", dtype)
                                                             : constant(g_, dtype, draw_constant(random_, dtype));
    output(g_, unary(g_, OpKind::kSet, x));
  } catch (const Error& e) {
    expect_refusal(e);
    take_back(before);
  }
}

void FusionMaker::add_outputs() {
  const auto readers = uses(g_);
  std::vector<ValueId> leaves, others;
  for (ValueId v : made_)
    if (g_[g_[v].def].kind != OpKind::kInput) (readers[v.index].empty() ? leaves : others).push_back(v);
  if (leaves.empty()) {
    if (made_.empty()) new_input(Dtype::kFloat, draw_extents());
    leaves.push_back(unary(g_, OpKind::kSet, made_.back()));
  }
  // The last leaf is always an output; some of the others may be dropped.
  std::reverse(leaves.begin(), leaves.end());
  if (leaves.size() > 6) leaves.resize(6);
  if (!others.empty() && random_.one_in(4)) leaves.push_back(random_.pick(others));
  free_ = inputs(g_);
  if (stored_) add_output(stored_, target_ ? target_ : target_of(stored_));
  if (random_.one_in(16)) add_inputs_as_outputs();
  const bool is_aimed = options_.focus.in_place.has_value();
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (i > 0 && random_.one_in(8)) continue;
    ValueId alias;
    if (options_.aliases && (is_aimed || random_.one_in(8))) {
      for (ValueId x : free_)
        if (has_shape_of(x, leaves[i])) alias = x;
      if (!alias || random_.one_in(3)) alias = target_of(leaves[i]);
    }
    add_output(leaves[i], alias);
  }
  if (random_.one_in(16)) add_inputs_as_outputs();
  if (random_.one_in(24)) add_scalar_output();
}

}  // namespace fusebox::fuzz
