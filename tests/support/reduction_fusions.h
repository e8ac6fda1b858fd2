// Random fusions with reductions over some axes of one iteration space, and inputs for them: pointwise ops before and
// after, reductions one behind another, results that meet the reduced axes again, in several layouts and at extents
// where schedules change.
//
//   ReductionCase c = make_reduction_case(7);     // the same seed gives the same case on every machine
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/build/builder.h"
#include "ir/module/module.h"
#include "tests/support/random_module.h"

namespace fusebox::testing {

struct ReductionCase {
  Module module;            // one fusion, and its inputs
  bool feeds_back = false;  // a reduction's result meets the reduced axes again
  // Whole numbers, so small that sums are exact, and no op that rounds: every order of a sum gives the same bits.
  bool is_exact = false;
};

class ReductionMaker {
 public:
  explicit ReductionMaker(uint64_t seed) : random_(seed * 2 + 1), g_(fusion("reductions")) {}

  ReductionCase run() {
    case_.is_exact = random_.one_in(2);
    draw_axes();
    const std::vector<Dtype> dtypes = {Dtype::kFloat, Dtype::kFloat, Dtype::kBfloat16, Dtype::kHalf, Dtype::kInt32};
    dtype_ = random_.pick(dtypes);
    ValueId x = computed(full_input("x", dtype_));
    if (random_.one_in(2)) x = binary(g_, draw_binary(), x, computed(draw_partner()));
    if (random_.one_in(2)) x = unary(g_, draw_unary(), x);
    if (random_.one_in(6)) output(g_, x);
    const size_t stages = 1 + random_.below(2);
    case_.feeds_back = random_.one_in(2);
    for (size_t i = 0; i < stages; ++i) {
      ValueId r = reduced(x);
      if (random_.one_in(3)) r = unary(g_, draw_unary(), r);
      if (random_.one_in(3)) output(g_, r);
      reductions_.push_back(r);
      if (!case_.feeds_back) continue;
      x = binary(g_, draw_binary(), x, r);
      if (random_.one_in(4)) x = binary(g_, draw_binary(), x, computed(draw_partner()));
    }
    finish(x);
    case_.module.graphs = {compact(g_)};
    specs_.graph = "reductions";
    specs_.where = "host";
    case_.module.input_specs = {specs_};
    return std::move(case_);
  }

 private:
  void draw_axes() {
    const std::vector<int64_t> long_ones = {0,   1,   2,   3,   8,   16,  31,  32,   33,  64,
                                            100, 127, 128, 129, 256, 264, 520, 1031, 2048};
    const std::vector<int64_t> short_ones = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 33};
    const size_t rank = 1 + random_.below(3);
    const size_t longest = random_.one_in(4) ? random_.below(rank) : rank - 1;
    for (size_t i = 0; i < rank; ++i) {
      int64_t extent = random_.pick(i == longest ? long_ones : short_ones);
      // Empty tensors hide everything else.
      if (extent == 0 && !random_.one_in(8)) extent = 5;
      extents_.push_back(extent);
      // A constant extent of 1 makes a broadcast axis.
      shape_.push_back(random_.one_in(4) && extent > 1 ? Scalar(extent) : Scalar(size(g_, "n" + std::to_string(i))));
    }
    if (random_.one_in(2)) {
      axes_ = {static_cast<int64_t>(rank) - 1};
    } else {
      for (size_t i = 0; i < rank; ++i)
        if (random_.one_in(2)) axes_.push_back(static_cast<int64_t>(i));
      if (axes_.empty()) axes_ = {0};
    }
    // What is summed twice, over the same axes or over the others, stays a whole number of 24 bits.
    int64_t reduced = 1, kept = 1;
    for (size_t i = 0; i < rank; ++i)
      (std::ranges::count(axes_, static_cast<int64_t>(i)) > 0 ? reduced : kept) *= extents_[i];
    if (4 * reduced * std::max(reduced, kept) > int64_t{1} << 24) case_.is_exact = false;
    // Many rows, so that threads walk several while they sum columns.
    is_tall_ = rank == 2 && axes_ == Axes{1} && extents_[1] <= 529 && random_.one_in(4);
    if (!is_tall_) return;
    extents_[0] = random_.pick(std::vector<int64_t>{264, 300, 529});
    if (!shape_[0].value) shape_[0] = Scalar(extents_[0]);
  }

  void add_spec(std::string_view name, Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    InputSpec spec;
    spec.name = name;
    spec.dtype = dtype;
    spec.shape = std::move(shape);
    spec.strides = std::move(strides);
    const bool is_whole = case_.is_exact || !is_floating(dtype);
    spec.generator = is_whole ? InputGenerator::kIntegers : InputGenerator::kNormal;
    spec.low = is_whole ? -1 : 0;
    spec.high = is_whole ? 2 : 1;
    spec.seed = random_.next() % 1000;
    specs_.specs.push_back(std::move(spec));
  }

