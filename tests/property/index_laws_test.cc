// The laws of indices, predicates and id graphs, by enumeration. For every chain of transforms, at every loop point,
// holes included:
//   - each normal form has the value that the transforms give, computed without the index algebra;
//   - two domains of one tensor that are one class of the exact or the almost-exact graph, as they stand when all
//   classes
//     are made, have the same value;
//   - the checks hold exactly where the point is an element, and every element is one point.
// How many pairs are equal and not recognised is counted: a figure of completeness.
//
// FUSEBOX_LAW_SEED chooses other random cases, FUSEBOX_LAW_FACTOR makes more of them; SHOW_MISSED prints what is
// missed.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "passes/id_graph_builder.h"
#include "tests/property/index_laws_cases.h"

namespace fusebox::index_laws {
namespace {

struct Counts {
  int64_t cases = 0, points = 0, values = 0;
  int64_t violations = 0;
  int64_t equal_pairs = 0, mapped = 0, kept_apart = 0;
  std::map<std::string, int64_t> missed;

  void add(const Counts& c) {
    cases += c.cases, points += c.points, values += c.values, violations += c.violations;
    equal_pairs += c.equal_pairs, mapped += c.mapped, kept_apart += c.kept_apart;
    for (const auto& [text, n] : c.missed) missed[text] += n;
  }
  double completeness() const {
    return equal_pairs == 0 ? 100.0
                            : 100.0 * static_cast<double>(mapped) / static_cast<double>(equal_pairs - kept_apart);
  }
};

// Numbers and the names of loops do not tell one miss from another.
std::string shape_of(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) result += c;
  return result;
}

class Law {
 public:
  // Checks a case at all points under each binding; a binding with more points than the limit is left out.
  void check(const Case& c, const std::vector<Binding>& bindings, int64_t max_points = 100000) {
    ++counts.cases;
    case_ = &c;
    bindings_ = &bindings;
    max_points_ = max_points;
    c.build(graph_);
    hashes_.assign(graph_.domains.size(), 0);
    visited_ = false;
    builder_.start(graph_, [&](TensorNest& nest, const std::vector<DomainId>& values) { visit(nest, values); });
    const IdGraph exact = builder_.make(IdGraphKind::kExact, false);
    const IdGraph almost = builder_.make(IdGraphKind::kAlmostExact, false);
    if (!visited_) return;
    check_classes(exact);
    check_classes(almost);
    count_equal(exact, almost);
  }

  Counts counts;

 private:
  void fail(const std::string& what) {
    if (counts.violations++ < 5) ADD_FAILURE() << what << "\n" << describe();
  }

  std::string describe() const {
    static constexpr const char* kNames[] = {"split_inner", "split_outer", "merge", "resize", "xor", "cyclic"};
    std::string text;
    for (const Tensor& t : case_->tensors) {
      text += "tensor";
      for (int axis : t.axes) text += " {" + scalar(axis) + "}";
      for (const auto* steps : {&t.op, &t.chain, &t.down}) {
        text += steps == &t.op ? "; op:" : steps == &t.chain ? "; loops:" : "; other:";
        for (const Step& s : *steps) {
          text += std::string(" ") + kNames[static_cast<int>(s.kind)] + "(" + std::to_string(s.in[0]);
          text += s.two_in() ? "," + std::to_string(s.in[1]) : " by " + scalar(s.factor);
          if (s.kind == Kind::kResize) text += "," + scalar(s.right);
          text += ")->" + std::to_string(s.out[0]) + (s.two_out() ? "," + std::to_string(s.out[1]) : "");
        }
      }
      text += "\n";
    }
    return text;
  }
  static std::string scalar(int s) {
    return s == kSymbolN ? "n" : s == kSymbolM ? "m" : std::to_string(s - kScalarBase);
  }

  void visit(TensorNest& nest, const std::vector<DomainId>& values) {
    const Tensor& t = case_->tensors[nest.tensor.index];
    size_t base = 0;
    for (size_t i = 0; i < nest.tensor.index; ++i) base += static_cast<size_t>(case_->tensors[i].count);
    const auto count = static_cast<size_t>(t.count);
    forms_.clear();
    for (size_t d = 0; d < count; ++d) forms_.push_back(nest.values.value(DomainId(base + d)));
    checks_ = nest.values.checks();
    for (const Binding& binding : *bindings_) visit(nest, t, base, binding);
    for (size_t x = 0; x < count; ++x)
      for (size_t y = x + 1; y < count; ++y) {
        const bool same = hashes_[base + x] == hashes_[base + y];
        const bool shown = values[base + x] == values[base + y];
        if (same && !shown && visited_)
          ++counts.missed[shape_of(nest.algebra.to_string(forms_[x]) + "  ==  " + nest.algebra.to_string(forms_[y]))];
      }
  }

