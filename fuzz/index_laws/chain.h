// Chains of transforms on one tensor, evaluated directly on integers. The index algebra is compared with this and
// shares nothing with it.
//
//   Tensor t = Tensor::of({kScalarBase + 17});                     // one axis of extent 17
//   t.apply(Kind::kSplitInner, 0, 0, kScalarBase + 4);             // → outer{5}, inner{4}
//   t.extents({}, e);  t.from_loops(v, e, {});                    // v: values by domain, from those of the loops
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/apply.h"

namespace fusebox::index_laws {

enum class Kind : uint8_t { kSplitInner, kSplitOuter, kMerge, kResize, kXor, kCyclic };

// A scalar is the number of a value of the graph: the constants -8 to 55, then the symbols %n and %m.
constexpr int kScalarBase = 8;
constexpr int kConstants = 64;
constexpr int kSymbolN = kConstants, kSymbolM = kConstants + 1;
constexpr int kScalars = kConstants + 2;

struct Binding {
  int64_t n = 0, m = 0;
  int64_t operator()(int scalar) const {
    return scalar == kSymbolN ? n : scalar == kSymbolM ? m : scalar - kScalarBase;
  }
};

inline int64_t floor_div(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b < 0 ? 1 : 0); }
inline int64_t floor_mod(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * floor_div(a, b); }

struct Step {
  Kind kind;
  std::array<int, 2> in;
  std::array<int, 2> out;
  int factor = 0, right = 0;  // of splits and resizes, as scalars
  bool is_split() const { return kind == Kind::kSplitInner || kind == Kind::kSplitOuter; }
  bool two_in() const { return kind == Kind::kMerge || kind == Kind::kXor || kind == Kind::kCyclic; }
  bool two_out() const { return kind != Kind::kMerge && kind != Kind::kResize; }
};

// Domains are numbered: first the axes, then the outputs of each transform.
struct Tensor {
  std::vector<int> axes;    // their extents, as scalars
  std::vector<Step> op;     // from the root to the logical domain
  std::vector<Step> chain;  // from the logical domain to the loops; values are computed backwards
  std::vector<Step> down;   // from the logical domain to other domains
  std::vector<int> logical, loops;
  int count = 0;          // number of domains
  bool reshaped = false;  // `op` is a reshape, and all its factors divide

  static Tensor of(std::vector<int> extents) {
    Tensor t;
    t.axes = std::move(extents);
    for (; t.count < static_cast<int>(t.axes.size()); ++t.count) t.logical.push_back(t.count);
    t.loops = t.logical;
    return t;
  }

  // Replaces the domains at two places of a list by the outputs of the transform.
  Step apply(std::vector<Step>& steps, std::vector<int>& frontier, Kind kind, size_t i, size_t j, int factor = 0,
             int right = 0) {
    Step s{kind, {frontier[i], frontier[j]}, {count, count + 1}, factor, right};
    count += s.two_out() ? 2 : 1;
    frontier[i] = s.out[0];
    if (s.kind == Kind::kMerge)
      frontier.erase(frontier.begin() + static_cast<std::ptrdiff_t>(j));
    else if (s.kind == Kind::kXor || s.kind == Kind::kCyclic)
      frontier[j] = s.out[1];
    else if (s.two_out())
      frontier.push_back(s.out[1]);
    steps.push_back(s);
    return s;
  }