  ValueId full_input(const std::string& name, Dtype dtype) {
    const size_t rank = extents_.size();
    InputOptions options;
    std::vector<int64_t> order(rank), strides(rank);
    for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(i);
    if (random_.one_in(5)) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
      options.allocation_order = order;
    }
    // Rows that stand apart in memory.
    const int64_t gap = rank > 1 && random_.one_in(5) ? 1 + static_cast<int64_t>(random_.below(8)) : 0;
    int64_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
      const auto axis = static_cast<size_t>(order[i]);
      strides[axis] = stride;
      stride *= std::max<int64_t>(extents_[axis], 1);
      if (i + 1 == rank) stride += gap;
    }
    if (gap > 0) {
      options.contiguity.assign(rank, Contiguity::kTrue);
      options.contiguity[static_cast<size_t>(order[rank - 2])] = Contiguity::kFalse;
    }
    const ValueId v = input(g_, name, dtype, shape_, options);
    add_spec(g_[v].name, dtype, extents_, strides);
    return v;
  }

  // An input with all axes, with the last alone, with the kept ones, or with some broadcast.
  ValueId draw_partner() {
    const std::string name = "p" + std::to_string(specs_.specs.size());
    if (random_.one_in(2)) return full_input(name, random_.one_in(2) ? dtype_ : Dtype::kFloat);
    if (random_.one_in(2)) {
      const ValueId v = input(g_, name, Dtype::kFloat, {shape_.back()});
      add_spec(g_[v].name, Dtype::kFloat, {extents_.back()}, {});
      return v;
    }
    const bool keeps_kept = random_.one_in(2);
    Shape shape;
    std::vector<int64_t> extents;
    std::vector<bool> is_new;
    for (size_t i = 0; i < extents_.size(); ++i) {
      const bool is_reduced = std::ranges::count(axes_, static_cast<int64_t>(i)) > 0;
      is_new.push_back(keeps_kept ? is_reduced : random_.one_in(2));
      if (is_new.back()) continue;
      shape.push_back(shape_[i]);
      extents.push_back(extents_[i]);
    }
    const ValueId v = input(g_, name, Dtype::kFloat, shape);
    add_spec(g_[v].name, Dtype::kFloat, extents, {});
    return std::ranges::count(is_new, true) > 0 ? broadcast(g_, v, is_new) : v;
  }

  ValueId computed(ValueId x) { return g_[x].dtype == Dtype::kFloat ? x : cast(g_, x, Dtype::kFloat); }

  OpKind draw_binary() {
    const std::vector<OpKind> exact = {OpKind::kAdd, OpKind::kSub, OpKind::kMaximum};
    const std::vector<OpKind> all = {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kMaximum, OpKind::kMinimum};
    return random_.pick(case_.is_exact ? exact : all);
  }
  OpKind draw_unary() {
    const std::vector<OpKind> exact = {OpKind::kNeg, OpKind::kAbs, OpKind::kRelu};
    const std::vector<OpKind> all = {OpKind::kNeg, OpKind::kAbs, OpKind::kTanh, OpKind::kSigmoid};
    return random_.pick(case_.is_exact ? exact : all);
  }

  ValueId reduced(ValueId x) {
    const bool keeps = case_.feeds_back;
    const std::vector<OpKind> kinds = {OpKind::kSum, OpKind::kSum, OpKind::kMax, OpKind::kMin};
    if (!case_.is_exact && random_.one_in(5)) {
      // Averages are divided, so they are not exact.
      const WelfordResult w = welford(g_, x, axes_);
      ValueId result = random_.one_in(2) ? w.avg : w.var_sum;
      if (keeps) result = kept(result);
      return result;
    }
    return reduce(g_, random_.pick(kinds), x, axes_, {.keepdim = keeps});
  }

  ValueId kept(ValueId v) {
    std::vector<bool> is_new(extents_.size());
    for (int64_t axis : axes_) is_new[static_cast<size_t>(axis)] = true;
    return broadcast(g_, v, is_new);
  }

  // An element of each row of the first input, as a loss picks a label's logit: data tell which.
  ValueId picked() {
    const auto axis = static_cast<size_t>(axes_[0]);
    Shape shape;
    std::vector<int64_t> extents;
    std::vector<bool> is_new(extents_.size());
    is_new[axis] = true;
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (is_new[i]) continue;
      shape.push_back(shape_[i]);
      extents.push_back(extents_[i]);
    }
    const ValueId label = input(g_, "label", Dtype::kInt64, shape);
    add_spec("label", Dtype::kInt64, extents, {});
    specs_.specs.back().low = 0;
    specs_.specs.back().high = extents_[axis];
    ValueId x = inputs(g_)[0];
    if (random_.one_in(2)) x = computed(x);
    if (random_.one_in(3)) x = unary(g_, draw_unary(), x);
    const ValueId at = take_along_axis(g_, x, broadcast(g_, label, is_new), axes_[0]);
    return case_.feeds_back ? at : squeeze(g_, at, axes_);
  }

  // A statistic of each row that is stored over its input.
  void keep_statistic(ValueId r) {
    Shape shape;
    std::vector<int64_t> extents;
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (std::ranges::count(axes_, static_cast<int64_t>(i)) > 0) continue;
      shape.push_back(shape_[i]);
      extents.push_back(extents_[i]);
    }
    if (shape.empty() || g_[r].dtype != Dtype::kFloat) return;
    const ValueId statistic = input(g_, "statistic", Dtype::kFloat, shape);
    add_spec("statistic", Dtype::kFloat, extents, {});
    output(g_, binary(g_, draw_binary(), statistic, case_.feeds_back ? squeeze(g_, r, axes_) : r), statistic);
  }

  // Column sums beside the reductions of rows.
  void add_column_sum(ValueId x) {
    Axes kept;
    for (size_t i = 0; i < extents_.size(); ++i)
      if (std::ranges::count(axes_, static_cast<int64_t>(i)) == 0) kept.push_back(static_cast<int64_t>(i));
    if (kept.empty()) return;
    ValueId from = case_.is_exact || random_.one_in(2) ? computed(inputs(g_)[0]) : x;
    const bool meets_vector = random_.one_in(2), keeps = meets_vector && random_.one_in(3);
    if (meets_vector) from = binary(g_, draw_binary(), from, of_all_rows(reduced_vector(), kept));
    const ValueId r = reduce(g_, random_.one_in(3) ? OpKind::kMax : OpKind::kSum, from, kept, {.keepdim = keeps});
    ValueId out = random_.one_in(2) ? cast(g_, r, Dtype::kBfloat16) : unary(g_, OpKind::kNeg, r);
    for (size_t i = meets_vector ? random_.below(3) : 0; i > 0; --i)
      out = binary(g_, draw_binary(), out, keeps ? of_all_rows(reduced_vector(), kept) : reduced_vector());
    output(g_, out);
  }

  // A vector over the reduced axes, or what is made of it, that ops before a column sum and behind it read.
  ValueId reduced_vector() {
    if (!vector_) {
      Shape shape;
      std::vector<int64_t> extents;
      for (int64_t axis : axes_) {
        shape.push_back(shape_[static_cast<size_t>(axis)]);
        extents.push_back(extents_[static_cast<size_t>(axis)]);
      }
      const Dtype dtype = random_.one_in(3) ? dtype_ : Dtype::kFloat;
      vector_ = input(g_, "vector", dtype, shape);
      add_spec("vector", dtype, extents, {});
      vector_ = computed(vector_);
    }
    if (random_.one_in(3)) vector_ = unary(g_, draw_unary(), vector_);
    if (random_.one_in(8)) output(g_, vector_);
    return vector_;
  }

  ValueId of_all_rows(ValueId vector, const Axes& kept) {
    std::vector<bool> is_new(extents_.size());
    for (int64_t axis : kept) is_new[static_cast<size_t>(axis)] = true;
    return broadcast(g_, vector, is_new);
  }

  void finish(ValueId x) {
    for (size_t i = is_tall_ || random_.one_in(8) ? 1 + random_.below(2) : 0; i > 0; --i) add_column_sum(x);
    if (random_.one_in(6)) keep_statistic(reductions_[0]);
    const bool picks = axes_.size() == 1 && extents_[static_cast<size_t>(axes_[0])] > 0 && random_.one_in(5);
    if (picks) output(g_, binary(g_, draw_binary(), computed(reductions_[0]), computed(picked())));
    if (!case_.feeds_back) {
      ValueId r = reductions_[0];
      for (size_t i = 1; i < reductions_.size(); ++i) r = binary(g_, draw_binary(), r, reductions_[i]);
      return output(g_, r);
    }
    if (random_.one_in(2)) x = cast(g_, x, random_.one_in(2) ? Dtype::kBfloat16 : Dtype::kHalf);
    const ValueId first = inputs(g_)[0];
    const bool in_place = g_[x].dtype == g_[first].dtype && random_.one_in(4);
    output(g_, x, in_place ? first : ValueId());
  }

  Random random_;
  Graph g_;
  ReductionCase case_;
  std::vector<int64_t> extents_;
  Shape shape_;
  Axes axes_;
  bool is_tall_ = false;
  Dtype dtype_ = Dtype::kFloat;
  std::vector<ValueId> reductions_;
  ValueId vector_;  // over the reduced axes, read before column sums and behind them; none: not drawn yet
  InputSpecs specs_;
};

inline ReductionCase make_reduction_case(uint64_t seed) { return ReductionMaker(seed).run(); }

}  // namespace fusebox::testing