  void visit(TensorNest& nest, const Tensor& t, size_t base, const Binding& binding) {
    const auto count = static_cast<size_t>(t.count);
    t.extents(binding, extents_);
    int64_t points = 1;
    for (int loop : t.loops) points *= std::max<int64_t>(extents_[Tensor::at(loop)], 0);
    if (points > max_points_ || points == 0) return;
    visited_ = true;
    // Symbols are asked for by the ids of their values.
    if (symbols_.empty()) symbols_.resize(kScalars);
    symbols_[kSymbolN] = binding.n;
    symbols_[kSymbolM] = binding.m;
    mark_elements(t, binding, points);
    at_.resize(t.loops.size());
    values_.assign(count, 0);
    for (int64_t point = 0; point < points; ++point) {
      int64_t rest = point;
      for (size_t i = t.loops.size(); i-- > 0;) {
        const int64_t extent = extents_[Tensor::at(t.loops[i])];
        values_[Tensor::at(t.loops[i])] = at_[i] = rest % extent;
        rest /= extent;
      }
      t.from_loops(values_, extents_, binding);
      for (size_t d = 0; d < count; ++d) {
        const auto value = nest.algebra.evaluate(forms_[d], at_, symbols_);
        if (value != values_[d])
          fail("domain " + std::to_string(d) + " should be " + std::to_string(values_[d]) + " at point " +
               std::to_string(point) + ": " + nest.algebra.to_string(forms_[d]));
        hashes_[base + d] = mix(hashes_[base + d], static_cast<uint64_t>(values_[d]));
      }
      bool holds = true;
      for (const DomainCheck& check : checks_) {
        const auto value = nest.algebra.evaluate(check.value, at_, symbols_);
        const auto bound = nest.algebra.evaluate(check.extent, at_, symbols_);
        holds = holds && value && bound && *value < *bound && (!check.lower || *value >= 0);
      }
      if (marks_[static_cast<size_t>(point)] != (holds ? 1 : 0))
        fail("point " + std::to_string(point) + " is " + std::to_string(marks_[static_cast<size_t>(point)]) +
             " elements, and its checks " + (holds ? "hold" : "do not hold"));
    }
    counts.points += points;
    counts.values += points * t.count;
  }

  // How many elements each loop point is: all of them are put through the chain.
  void mark_elements(const Tensor& t, const Binding& binding, int64_t points) {
    marks_.assign(static_cast<size_t>(points), 0);
    int64_t elements = 1;
    for (int d : t.logical) elements *= extents_[Tensor::at(d)];
    values_.assign(static_cast<size_t>(t.count), 0);
    for (int64_t element = 0; element < elements; ++element) {
      int64_t rest = element;
      for (size_t i = t.logical.size(); i-- > 0;) {
        const int64_t extent = extents_[Tensor::at(t.logical[i])];
        values_[Tensor::at(t.logical[i])] = rest % extent;
        rest /= extent;
      }
      Tensor::forward(t.chain, values_, extents_, binding);
      int64_t point = 0;
      bool inside = true;
      for (int loop : t.loops) {
        const int64_t value = values_[Tensor::at(loop)], extent = extents_[Tensor::at(loop)];
        inside = inside && value >= 0 && value < extent;
        point = point * extent + value;
      }
      if (!inside)
        fail("element " + std::to_string(element) + " is no loop point");
      else
        ++marks_[static_cast<size_t>(point)];
    }
  }

  static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ (value + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 29);
  }

  // Every pair of a closed class that is of one tensor.
  void check_classes(const IdGraph& ids) {
    for (uint32_t a = 0; a < hashes_.size(); ++a)
      for (uint32_t b = a + 1; b < hashes_.size() && graph_.domains[b].tensor == graph_.domains[a].tensor; ++b)
        if (ids.representative[a] == ids.representative[b] && hashes_[a] != hashes_[b])
          fail("the " + std::string(text(ids.kind)) + " graph makes " + std::to_string(a) + " and " +
               std::to_string(b) + " one, and they differ");
  }

  // Whether two classes have the same values in every nest that both have a domain in.
  bool equal_in_all_nests(const IdGraph& ids, DomainId a, DomainId b) const {
    for (uint32_t x = 0; x < hashes_.size(); ++x) {
      if (ids.representative[x] != a) continue;
      for (uint32_t y = 0; y < hashes_.size(); ++y)
        if (ids.representative[y] == b && graph_.domains[x].tensor == graph_.domains[y].tensor &&
            hashes_[x] != hashes_[y])
          return false;
    }
    return true;
  }

  void count_equal(const IdGraph& exact, const IdGraph& almost) {
    const bool single = graph_.tensors.size() == 1;
    std::set<std::pair<DomainId, DomainId>> seen;
    for (uint32_t a = 0; a < hashes_.size(); ++a)
      for (uint32_t b = a + 1; b < hashes_.size() && graph_.domains[b].tensor == graph_.domains[a].tensor; ++b) {
        if (hashes_[a] != hashes_[b]) continue;
        const DomainId x = exact.representative[a], y = exact.representative[b];
        if (x == y || (!single && !seen.insert(std::minmax(x, y)).second)) continue;
        if (!single && !equal_in_all_nests(exact, x, y)) continue;
        ++counts.equal_pairs;
        const DomainId u = almost.representative[a], v = almost.representative[b];
        if (u == v)
          ++counts.mapped;
        else if (!single && !equal_in_all_nests(almost, u, v))
          ++counts.kept_apart;  // to make them one would join two that differ
      }
  }