  void extents(const Binding& binding, std::vector<int64_t>& e) const {
    e.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < axes.size(); ++i) e[i] = binding(axes[i]);
    for (const auto* steps : {&op, &chain, &down})
      for (const Step& s : *steps) {
        const int64_t a = e[at(s.in[0])], b = e[at(s.in[1])], f = binding(s.factor);
        int64_t& first = e[at(s.out[0])];
        switch (s.kind) {
          case Kind::kSplitInner:
            first = -floor_div(-a, f);
            e[at(s.out[1])] = f;
            break;
          case Kind::kSplitOuter:
            first = f;
            e[at(s.out[1])] = -floor_div(-a, f);
            break;
          case Kind::kMerge:
            first = a * b;
            break;
          case Kind::kResize:
            first = a + f + binding(s.right);
            break;
          case Kind::kXor:
          case Kind::kCyclic:
            first = a;
            e[at(s.out[1])] = b;
            break;
        }
      }
  }

  // Computes all values from those of the loops, which `v` already holds.
  void from_loops(std::vector<int64_t>& v, const std::vector<int64_t>& e, const Binding& binding) const {
    up(chain, v, e, binding);
    up(op, v, e, binding);
    forward(down, v, e, binding);
  }

  static void up(const std::vector<Step>& steps, std::vector<int64_t>& v, const std::vector<int64_t>& e,
                 const Binding& binding) {
    for (size_t i = steps.size(); i-- > 0;) {
      const Step& s = steps[i];
      const int64_t a = v[at(s.out[0])], b = s.two_out() ? v[at(s.out[1])] : 0;
      int64_t& first = v[at(s.in[0])];
      switch (s.kind) {
        case Kind::kSplitInner:
        case Kind::kSplitOuter:
          first = a * e[at(s.out[1])] + b;
          break;
        case Kind::kMerge:
          first = floor_div(a, e[at(s.in[1])]);
          v[at(s.in[1])] = floor_mod(a, e[at(s.in[1])]);
          break;
        case Kind::kResize:
          first = a - binding(s.factor);
          break;
        case Kind::kXor:
          first = a;
          v[at(s.in[1])] = b ^ a;
          break;
        case Kind::kCyclic:
          first = a;
          v[at(s.in[1])] = floor_mod(b - a, e[at(s.in[1])]);
          break;
      }
    }
  }

  static void forward(const std::vector<Step>& steps, std::vector<int64_t>& v, const std::vector<int64_t>& e,
                      const Binding& binding) {
    for (const Step& s : steps) {
      const int64_t a = v[at(s.in[0])], b = v[at(s.in[1])];
      int64_t& first = v[at(s.out[0])];
      switch (s.kind) {
        case Kind::kSplitInner:
        case Kind::kSplitOuter:
          first = floor_div(a, e[at(s.out[1])]);
          v[at(s.out[1])] = floor_mod(a, e[at(s.out[1])]);
          break;
        case Kind::kMerge:
          first = a * e[at(s.in[1])] + b;
          break;
        case Kind::kResize:
          first = a + binding(s.factor);
          break;
        case Kind::kXor:
          first = a;
          v[at(s.out[1])] = b ^ a;
          break;
        case Kind::kCyclic:
          first = a;
          v[at(s.out[1])] = floor_mod(a + b, e[at(s.in[1])]);
          break;
      }
    }
  }

  // True if no split towards the loops has a factor below 1 and no split of a reshape leaves a remainder.
  bool is_legal(const Binding& binding) const {
    std::vector<int64_t> e;
    extents(binding, e);
    return has_places(op, binding) && has_places(chain, binding) &&
           std::all_of(op.begin(), op.end(),
                       [&](const Step& s) { return !s.is_split() || e[at(s.in[0])] % binding(s.factor) == 0; });
  }
  // A domain that is split by 0 has no place for its elements.
  static bool has_places(const std::vector<Step>& steps, const Binding& binding) {
    return std::all_of(steps.begin(), steps.end(),
                       [&](const Step& s) { return !s.is_split() || binding(s.factor) > 0; });
  }

  std::string to_string() const {
    static constexpr const char* kNames[] = {"split_inner", "split_outer", "merge", "resize", "xor", "cyclic"};
    const auto scalar = [](int s) {
      return s == kSymbolN ? "n" : s == kSymbolM ? "m" : std::to_string(s - kScalarBase);
    };
    std::string text = "tensor";
    for (int axis : axes) text += " {" + scalar(axis) + "}";
    for (const auto* steps : {&op, &chain, &down}) {
      text += steps == &op ? "; op:" : steps == &chain ? "; loops:" : "; other:";
      for (const Step& s : *steps) {
        text += std::string(" ") + kNames[static_cast<int>(s.kind)] + "(" + std::to_string(s.in[0]);
        text += s.two_in() ? "," + std::to_string(s.in[1]) : " by " + scalar(s.factor);
        if (s.kind == Kind::kResize) text += "," + scalar(s.right);
        text += ")->" + std::to_string(s.out[0]) + (s.two_out() ? "," + std::to_string(s.out[1]) : "");
      }
    }
    return text;
  }

  static size_t at(int d) { return static_cast<size_t>(d); }
};

}  // namespace fusebox::index_laws
