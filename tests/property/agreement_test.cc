// The law of agreement at elements: a proof about a pair holds at every element, computed directly from the transforms,
// and a point named as a difference is one. Tests all pairs of domains of one to three tensors. One of them may be a
// reshape or a pad; they read each other in a row, or two read the first.
#include "passes/identity/agreement.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>

#include "fuzz/index_laws/cases.h"
#include "fuzz/index_laws/random.h"
#include "tests/property/index_laws_settings.h"

namespace fusebox::index_laws {
namespace {

class Law {
 public:
  void check(const Case& c, const std::vector<Binding>& bindings) {
    ++cases;
    case_ = &c;
    c.build(graph_);
    for (uint32_t a = 0; a < graph_.domains.size(); ++a)
      for (uint32_t b = a + 1; b < graph_.domains.size(); ++b)
        if (!HasFailure()) check(DomainId(a), DomainId(b), bindings);
  }

  void report(const char* what) const {
    std::cout << what << ": " << cases << " cases, " << pairs << " pairs, " << equal << " equal, of them proved "
              << 100.0 * static_cast<double>(proved) / static_cast<double>(equal) << " %; of " << pairs - equal
              << " others a difference was found for "
              << 100.0 * static_cast<double>(found) / static_cast<double>(pairs - equal) << " %\n";
  }

  int64_t cases = 0, pairs = 0, equal = 0, proved = 0, found = 0;

 private:
  static bool HasFailure() { return ::testing::Test::HasFailure(); }

  void check(DomainId a, DomainId b, const std::vector<Binding>& bindings) {
    const Agreement r = agree_at_elements(graph_, a, b);
    ++pairs;
    bool same = true;
    for (const Binding& binding : bindings)
      if (is_legal(binding)) same = same && agree(a, b, binding);
    equal += same;
    proved += same && r.proved;
    const auto what = [&] {
      return graph_[a].name + " of " + std::to_string(graph_[a].tensor.index) + " and " + graph_[b].name + " of " +
             std::to_string(graph_[b].tensor.index) + ": " + r.verdict + "\n" + describe();
    };
    EXPECT_TRUE(r.comparable) << what();
    EXPECT_TRUE(!r.proved || same) << what();
    if (!r.difference) return;
    found += !same;
    Binding at = bindings[0];
    for (const NamedValue& v : r.difference->sizes) (v.name == "%n" ? at.n : at.m) = v.value;
    EXPECT_TRUE(is_legal(at) && !agree(a, b, at)) << what() << " with n = " << at.n << ", m = " << at.m;
    EXPECT_NE(r.difference->a, r.difference->b);
  }

  bool is_legal(const Binding& binding) const {
    return std::all_of(case_->tensors.begin(), case_->tensors.end(),
                       [&](const Tensor& t) { return t.is_legal(binding); });
  }

  // Whether the two are equal at every element of the tensor that determines both.
  bool agree(DomainId a, DomainId b, const Binding& binding) {
    const size_t s = graph_[a].tensor.index, t = graph_[b].tensor.index;  // s <= t
    // In a row, the later tensor reads the earlier one; in branches, elements of the first tensor determine both.
    const bool from_first = case_->branched && s == 1 && t == 2;
    const Tensor& start = case_->tensors[from_first ? 0 : t];
    std::vector<int64_t> e, v;
    start.extents(binding, e);
    int64_t elements = 1;
    for (int d : start.logical) elements *= std::max<int64_t>(e[Tensor::at(d)], 0);
    for (int64_t i = 0; i < elements; ++i) {
      v.assign(static_cast<size_t>(start.count), 0);
      int64_t rest = i;
      for (size_t k = start.logical.size(); k-- > 0;) {
        const int64_t extent = e[Tensor::at(start.logical[k])];
        v[Tensor::at(start.logical[k])] = rest % extent;
        rest /= extent;
      }
      Tensor::up(start.op, v, e, binding);
      Tensor::forward(start.chain, v, e, binding);
      Tensor::forward(start.down, v, e, binding);
      const std::vector<int64_t> root(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(start.axes.size()));
      if (value(s, a, root, v, from_first ? 0 : t, binding) != value(t, b, root, v, from_first ? 0 : t, binding))
        return false;
    }
    return true;
  }

  int64_t value(size_t tensor, DomainId d, const std::vector<int64_t>& root, const std::vector<int64_t>& of_start,
                size_t start, const Binding& binding) const {
    size_t base = 0;
    for (size_t i = 0; i < tensor; ++i) base += static_cast<size_t>(case_->tensors[i].count);
    if (tensor == start) return of_start[d.index - base];
    const Tensor& t = case_->tensors[tensor];
    std::vector<int64_t> e, v(static_cast<size_t>(t.count));
    t.extents(binding, e);
    std::copy(root.begin(), root.end(), v.begin());
    Tensor::forward(t.op, v, e, binding);
    Tensor::forward(t.chain, v, e, binding);
    Tensor::forward(t.down, v, e, binding);
    return v[d.index - base];
  }

  std::string describe() const {
    std::string text = case_->branched ? "branched\n" : "";
    for (const Tensor& t : case_->tensors) text += t.to_string() + "\n";
    return text;
  }

  const Case* case_ = nullptr;
  Graph graph_ = Case::scalars();
};

void run(const char* what, const RandomOptions& options) {
  Law law;
  Generator generator(options, first_seed());
  for (int n = 0; n < options.cases * case_factor(); ++n) {
    Case c = generator.next();
    c.branched = c.tensors.size() == 3 && n % 2 == 0;
    c.transposed = false;
    law.check(c, options.bindings);
  }
  law.report(what);
  EXPECT_GT(law.proved * 10, law.equal * 9);
}

const std::vector<Binding> kBindings = {{1, 1}, {2, 7}, {3, 2}, {4, 4}, {5, 3}, {8, 1}, {9, 5}, {16, 2}, {35, 18}};

TEST(AgreementLaw, ConstantExtents) { run("constant extents", {.cases = 1500}); }

TEST(AgreementLaw, SymbolicExtents) {
  run("symbolic extents", {.symbolic = true, .cases = 250, .bindings = kBindings});
}

TEST(AgreementLaw, SymbolicExtentsThatAReshapeDivides) {
  std::vector<Binding> multiples;
  for (const Binding& b : kBindings) multiples.push_back({4 * b.n, b.m});
  run("symbolic extents that 4 divides", {.symbolic = true, .reshape = true, .cases = 250, .bindings = multiples});
}

}  // namespace
}  // namespace fusebox::index_laws
