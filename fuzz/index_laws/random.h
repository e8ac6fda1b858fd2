// Random cases: one to three tensors, each with a chain of up to six transforms. A tensor that reads another one shares
// half of that one's chain. The same seed gives the same cases on every machine.
//
//   Generator generator({.cases = 100}, 1);   Case c = generator.next();
#pragma once

#include <algorithm>

#include "fuzz/base/random_source.h"
#include "fuzz/index_laws/cases.h"

namespace fusebox::index_laws {

constexpr int number(int64_t value) { return static_cast<int>(value) + kScalarBase; }

inline bool is_power_of_two(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

struct RandomOptions {
  bool symbolic = false;
  bool reshape = false;  // the last tensor splits n by 4; all bindings allow it
  int cases = 0;
  int64_t max_points = 3000;
  std::vector<Binding> bindings = std::vector<Binding>(1);
};

class Generator {
 public:
  Generator(const RandomOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  Case next() {
    Case c;
    const size_t tensors = 1 + below(3);
    std::vector<int> axes(1 + below(tensors == 1 ? 3 : 2));
    for (int& axis : axes) axis = scalar(axes.size() > 1 ? 8 : 17, 2);
    if (options_.reshape) axes[0] = kSymbolN;
    c.transposed = tensors == 3 && axes.size() == 2 && below(3) == 0;
    if (c.transposed) axes[1] = axes[0];
    for (size_t i = 0; i < tensors; ++i) {
      Tensor t = Tensor::of(axes);
      // Only the last tensor may have an op that makes new domains, because no tensor of the case reads that one.
      if (i + 1 == tensors && i > 0 && !c.transposed && (options_.reshape || below(3) == 0)) add_op(t);
      size_t steps = below(tensors == 1 ? 7 : 5);
      if (i > 0 && t.op.empty()) {
        // Takes over half of the previous tensor's chain.
        const auto& chain = c.tensors[i - 1].chain;
        for (size_t k = 0; k < std::min(chain.size() / 2 + below(2), chain.size()); ++k) {
          const Step& s = chain[k];
          add(t, t.chain, t.loops, s.kind, place(t.loops, s.in[0]), place(t.loops, s.in[1]), s.factor, s.right);
        }
      }
      steps -= std::min(steps, t.chain.size());
      for (size_t k = 0; k < steps; ++k) add_random(t, t.chain, t.loops);
      std::vector<int> others = t.logical;
      for (size_t k = below(4); k < 2 && t.chain.size() + t.down.size() < 6; ++k) add_random(t, t.down, others);
      c.tensors.push_back(std::move(t));
    }
    return c;
  }

 private:
  size_t below(size_t n) { return random_.below(n); }
  static size_t place(const std::vector<int>& list, int d) {
    const auto it = std::find(list.begin(), list.end(), d);
    return it == list.end() ? 0 : static_cast<size_t>(it - list.begin());
  }
  int scalar(int up_to, size_t symbols_in) {
    if (options_.symbolic && below(symbols_in) == 0) return below(2) == 0 ? kSymbolN : kSymbolM;
    return number(1 + static_cast<int>(below(static_cast<size_t>(up_to))));
  }

  void add_op(Tensor& t) {
    std::vector<int64_t> e;
    t.extents({1, 1}, e);
    if (options_.reshape || (below(2) == 0 && e[0] % 4 == 0 && t.axes[0] < kConstants)) {
      t.reshaped = true;
      t.apply(t.op, t.logical, Kind::kSplitInner, 0, 0, number(4));
      if (below(2) == 0 && t.logical.size() == 2) t.apply(t.op, t.logical, Kind::kMerge, 0, 1);
    } else {
      const int left = static_cast<int>(below(5)) - 2, right = static_cast<int>(below(5)) - 2;
      if (e[0] + left + right < 1 && t.axes[0] < kConstants) return;
      if (t.axes[0] >= kConstants && left + right < 0) return;
      t.apply(t.op, t.logical, Kind::kResize, 0, 0, number(left), number(right));
    }
    t.loops = t.logical;
  }

  void add_random(Tensor& t, std::vector<Step>& steps, std::vector<int>& frontier) {
    const auto kind = static_cast<Kind>(below(6));
    const int factor =
        kind == Kind::kResize ? number(static_cast<int64_t>(below(4))) : scalar(below(2) == 0 ? 4 : 17, 4);
    add(t, steps, frontier, kind, below(frontier.size()), below(frontier.size()), factor,
        number(static_cast<int64_t>(below(4))));
  }

  // Adds the transform if it can be applied.
  void add(Tensor& t, std::vector<Step>& steps, std::vector<int>& frontier, Kind kind, size_t i, size_t j, int factor,
           int right) {
    const bool two = kind == Kind::kMerge || kind == Kind::kXor || kind == Kind::kCyclic;
    if (two && i == j) return;
    if (kind == Kind::kXor) {
      std::vector<int64_t> e;
      for (const Binding& binding : options_.bindings) {
        t.extents(binding, e);
        const int64_t x = e[Tensor::at(frontier[i])], y = e[Tensor::at(frontier[j])];
        if (!is_power_of_two(y) || x > y) return;
      }
    }
    const bool split = kind == Kind::kSplitInner || kind == Kind::kSplitOuter;
    t.apply(steps, frontier, kind, i, two ? j : i, split || kind == Kind::kResize ? factor : 0,
            kind == Kind::kResize ? right : 0);
  }

  const RandomOptions& options_;
  fuzz::RandomSource random_;
};

}  // namespace fusebox::index_laws
