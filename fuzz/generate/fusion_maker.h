// The growing fusion behind generate_fusion.h: its graph, its sizes, and draws of operands that fit. Only for use
// inside fuzz/.
//
// A refused op takes back everything that its attempt appended. Builders only append, so that is a truncation.
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
  // How an op relates to the ops that exist: not at all; any op next to an existing one; the same op again; two moves,
  // there and back; one op along two axes of equal extent; a cast of a cast; a form that a rewrite looks for; a
  // function with arguments in a range.
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
  // Chooses how the next op relates to existing ones. Returns the op to attempt, which may replace `kind`.
  OpKind begin_neighbour(OpKind kind);
  // Pairs of axes with the same extent, whatever its value.
  std::vector<std::pair<size_t, size_t>> equal_axes(ValueId tensor);
  // True if the tensor has an axis that only the inputs resolve.
  bool is_open(ValueId tensor) const;
  // True if every result since the mark has a known, small shape.
  bool keeps_small(const Mark& m);

  // -- sizes and inputs
  Extents extents_of(ValueId tensor);
  int64_t extent_of(ValueId tensor, size_t axis) { return extents_of(tensor)[axis]; }
  Extents draw_extents();
  ValueId symbol(int64_t extent);
  Scalar extent_scalar(int64_t extent, bool broadcast_too);
  // An index scalar with that value: a constant, an input, or computed from existing sizes.
  Scalar index_scalar(int64_t value);
  // The same, from scalars near powers of two at the limits of 32 bits.
  Scalar far_index(int64_t value);
  Scalar given_extent(int64_t extent);
  ValueId index_input(int64_t value);
  // The same, from any ops on scalars of any dtype (generate_sizes.cc).
  Scalar computed_index(int64_t value);
  ValueId drawn_scalar();
  ValueId drawn_scalar_of(Dtype dtype);
  ValueId any_scalar_op(ValueId x);
  ValueId moved_to(ValueId index, int64_t value);
  ValueId new_input(Dtype dtype, const Extents& extents, const std::vector<bool>& broadcast = {});
  // An input with the tensor's extents; some axes may be broadcast.
  ValueId input_beside(ValueId x, Dtype dtype, bool may_broadcast);

  // -- operands
  Dtype dtype_for(OpKind kind);
  bool takes(OpKind kind, Dtype dtype);
  // A tensor whose dtype the op accepts, with at least `least_rank` axes.
  ValueId operand(OpKind kind, size_t least_rank = 0);
  // A second operand for a pointwise op of x.
  ValueId partner(OpKind kind, ValueId x);
  void add_mixed(OpKind kind, std::vector<ValueId>& operands, size_t count);
  ValueId over_its_operand(ValueId reduced);
  bool fits(ValueId x, ValueId y);
  // -- constants (generate_constants.cc); a constant lies in the range of `beside`, the dtype of a tensor operand
  ValueId scalar_constant(Dtype dtype);
  ValueId scalar_constant(Dtype dtype, Dtype beside);
  ValueId small_constant(Dtype dtype);
  // Usually a constant that leaves the other operand of some op unchanged.
  ValueId neutral_constant(Dtype dtype);
  ValueId scalar_operand(Dtype dtype, Dtype beside);
  // Ops on constants only, or nearly, as in a program before folding.
  ValueId folded_scalar(Dtype dtype, Dtype beside);
  ValueId condition(ValueId x);

  // -- ops: each returns the results, or nothing if the op cannot be made here
  std::vector<ValueId> make(OpKind kind);
  std::vector<ValueId> op(OpKind kind);
  std::vector<ValueId> pointwise_op(OpKind kind);
  std::vector<ValueId> reduction(OpKind kind);
  std::vector<ValueId> factory(OpKind kind);
  // -- ops that ATen alone computes (generate_library.cc)
  std::vector<ValueId> library(OpKind kind);
  std::vector<ValueId> drawn_projection(OpKind kind);
  ValueId matrix_product();
  ValueId linear_layer();
  ValueId grouped_product();
  std::vector<ValueId> along_axis(OpKind kind);
  std::vector<ValueId> attention(OpKind kind);
  std::vector<ValueId> added_rows();
  std::vector<ValueId> added_elements();
  ValueId scaled_product();
  ValueId random_word();
  void begin_long_sum();
  // -- fusions as models have them (generate_model.cc); returns whether one was made
  bool begin_model(GeneratedFusion& result);
  std::vector<ValueId> model_part(ValueId x);
  // -- products with what follows them (generate_projection.cc)
  std::vector<ValueId> projection(ValueId x, bool is_state);
  ValueId written_gelu(ValueId x, bool by_erf);
  ValueId model_vector(ValueId state, bool is_row);
  ValueId model_tensor(ValueId state);
  std::vector<ValueId> indexed(OpKind kind);
  // -- ops that move elements (generate_moves.cc)
  std::vector<ValueId> move(OpKind kind);
  ValueId reshaped(ValueId x);
  ValueId sliced(ValueId x);
  // A slice bound that gives this value once it is clamped.
  Scalar slice_bound(int64_t value, int64_t extent);
  ValueId stretched(ValueId x);
  ValueId stretched_twice(ValueId x, ValueId y, const Extents& extents);
  ValueId there_and_back(ValueId x);
  ValueId joined(ValueId x);
  // -- relations to ops that exist
  std::vector<ValueId> cast_chain(const CastFocus& casts);
  // Repeats the op. With `exchanges`, exchanges two axes of equal extent if its operand has such.
  std::vector<ValueId> make_again(const Op& op, bool exchanges);
  std::vector<ValueId> along_equal_axes(OpKind kind);
  // -- focus (generate_forms.cc)
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
  // Adds a reader of the results, half of the time, because rewrites never replace an output.
  std::vector<ValueId> with_reader(std::vector<ValueId> results);
  Axes some_axes(size_t rank);
  Axes permutation(size_t rank);
  size_t axis_of(ValueId x) { return random_.below(rank_of(g_, x)); }
  // An axis number as programs write it, sometimes negative.
  int64_t written(size_t axis, size_t rank) {
    return static_cast<int64_t>(axis) - (random_.one_in(5) ? static_cast<int64_t>(rank) : 0);
  }

  // -- situations (generate_situations.cc)
  // Returns whether more ops may follow.
  bool begin_situation(GeneratedFusion& result);
  std::vector<ValueId> beside_scalars(const ScalarFocus& focus);
  std::vector<ValueId> of_equal_scalars(const OpFocus& focus);
  std::vector<ValueId> of_near_constants();
  ValueId near_constant(Dtype dtype, ConstantBits value);
  std::vector<ValueId> of_computed_size();
  std::vector<ValueId> reduced_by_blocks(const BlockFocus& block);
  std::vector<ValueId> read_by_others();
  std::vector<ValueId> chain_over_segments(size_t segments);

  // -- rare programs (generate_rare.cc); returns whether more ops may follow
  bool begin_rare(RareFocus rare, GeneratedFusion& result);
  std::vector<ValueId> rare_program(RareFocus rare);
  std::vector<ValueId> of_wrapping_constants();
  ValueId wrapping_scalar(Dtype dtype);
  std::vector<ValueId> times_zero();
  std::vector<ValueId> two_random_ops();
  std::vector<ValueId> added_product();
  std::vector<ValueId> rows_with_gaps();
  std::vector<ValueId> library_op();
  std::vector<ValueId> gathered_op();
  std::vector<ValueId> two_scopes();
  std::vector<ValueId> two_cluster_sums();
  std::vector<ValueId> stretched_sum();
  std::vector<ValueId> behind_columns(ValueId x);
  std::vector<ValueId> scaled_parts(ValueId x);
  std::vector<ValueId> moments_of_few();
  std::vector<ValueId> stored_over_segments();
  // -- more of these (generate_readers.cc)
  std::vector<ValueId> stored_over_gathered();
  std::vector<ValueId> two_widths();
  std::vector<ValueId> converted_twice();
  std::vector<ValueId> rounded_result();
  std::vector<ValueId> resized_alike();
  std::vector<ValueId> later_result();
  std::vector<ValueId> layout_of_one();
  std::vector<ValueId> from_the_lesser();
  std::vector<ValueId> sizes_found_equal();
  ValueId moved_by_equal_sizes(ValueId x);
  // The extent of an axis, usually in a form that only a rewrite or the inputs show to be equal.
  ValueId equal_form(ValueId x, size_t axis);

  // -- outputs (generate_outputs.cc)
  void add_outputs();
  // A scalar as an output: a constant or an input.
  void add_scalar_output();
  // Adds the output; without the alias, or not at all, if concretization refuses it so. Returns whether it overwrites the alias.
  bool add_output(ValueId value, ValueId alias);
  void add_inputs_as_outputs();
  bool has_shape_of(ValueId input, ValueId value);
  // A new input to be overwritten by the value: the same shape, its own layout.
  ValueId target_of(ValueId value);
  std::vector<ValueId> free_;        // inputs that no output overwrites
  bool stores_over_inputs_ = false;  // whether an output overwrites an input

  RandomSource& random_;
  const FusionOptions& options_;
  Graph g_;
  Bindings sizes_;
  std::vector<ValueId> made_;  // tensors that ops may read
  // Choices for the op being attempted: its first operand, and the kind of its other one.
  enum class Partner : uint8_t { kAny, kConstant, kReduction };
  ValueId first_operand_;
  Partner partner_ = Partner::kAny;
  std::optional<OpKind> under_;  // a unary op to put between the first operand and the op
  ValueId reduction_;
  Neighbour neighbour_ = Neighbour::kNone;
  OpId twin_;  // the op to repeat
  CastFocus casts_;
  FormFocus form_;
  ArgumentRange arguments_;
  std::optional<Dtype> wanted_;  // the dtype of the op being attempted
  bool folds_ = false;
  std::vector<Symbol> symbols_;
  std::vector<InputRange> ranges_;
  bool has_far_sum_ = false;
  ValueId stored_;  // a result with readers that overwrites an input
  ValueId target_;  // that input; none: a new one
};

}  // namespace fusebox::fuzz
