// Random fusions with reshapes in front of reductions and behind them, and inputs for them: groups of axes are split and
// merged in several ways, pointwise ops and residual adds stand between, and some ops hold axes. Elements are integers, so
// that every order of a sum gives the same bits.
//
//   ReshapedCase c = ReshapedMaker(7).run();   // the same seed gives the same case on every machine
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ir/build/builder.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "replay/data/input.h"
#include "tests/support/random_module.h"

namespace fusebox::testing {

struct ReshapedCase {
  Graph graph;
  std::vector<Argument> arguments;
};

class ReshapedMaker {
 public:
  explicit ReshapedMaker(uint64_t seed) : random_(seed * 2 + 1), g_(fusion("reshaped")) {}

  ReshapedCase run() {
    is_constant_ = random_.one_in(3);
    const size_t count = 2 + random_.below(4);
    for (size_t i = 0; i < count; ++i) extents_.push_back(random_.one_in(40) ? 0 : 1 + int64_t(random_.below(5)));
    for (size_t i = 0; i < 2; ++i) tensors_.push_back(drawn_input("x" + std::to_string(i)));
    const size_t steps = 4 + random_.below(8);
    for (size_t i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const Error& e) {
        if (e.code == ErrorCode::kInternal) throw;  // otherwise the op does not accept these operands
      }
    }
    if (tensors_.size() == 2) step_reduction(tensors_[0]);
    output(g_, tensors_.back().value);
    for (size_t i = 2; i + 1 < tensors_.size(); ++i)
      if (random_.one_in(4)) output(g_, tensors_[i].value);
    return {compact(g_), std::move(arguments_)};
  }

 private:
  // A tensor whose axes are runs of the finest axes, each given by its end. Its elements are those of the finest axes in order.
  struct Grouped {
    ValueId value;
    std::vector<size_t> ends;
  };

  int64_t product(size_t begin, size_t end) const {
    return std::accumulate(extents_.begin() + long(begin), extents_.begin() + long(end), int64_t{1},
                           std::multiplies<>());
  }

  // The extent of a run: a size, a quotient of one, a product of sizes, or a number.
  Scalar extent(size_t begin, size_t end) {
    const auto known = sizes_.find({begin, end});
    if (known != sizes_.end() && !random_.one_in(30)) return known->second;
    for (const auto& [run, scalar] : sizes_) {
      const bool is_head = run.first == begin && run.second > end, is_tail = run.second == end && run.first < begin;
      const int64_t rest = is_head ? product(end, run.second) : is_tail ? product(run.first, begin) : 0;
      if (rest > 1 && scalar.value && !random_.one_in(4)) {
        const Scalar made = scalar::floor_div(g_, Graph::body(), scalar.value, constant_index(g_, rest));
        return sizes_.emplace(std::pair(begin, end), made).first->second;
      }
    }
    return product(begin, end);
  }

  // Most groupings of a program merge axes of one another, so that reshapes agree on the finest axes.
  std::vector<size_t> drawn_ends() {
    if (groupings_.empty()) {
      std::vector<size_t> all(extents_.size());
      std::iota(all.begin(), all.end(), 1);
      for (size_t i = 0; i < 3; ++i) groupings_.push_back(merged(i == 0 ? all : groupings_.back()));
    }
    return merged(random_.pick(groupings_), 20);
  }

  std::vector<size_t> merged(std::vector<size_t> ends, uint64_t one_in = 4) {
    const size_t last = ends.back();
    std::erase_if(ends, [&](size_t end) { return end != last && random_.one_in(one_in); });
    return ends;
  }

