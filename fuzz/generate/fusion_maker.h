// What generate_fusion.h is made with: a fusion that grows, its sizes, and draws of operands that fit. Not for use
// outside fuzz/.
//
// An attempt at an op that is refused takes back all that it appended: builders only append.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/generate/generate_fusion.h"
#include "ir/build/builder.h"

namespace fusebox::fuzz {

class FusionMaker {
 public:
  FusionMaker(RandomSource& random, const FusionOptions& options);
  GeneratedFusion run();

 private:
  using Extents = std::vector<int64_t>;
  struct Symbol {
    ValueId value;
    int64_t extent;
  };
  // What is made: an op that any would do for; one chosen beside what is there; an op of the graph again; two moves,
  // there and back; the op twice, along axes of one extent; a cast of a cast; a form that a rewrite looks for; a
  // function of numbers of a range.
  enum class Neighbour : uint8_t { kNone, kOp, kAgain, kThereAndBack, kAlongEqualAxes, kCasts, kForm, kArguments };
  struct Mark {
    size_t values, tensors, domains, transforms, ops, body, made, symbols, ranges;
  };

  // -- attempts
  Mark mark() const;
  void take_back(const Mark& m);
  bool attempt(OpKind kind);
  bool attempt(const std::function<std::vector<ValueId>()>& make);
  bool is_offered(OpKind kind) const { return options_.mix[static_cast<size_t>(kind)] > 0; }
  // The kind of an op to attempt beside one that is there, in place of the one drawn.
  OpKind begin_neighbour(OpKind kind);
  // Pairs of axes that have one extent, whatever its value.
  std::vector<std::pair<size_t, size_t>> equal_axes(ValueId tensor);
  // Whether it has an axis that only the inputs resolve.
  bool is_open(ValueId tensor) const;
  // Every result of the ops since the mark has a known, small shape.
  bool keeps_small(const Mark& m);

  // -- sizes and inputs
  Extents extents_of(ValueId tensor);
  int64_t extent_of(ValueId tensor, size_t axis) { return extents_of(tensor)[axis]; }
  Extents draw_extents();
  ValueId symbol(int64_t extent);
  Scalar extent_scalar(int64_t extent, bool broadcast_too);
  // An index of that value: a constant, an input, or computed of the sizes that are there.
  Scalar index_scalar(int64_t value);
  // The same of scalars near powers of two that 32 bits just hold, or do not.
  Scalar far_index(int64_t value);
  ValueId index_input(int64_t value);
  // The same of any ops on scalars of any dtypes (generate_sizes.cc).
  Scalar computed_index(int64_t value);
  ValueId drawn_scalar();
  ValueId any_scalar_op(ValueId x);
  ValueId moved_to(ValueId index, int64_t value);
  ValueId new_input(Dtype dtype, const Extents& extents, const std::vector<bool>& broadcast = {});
  // An input as large as a tensor, or broadcast along some of its axes.
  ValueId input_beside(ValueId x, Dtype dtype, bool may_broadcast);

  // -- operands
  Dtype dtype_for(OpKind kind);
  bool takes(OpKind kind, Dtype dtype);
  // A tensor of a dtype that the op takes and at least so many axes.
  ValueId operand(OpKind kind, size_t least_rank = 0);
  // What a pointwise op can read beside x.
  ValueId partner(OpKind kind, ValueId x);
  void add_mixed(OpKind kind, std::vector<ValueId>& operands, size_t count);
  ValueId over_its_operand(ValueId reduced);
  bool fits(ValueId x, ValueId y);
  // -- constants (generate_constants.cc); `beside`: the dtype of a tensor operand, whose range holds it
  ValueId scalar_constant(Dtype dtype);
  ValueId scalar_constant(Dtype dtype, Dtype beside);
  ValueId small_constant(Dtype dtype);
  // What leaves the other operand of some op as it is, mostly.
  ValueId neutral_constant(Dtype dtype);
  ValueId scalar_operand(Dtype dtype, Dtype beside);
  // Ops of constants alone, or nearly: what a program has where nobody folded them.
  ValueId folded_scalar(Dtype dtype, Dtype beside);
  ValueId condition(ValueId x);

