// The law of automatic plans: what a scheduler takes gives, on the host executor and without a finding, the bits of the
// unfused plan. The programs compute and move elements: casts, broadcasts, permutes, squeezes, factories, gathers, slices
// and pads, with several outputs, some of them in place.
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

#include "ir/build/builder.h"
#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"
#include "tests/support/random_module.h"
#include "tests/support/run_compiled.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

using testing::Random;
using testing::setting;

// A fusion over the axes m, n and k, with inputs that have some of them.
class Generator {
 public:
  Generator(Random& random, bool resizes) : random_(random), resizes_(resizes), g_(fusion("drawn")) {
    const std::vector<int64_t> extents = {1, 2, 3, 5, 7, 8, 16, 24, 31, 32, 33, 40, 64};
    axes_ = sizes(g_, {"m", "n", "k"});
    for (int i = 0; i < 3; ++i) extents_.push_back(random_.pick(extents));
    rank_ = 1 + random_.below(3);
    while (rank_ > 2 && extents_[0] * extents_[1] * extents_[2] > 16384) extents_[random_.below(3)] = 3;
  }

  Graph run() {
    const std::vector<Dtype> dtypes = {Dtype::kFloat, Dtype::kFloat,  Dtype::kBfloat16,
                                       Dtype::kInt32, Dtype::kDouble, Dtype::kInt8};
    for (size_t i = 0, n = 1 + random_.below(4); i < n; ++i) draw_input(random_.pick(dtypes));
    for (int i = 0; i < 12; ++i) {
      try {
        step();
      } catch (const Error& e) {
        if (e.code == ErrorCode::kInternal) throw;  // any other: the op does not take these operands
      }
    }
    std::vector<ValueId> made;
    for (ValueId v : full_)
      if (g_[g_[v].def].kind != OpKind::kInput) made.push_back(v);
    if (made.empty()) made.push_back(full_.emplace_back(unary(g_, OpKind::kNeg, full_[0])));
    const ValueId last = made.back();
    output(g_, last, alias_for(last));
    if (random_.one_in(3)) {
      const ValueId other = random_.pick(made);
      if (other != last) output(g_, other);
    }
    return canonical_order(compact(g_));
  }

  std::vector<Argument> inputs() {
    std::vector<Argument> result;
    for (const InputSpec& s : specs_) result.push_back(make_argument(s));
    return result;
  }
  const std::vector<InputSpec>& specs() const { return specs_; }

 private:
  // An input of all axes, or of some of them that is broadcast to all.
  void draw_input(Dtype dtype) {
    Shape shape;
    InputSpec spec;
    std::vector<bool> is_new(rank_);
    for (size_t i = 0; i < rank_; ++i) {
      is_new[i] = !full_.empty() && random_.one_in(4);
      if (is_new[i]) continue;
      shape.push_back(axes_[i]);
      spec.shape.push_back(extents_[i]);
    }
    InputOptions options;
    // A row of the memory may be longer than the row of the tensor.
    const bool has_gap = spec.shape.size() > 1 && random_.one_in(4);
    if (has_gap) {
      options.contiguity = std::vector<Contiguity>(shape.size(), Contiguity::kTrue);
      options.contiguity[shape.size() - 2] = Contiguity::kFalse;
      int64_t stride = spec.shape.back() + static_cast<int64_t>(random_.below(2) == 0 ? 1 : 8);
      spec.strides.assign(shape.size(), 1);
      for (size_t i = shape.size() - 1; i-- > 0;) {
        spec.strides[i] = stride;
        stride *= spec.shape[i];
      }
    }
    spec.name = "x" + std::to_string(specs_.size());
    spec.dtype = dtype;
    spec.generator = InputGenerator::kIntegers;
    spec.low = -4;
    spec.high = 5;
    spec.seed = random_.next() % 1000;
    const ValueId x = input(g_, spec.name, dtype, shape, options);
    specs_.push_back(spec);
    if (shape.size() == rank_) return full_.push_back(x);
    const ValueId y = random_.one_in(2) ? unary(g_, OpKind::kNeg, x) : x;
    full_.push_back(binary(g_, OpKind::kAdd, full_[0], broadcast(g_, y, is_new)));
  }

  ValueId any() { return random_.pick(full_); }

  Shape shape() const { return Shape(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(rank_)); }

