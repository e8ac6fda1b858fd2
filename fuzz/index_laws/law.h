// The laws of indices, predicates and id graphs. They are checked by enumerating every loop point of a case, including
// points outside the tensor.
//   - Each normal form has the value that the transforms give when computed without the index algebra.
//   - Two domains of one tensor in the same class of the finished exact or almost-exact graph have the same value.
//   - The checks hold exactly at the points that are elements, and every element is exactly one point.
// It also counts pairs that are equal but not recognised, which measures completeness.
//
//   Law law;
//   law.check(c, {Binding{}});
//   law.counts.violations, law.violations       // 0, and none
#pragma once

#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuzz/index_laws/batch.h"
#include "fuzz/index_laws/cases.h"
#include "passes/identity/id_graph_builder.h"

namespace fusebox::index_laws {

inline constexpr int64_t kSamples = 40;  // points taken from a binding that has too many

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

// Drops numbers and the numbers of loops, so that similar misses count as one.
inline std::string shape_of(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) result += c;
  return result;
}

class Law {
 public:
  // Checks a case at all points under each binding. If a binding has more points than the limit, it checks values at a
  // sample.
  void check(const Case& c, const std::vector<Binding>& bindings, int64_t max_points = 100000) {
    ++counts.cases;
    case_ = &c;
    bindings_ = &bindings;
    max_points_ = max_points;
    c.build(graph_);
    hashes_.assign(graph_.domains.size(), 0);
    visited_.assign(c.tensors.size(), false);
    builder_.start(
        graph_, [&](TensorNest& nest, const std::vector<DomainId>& values) { visit(nest, values); }, defects);
    const IdGraph exact = builder_.make(IdGraphKind::kExact, false);
    const IdGraph almost = builder_.make(IdGraphKind::kAlmostExact, false);
    if (std::find(visited_.begin(), visited_.end(), false) != visited_.end()) return;
    check_classes(exact);
    check_classes(almost);
    count_equal(exact, almost);
  }

  Counts counts;
  std::vector<std::string> violations;  // the first few, with their cases
  Defects defects;                      // used when the forms are made

 private:
  void fail(const std::string& what) {
    if (counts.violations++ < 5) violations.push_back(what + "\n" + describe());
  }

  std::string describe() const {
    std::string text;
    for (const Tensor& t : case_->tensors) text += t.to_string() + "\n";
    return text;
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
        if (same && !shown && visited_[nest.tensor.index])
          ++counts.missed[shape_of(nest.algebra.to_string(forms_[x]) + "  ==  " + nest.algebra.to_string(forms_[y]))];
      }
  }

  void visit(TensorNest& nest, const Tensor& t, size_t base, const Binding& binding) {
    const auto count = static_cast<size_t>(t.count);
    if (!t.is_legal(binding)) return;
    t.extents(binding, extents_);
    int64_t points = 1;
    for (int loop : t.loops) points *= std::max<int64_t>(extents_[Tensor::at(loop)], 0);
    if (points == 0 || (points > max_points_ && bindings_->size() == 1)) return;
    const bool sampled = points > max_points_;
    const auto taken = static_cast<size_t>(sampled ? kSamples : points);
    visited_[nest.tensor.index] = true;
    // Symbols are indexed by the ids of their values.
    symbols_.resize(kScalars);
    symbols_[kSymbolN] = binding.n;
    symbols_[kSymbolM] = binding.m;
    const bool with_elements = !sampled && Tensor::has_places(t.down, binding);
    if (with_elements) mark_elements(t, binding, points);

    batch_.start(nest.algebra, taken, t.loops.size(), symbols_);
    expected_.resize(count * taken);
    values_.assign(count, 0);
    for (size_t p = 0; p < taken; ++p) {
      // A sample: the last point, and points spread by a multiplicative sequence.
      const auto i = static_cast<int64_t>(p);
      int64_t rest = !sampled ? i : p == 0 ? points - 1 : i * 0x9e3779b1 % points;
      for (size_t k = t.loops.size(); k-- > 0;) {
        const int64_t extent = extents_[Tensor::at(t.loops[k])];
        values_[Tensor::at(t.loops[k])] = batch_.loop(k)[p] = rest % extent;
        rest /= extent;
      }
      t.from_loops(values_, extents_, binding);
      for (size_t d = 0; d < count; ++d) expected_[d * taken + p] = values_[d];
    }
    for (size_t d = 0; d < count; ++d) {
      const auto& row = batch_.of(forms_[d]);
      const int64_t* wanted = &expected_[d * taken];
      if (!std::equal(row.begin(), row.end(), wanted)) {
        const auto p = static_cast<size_t>(std::mismatch(row.begin(), row.end(), wanted).first - row.begin());
        fail("domain " + std::to_string(d) + " should be " + std::to_string(wanted[p]) + " at point " +
             std::to_string(p) + ": " + nest.algebra.to_string(forms_[d]));
      }
      uint64_t& hash = hashes_[base + d];
      for (size_t p = 0; p < taken; ++p) hash = mix(hash, static_cast<uint64_t>(wanted[p]));
    }
    if (with_elements) check_predicate(base);
    counts.points += static_cast<int64_t>(taken);
    counts.values += static_cast<int64_t>(taken * count);
  }

  void check_predicate(size_t base) {
    holds_.assign(marks_.size(), 1);
    for (const DomainCheck& check : checks_) {
      if (check.value != forms_[check.domain.index - base]) fail("a check is not of its domain's value");
      const int64_t extent = batch_.of(check.extent)[0];
      const auto& row = batch_.of(check.value);
      for (size_t p = 0; p < row.size(); ++p)
        if (row[p] >= extent || (check.lower && row[p] < 0)) holds_[p] = 0;
    }
    if (holds_ == marks_) return;
    const auto p =
        static_cast<size_t>(std::mismatch(holds_.begin(), holds_.end(), marks_.begin()).first - holds_.begin());
    fail("point " + std::to_string(p) + " is " + std::to_string(marks_[p]) + " elements, and its checks " +
         (holds_[p] != 0 ? "hold" : "do not hold"));
  }

  // Counts the elements at each loop point, by sending every element through the chain.
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

  // Checks every pair of domains of one tensor in a finished class.
  void check_classes(const IdGraph& ids) {
    for (uint32_t a = 0; a < hashes_.size(); ++a)
      for (uint32_t b = a + 1; b < hashes_.size() && graph_.domains[b].tensor == graph_.domains[a].tensor; ++b)
        if (ids.representative[a] == ids.representative[b] && hashes_[a] != hashes_[b])
          fail("the " + std::string(text(ids.kind)) + " graph makes " + std::to_string(a) + " and " +
               std::to_string(b) + " one, and they differ");
  }

  // Whether two classes have the same values in every nest that has domains of both.
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
          ++counts.kept_apart;  // joining them would also join two that differ
      }
  }

  const Case* case_ = nullptr;
  const std::vector<Binding>* bindings_ = nullptr;
  int64_t max_points_ = 0;
  std::vector<bool> visited_;  // for each tensor: had at least one point
  Graph graph_ = Case::scalars();
  IdGraphBuilder builder_;
  std::vector<uint64_t> hashes_;  // for each domain: the hash of its values at all points
  std::vector<Form> forms_;
  std::vector<DomainCheck> checks_;
  Batch batch_;
  std::vector<int64_t> extents_, values_, expected_, symbols_;
  std::vector<int> marks_, holds_;
};

}  // namespace fusebox::index_laws