  // -- ops: the results, nothing where there is no such op here
  std::vector<ValueId> make(OpKind kind);
  std::vector<ValueId> op(OpKind kind);
  std::vector<ValueId> pointwise_op(OpKind kind);
  std::vector<ValueId> reduction(OpKind kind);
  std::vector<ValueId> move(OpKind kind);
  std::vector<ValueId> factory(OpKind kind);
  void begin_long_sum();
  std::vector<ValueId> indexed(OpKind kind);
  ValueId reshaped(ValueId x);
  ValueId sliced(ValueId x);
  // A bound of an axis: clamped it is the value.
  Scalar slice_bound(int64_t value, int64_t extent);
  ValueId stretched(ValueId x);
  ValueId there_and_back(ValueId x);
  std::vector<ValueId> cast_chain(const CastFocus& casts);
  // An op again: as it is, or with two axes of one extent exchanged, where its operand has such.
  std::vector<ValueId> make_again(const Op& op, bool exchanges);
  std::vector<ValueId> along_equal_axes(OpKind kind);
  // -- what a case is aimed at (generate_forms.cc)
  void begin_focus(GeneratedFusion& result);
  bool aim(GeneratedFusion& result, Neighbour neighbour, OpKind kind);
  std::vector<ValueId> form_of(const FormFocus& form);
  ValueId neutral_form(OpKind kind);
  ValueId still_move(OpKind kind);
  ValueId moves_back(OpKind second, OpKind first);
  ValueId derived(OpKind kind, ValueId x);
  std::vector<ValueId> function_of(const ArgumentRange& range);
  void begin_far_swizzle(const SwizzleFocus& swizzle);
  void spread_over_devices();
  // Rewrites let outputs stand: what they may replace is read by one more op, half of the time.
  std::vector<ValueId> with_reader(std::vector<ValueId> results);
  ValueId joined(ValueId x);
  Axes some_axes(size_t rank);
  Axes permutation(size_t rank);
  size_t axis_of(ValueId x) { return random_.below(rank_of(g_, x)); }
  // An axis as programs write it: from the end now and then.
  int64_t written(size_t axis, size_t rank) {
    return static_cast<int64_t>(axis) - (random_.one_in(5) ? static_cast<int64_t>(rank) : 0);
  }

  // -- what a case is aimed at (generate_situations.cc)
  // Whether more ops may follow.
  bool begin_situation(GeneratedFusion& result);
  std::vector<ValueId> beside_scalars(const ScalarFocus& focus);
  std::vector<ValueId> of_equal_scalars(const OpFocus& focus);
  std::vector<ValueId> of_near_constants();
  ValueId near_constant(Dtype dtype, ConstantBits value);
  std::vector<ValueId> of_computed_size();
  std::vector<ValueId> reduced_by_blocks(const BlockFocus& block);
  std::vector<ValueId> read_by_others();
  std::vector<ValueId> chain_over_segments(size_t segments);

  // -- outputs (generate_outputs.cc)
  void add_outputs();
  // Whether it was taken; an alias that concretization refuses is left out.
  bool add_output(ValueId value, ValueId alias);
  void add_inputs_as_outputs();
  bool has_shape_of(ValueId input, ValueId value);
  // A new input to overwrite with a value, of its shape and in a layout of its own.
  ValueId target_of(ValueId value);
  std::vector<ValueId> free_;  // inputs that no output overwrites

  RandomSource& random_;
  const FusionOptions& options_;
  Graph g_;
  Bindings sizes_;
  std::vector<ValueId> made_;  // tensors that ops may read
  // Of the op attempted, where they are chosen: its first operand, and what stands beside it.
  enum class Partner : uint8_t { kAny, kConstant, kReduction };
  ValueId first_operand_;
  Partner partner_ = Partner::kAny;
  std::optional<OpKind> under_;  // an op of one operand between the first operand and the op
  ValueId reduction_;
  Neighbour neighbour_ = Neighbour::kNone;
  OpId twin_;  // the op to make again
  CastFocus casts_;
  FormFocus form_;
  ArgumentRange arguments_;
  std::optional<Dtype> wanted_;  // of the op attempted
  bool folds_ = false;
  std::vector<Symbol> symbols_;
  std::vector<InputRange> ranges_;
  bool has_far_sum_ = false;
};

}  // namespace fusebox::fuzz