  void step() {
    const std::vector<OpKind> unaries = {OpKind::kNeg, OpKind::kAbs, OpKind::kRelu, OpKind::kSet, OpKind::kExp};
    const std::vector<OpKind> binaries = {OpKind::kAdd, OpKind::kMul, OpKind::kSub, OpKind::kMaximum};
    switch (random_.below(resizes_ ? 14 : 10)) {
      case 0:
      case 1:
        return full_.push_back(unary(g_, random_.pick(unaries), any()));
      case 2:
      case 3:
        return full_.push_back(binary(g_, random_.pick(binaries), any(), any()));
      case 4:
        return full_.push_back(
            cast(g_, any(),
                 random_.pick(std::vector<Dtype>{Dtype::kFloat, Dtype::kBfloat16, Dtype::kDouble, Dtype::kInt32})));
      case 5: {
        // There and back, with an op between; or a tensor and its transpose where two extents are equal.
        if (rank_ < 2) return;
        Axes dims(rank_), back(rank_);
        for (size_t i = 0; i < rank_; ++i) dims[i] = static_cast<int64_t>((i + 1) % rank_);
        for (size_t i = 0; i < rank_; ++i) back[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
        const ValueId moved = unary(g_, random_.pick(unaries), permute(g_, any(), dims));
        return full_.push_back(permute(g_, moved, back));
      }
      case 6: {
        // An input that lies along other axes.
        if (rank_ < 2) return;
        Shape turned;
        InputSpec spec;
        Axes dims(rank_);
        for (size_t i = 0; i < rank_; ++i) {
          const size_t from = rank_ - 1 - i;
          turned.push_back(axes_[from]);
          spec.shape.push_back(extents_[from]);
          dims[i] = static_cast<int64_t>(rank_ - 1 - i);
        }
        spec.name = "x" + std::to_string(specs_.size());
        spec.dtype = random_.one_in(2) ? Dtype::kFloat : Dtype::kBfloat16;
        spec.generator = InputGenerator::kIntegers;
        spec.low = -4;
        spec.high = 5;
        spec.seed = random_.next() % 1000;
        const ValueId x = input(g_, spec.name, spec.dtype, turned);
        specs_.push_back(spec);
        return full_.push_back(permute(g_, x, dims));
      }
      case 7: {
        std::vector<bool> mask(rank_ + 1);
        const size_t axis = random_.below(rank_ + 1);
        mask[axis] = true;
        const ValueId y = unary(g_, random_.pick(unaries), broadcast(g_, any(), mask));
        return full_.push_back(squeeze(g_, y, {static_cast<int64_t>(axis)}));
      }
      case 8: {
        const ValueId row = iota(g_, axes_[rank_ - 1], {}, {}, Dtype::kInt32);
        std::vector<bool> mask(rank_, true);
        mask[rank_ - 1] = false;
        return full_.push_back(binary(g_, OpKind::kAdd, any(), broadcast(g_, row, mask)));
      }
      case 9: {
        // Rows of an input, chosen by another one.
        InputSpec table, index;
        table.name = "x" + std::to_string(specs_.size());
        table.dtype = Dtype::kFloat;
        Shape of_table = shape();
        of_table[0] = constant_index(g_, 9);
        table.shape.assign(extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(rank_));
        table.shape[0] = 9;
        table.generator = InputGenerator::kIntegers;
        table.low = -4;
        table.high = 5;
        index.name = "x" + std::to_string(specs_.size() + 1);
        index.dtype = Dtype::kInt64;
        index.shape = {extents_[0]};
        index.generator = InputGenerator::kIntegers;
        index.low = 0;
        index.high = 9;
        const ValueId t = input(g_, table.name, table.dtype, of_table);
        const ValueId i = input(g_, index.name, index.dtype, {axes_[0]});
        specs_.push_back(table);
        specs_.push_back(index);
        const ValueId at = random_.one_in(2) ? unary(g_, OpKind::kAbs, i) : i;
        return full_.push_back(index_select(g_, t, at, 0));
      }
      case 10: {
        // A part, put back at its place or at another one.
        const int64_t by = std::vector<int64_t>{1, 4, 8}[random_.below(3)];
        const size_t axis = random_.below(rank_);
        if (extents_[axis] <= by) return;
        Shape starts(rank_, constant_index(g_, 0)), widths(2 * rank_, constant_index(g_, 0));
        starts[axis] = constant_index(g_, by);
        widths[2 * (rank_ - 1 - axis) + random_.below(2)] = constant_index(g_, by);
        const ValueId part = slice(g_, any(), starts, shape());
        return full_.push_back(pad(g_, random_.one_in(2) ? unary(g_, OpKind::kNeg, part) : part, widths));
      }
      case 11: {
        // Two parts, computed each on its own and joined again.
        const int64_t by = std::vector<int64_t>{1, 4, 8}[random_.below(3)];
        const size_t axis = random_.below(rank_);
        if (extents_[axis] <= by) return;
        const Shape zeros(rank_, constant_index(g_, 0));
        Shape starts = zeros, stops = shape();
        starts[axis] = stops[axis] = constant_index(g_, by);
        const ValueId x = any();
        const ValueId left = slice(g_, x, zeros, stops), right = slice(g_, x, starts, shape());
        const ValueId first = unary(g_, random_.pick(unaries), left);
        const ValueId second = random_.one_in(2) ? unary(g_, random_.pick(unaries), right) : right;
        return full_.push_back(cat(g_, {first, second}, static_cast<int64_t>(axis)));
      }
      default: {
        const ValueId x = any();
        const ValueId flat = reshape(g_, x, {-1});
        return full_.push_back(reshape(g_, unary(g_, OpKind::kAbs, flat), shape()));
      }
    }
  }

  // An input of the same dtype and shape that the output overwrites, now and then.
  ValueId alias_for(ValueId v) {
    if (!random_.one_in(4)) return {};
    for (ValueId x : fusebox::inputs(g_)) {
      if (!g_.is_tensor(x) || g_[x].dtype != g_[v].dtype) continue;
      const auto a = logical_without_reductions(g_, g_.tensor_of(x)),
                 b = logical_without_reductions(g_, g_.tensor_of(v));
      bool same = a.size() == b.size();
      for (size_t i = 0; same && i < a.size(); ++i) same = g_[a[i]].extent && g_[a[i]].extent == g_[b[i]].extent;
      if (same) return x;
    }
    return {};
  }

  Random& random_;
  bool resizes_;
  Graph g_;
  std::vector<ValueId> axes_, full_;
  std::vector<int64_t> extents_;
  size_t rank_ = 1;
  std::vector<InputSpec> specs_;
};

// Returns the share of programs that one scheduler took as a whole.
void check(bool resizes, uint64_t count, double least_share) {
  const uint64_t first = setting("FUSEBOX_FIRST_SEED", 1);
  count = setting("FUSEBOX_PROGRAMS", count);
  std::map<std::string, int> taken, vectors;
  int programs = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed * 2 + (resizes ? 1 : 0));
    Generator generator(random, resizes);
    Graph g;
    try {
      g = generator.run();
    } catch (const Error& e) {
      ASSERT_EQ(e.code, ErrorCode::kBadAlias) << e.what();  // a symbolic output over an input
      continue;
    }
    const auto inputs = generator.inputs();
    const std::vector<BoundInput> bound = bound_inputs(inputs);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(g));
    Compiled unfused;
    try {
      unfused = compile(g, bind_sizes(g, bound), {.inputs = bound});
    } catch (const Error& e) {
      // Only a symbolic output over an input is refused, by every plan.
      ASSERT_EQ(e.code, ErrorCode::kBadAlias) << e.what();
      EXPECT_THROW(compile(g, bind_sizes(g, bound), {.device = default_device(), .inputs = bound}), Error);
      continue;
    }
    const Compiled automatic = compile(g, bind_sizes(g, bound), {.device = default_device(), .inputs = bound});
    ++programs;
    const auto& decisions = automatic.automatic->decisions;
    const bool is_taken = decisions.size() == 1 && decisions[0].heuristics.scheduler != "unfused";
    if (is_taken) ++taken[decisions[0].heuristics.scheduler];
    if (is_taken)
      for (const Heuristic& h : decisions[0].heuristics.choices)
        if (h.key == "vector") ++vectors["vector " + std::to_string(h.number)];
    if (!is_taken && std::getenv("FUSEBOX_REASONS"))
      for (const Decision& d : decisions)
        for (const Declined& why : d.declined)
          std::printf("  %llu %s: %s\n", static_cast<unsigned long long>(seed), why.scheduler.c_str(), why.why.c_str());
    SCOPED_TRACE(print_steps(automatic.automatic->steps));
    const auto expected = testing::run_compiled(unfused, inputs);
    std::vector<ProgramOutput> actual;
    try {
      actual = testing::run_compiled(automatic, inputs);
    } catch (const Error& e) {
      FAIL() << code_text(e.code) << " " << e.place << ": " << e.what() << "\n" << print(automatic.kernels[0]);
    }
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(digest(contiguous_copy(expected[i].value.tensor)), digest(contiguous_copy(actual[i].value.tensor)))
          << "output " << i << "\n"
          << print(automatic.kernels[0]);
  }
  int all = 0;
  for (const auto& [name, n] : taken) {
    std::printf("  %-12s %d\n", name.c_str(), n);
    all += n;
  }
  for (const auto& [name, n] : vectors) std::printf("  %-12s %d\n", name.c_str(), n);
  std::printf("  taken: %d of %d\n", all, programs);
  if (programs >= 100) {
    EXPECT_GE(all, least_share * programs);
  }
}

TEST(AutomaticPlan, PointwiseFusionsGiveTheBitsOfTheUnfusedPlan) { check(false, 400, 0.8); }

TEST(AutomaticPlan, ResizesGiveTheBitsOfTheUnfusedPlan) { check(true, 300, 0.5); }

}  // namespace
}  // namespace fusebox