  const Case* case_ = nullptr;
  const std::vector<Binding>* bindings_ = nullptr;
  int64_t max_points_ = 0;
  bool visited_ = false;  // at least one point
  Graph graph_ = Case::scalars();
  IdGraphBuilder builder_;
  std::vector<uint64_t> hashes_;  // by domain: of its values at all points
  std::vector<Form> forms_;
  std::vector<DomainCheck> checks_;
  std::vector<int64_t> extents_, values_, at_, symbols_;
  std::vector<int> marks_;
};

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Counts all;  // of this process, for the last line

void report(const char* what, const Counts& c, const Clock& clock) {
  std::cout << what << ": " << c.cases << " cases, " << c.values << " values at " << c.points << " points, "
            << c.violations << " violations; mapped " << c.completeness() << " % of " << c.equal_pairs - c.kept_apart
            << " equal pairs";
  if (c.kept_apart > 0) std::cout << " (" << c.kept_apart << " more would join a pair that differs)";
  std::cout << "; " << clock.seconds() << " s\n";
  if (!c.missed.empty()) {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [text, n] : c.missed) order.emplace_back(-n, text);
    std::sort(order.begin(), order.end());
    if (std::getenv("SHOW_MISSED") == nullptr) order.resize(std::min<size_t>(order.size(), 3));
    for (const auto& [n, text] : order) std::cout << "    missed " << -n << " times: " << text << "\n";
  }
  all.add(c);
}

constexpr int number(int64_t value) { return static_cast<int>(value) + kScalarBase; }

struct Alphabet {
  std::vector<int> splits;                   // factors, inner and outer
  std::vector<std::pair<int, int>> resizes;  // left and right
};

bool is_power_of_two(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

// Every chain of up to `steps` transforms to the loops, the empty one too.
template <class Use>
void each_chain(Case& c, size_t tensor, int steps, const Alphabet& alphabet, const Use& use) {
  use();
  if (steps == 0) return;
  Tensor& t = c.tensors[tensor];
  std::vector<int64_t> e;
  t.extents({}, e);
  const std::vector<int> saved = t.loops;
  const int count = t.count;
  const auto step = [&](Kind kind, size_t i, size_t j, int factor = 0, int right = 0) {
    Tensor& mine = c.tensors[tensor];
    mine.apply(mine.chain, mine.loops, kind, i, j, factor, right);
    each_chain(c, tensor, steps - 1, alphabet, use);
    Tensor& again = c.tensors[tensor];
    again.chain.pop_back();
    again.loops = saved;
    again.count = count;
  };
  for (size_t i = 0; i < saved.size(); ++i) {
    for (const int f : alphabet.splits) {
      step(Kind::kSplitInner, i, i, number(f));
      step(Kind::kSplitOuter, i, i, number(f));
    }
    for (const auto& [left, right] : alphabet.resizes) step(Kind::kResize, i, i, number(left), number(right));
    for (size_t j = 0; j < saved.size(); ++j) {
      if (i == j) continue;
      step(Kind::kMerge, i, j);
      step(Kind::kCyclic, i, j);
      const int64_t x = e[Tensor::at(saved[i])], y = e[Tensor::at(saved[j])];
      if (is_power_of_two(y) && x <= y) step(Kind::kXor, i, j);
    }
  }
}

std::vector<int> up_to(int n) {
  std::vector<int> result;
  for (int i = 1; i <= n; ++i) result.push_back(i);
  return result;
}

void every_chain(const char* what, int steps, const std::vector<int>& extents, int axes, const Alphabet& alphabet) {
  const Clock clock;
  Law law;
  const std::vector<Binding> one(1);
  for (const int first : extents)
    for (const int second : axes == 2 ? extents : std::vector<int>{0}) {
      Case c;
      c.tensors.push_back(axes == 2 ? Tensor::of({number(first), number(second)}) : Tensor::of({number(first)}));
      each_chain(c, 0, steps, alphabet, [&] { law.check(c, one); });
    }
  report(what, law.counts, clock);
  EXPECT_EQ(law.counts.violations, 0);
  EXPECT_GE(law.counts.completeness(), 99.9);
}

TEST(IndexLaws, EveryChainOfTwoWithEveryFactor) {
  every_chain("two transforms, factors and extents 1 to 17", 2, up_to(17), 1,
              {up_to(17), {{0, 1}, {1, 0}, {2, 3}, {5, 0}}});
}

TEST(IndexLaws, EveryChainOfThree) {
  every_chain("three transforms, extents 1 to 17", 3, up_to(17), 1, {{1, 2, 3, 4, 5, 8}, {{1, 0}, {2, 3}}});
}

TEST(IndexLaws, EveryChainOfFour) { every_chain("four transforms, extents 1 to 17", 4, up_to(17), 1, {{2, 3}, {}}); }

TEST(IndexLaws, EveryChainOfThreeFromTwoAxes) {
  every_chain("three transforms of two axes", 3, {1, 2, 3, 4, 5, 8}, 2, {{2, 3}, {{1, 2}}});
}

}  // namespace
}  // namespace fusebox::index_laws