  Grouped drawn_input(const std::string& name) {
    const auto ends = drawn_ends();
    Shape shape;
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < ends.size(); ++i) {
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      numbers.push_back(product(begin, ends[i]));
      const auto known = sizes_.find({begin, ends[i]});
      if (numbers.back() == 1 || random_.one_in(30)) {
        shape.emplace_back(numbers.back());
      } else if (known != sizes_.end()) {
        shape.push_back(known->second);
      } else {
        shape.emplace_back(is_constant_ || random_.one_in(4) ? Scalar(numbers.back()) : Scalar(size(g_)));
        sizes_.emplace(std::pair(begin, ends[i]), shape.back());
      }
    }
    return {given(name, shape, numbers), ends};
  }

  ValueId given(const std::string& name, const Shape& shape, const std::vector<int64_t>& numbers) {
    TensorData data = allocate_tensor(Dtype::kInt64, numbers);
    for (int64_t i = 0; i < element_count(numbers); ++i)
      store_element(data, i, constant_bits(Dtype::kInt64, static_cast<double>(random_.below(7)) - 3));
    arguments_.push_back(Argument::of(data));
    return input(g_, name, Dtype::kInt64, shape);
  }

  Grouped reshaped(const Grouped& t, const std::vector<size_t>& ends) {
    Shape shape;
    for (size_t i = 0; i < ends.size(); ++i) shape.push_back(extent(i == 0 ? 0 : ends[i - 1], ends[i]));
    return {reshape(g_, t.value, shape), ends};
  }

  void step_reduction(const Grouped& t) {
    Axes axes;
    std::vector<bool> mask(t.ends.size());
    for (size_t i = 0; i < t.ends.size(); ++i)
      if (random_.one_in(2) || (i + 1 == t.ends.size() && axes.empty())) axes.push_back(int64_t(i)), mask[i] = true;
    const ValueId r = reduce(g_, random_.one_in(3) ? OpKind::kMax : OpKind::kSum, t.value, axes);
    if (random_.one_in(4)) output(g_, r);
    tensors_.push_back({sub(g_, t.value, broadcast(g_, r, mask)), t.ends});
  }

  void step_weight(const Grouped& t) {
    const size_t axis = random_.below(t.ends.size());
    const size_t begin = axis == 0 ? 0 : t.ends[axis - 1];
    const int64_t n = product(begin, t.ends[axis]);
    const ValueId w =
        given("w" + std::to_string(arguments_.size()), {n == 1 ? Scalar(1) : extent(begin, t.ends[axis])}, {n});
    std::vector<bool> mask(t.ends.size(), true);
    mask[axis] = false;
    tensors_.push_back({add(g_, t.value, broadcast(g_, w, mask)), t.ends});
  }

  void step_held(const Grouped& t) {
    const int64_t axis = int64_t(random_.below(t.ends.size()));
    if (random_.one_in(2)) {
      const ValueId joined = cat(g_, {t.value, t.value}, axis);
      output(g_, sum(g_, joined, {axis}));
    } else {
      Axes dims(t.ends.size());
      std::iota(dims.begin(), dims.end(), 0);
      std::swap(dims[size_t(axis)], dims[0]);
      output(g_, unary(g_, OpKind::kNeg, permute(g_, t.value, dims)));
    }
  }

  void step() {
    const Grouped t = random_.one_in(3) ? random_.pick(tensors_) : tensors_.back();
    switch (random_.below(8)) {
      case 0:
        return tensors_.push_back({unary(g_, random_.one_in(2) ? OpKind::kRelu : OpKind::kNeg, t.value), t.ends});
      case 1:
      case 2:
        return tensors_.push_back(reshaped(t, drawn_ends()));
      case 3: {
        const Grouped other = random_.pick(tensors_);
        const Grouped same = other.ends == t.ends ? other : reshaped(other, t.ends);
        return tensors_.push_back({add(g_, t.value, same.value), t.ends});
      }
      case 4:
        return step_weight(t);
      case 5:
        return random_.one_in(3) ? step_held(t) : step_reduction(t);
      default:
        return step_reduction(t);
    }
  }

  Random random_;
  Graph g_;
  bool is_constant_ = false;                           // no sizes
  std::vector<int64_t> extents_;                       // of the finest axes
  std::map<std::pair<size_t, size_t>, Scalar> sizes_;  // of runs of them
  std::vector<std::vector<size_t>> groupings_;
  std::vector<Grouped> tensors_;
  std::vector<Argument> arguments_;
};

}  // namespace fusebox::testing
