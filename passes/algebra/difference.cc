#include "passes/algebra/difference.h"

#include <algorithm>

namespace fusebox {
namespace {

constexpr int64_t kSizes[] = {2, 3, 1, 4, 5, 6, 8, 12, 7, 16};
constexpr int64_t kMaxBindings = 1000;
constexpr int64_t kMaxPoints = 20000;  // of one binding
// Points of all bindings after which the other bindings are tried at fewer points each, so that a search takes no minutes.
constexpr int64_t kManyPoints = 200'000, kFewPoints = 100;

class Search {
 public:
  Search(IndexAlgebra& algebra, const Graph& g, Form a, Form b, std::span<const LoopVariable> loops,
         std::span<const std::pair<Form, Form>> divides)
      : algebra_(algebra), g_(g), a_(a), b_(b), divides_(divides) {
    for (const LoopVariable& loop : loops) {
      const bool is_read = algebra.depends_on(a, loop.id) || algebra.depends_on(b, loop.id);
      (is_read ? loops_ : others_).push_back(loop);
    }
    symbol_values_.assign(g.values.size(), 1);
    for (uint32_t i = 0; i < g.values.size(); ++i)
      if (algebra.has_symbol(static_cast<int>(i))) symbols_.push_back(i);
    int last = -1;
    for (const LoopVariable& loop : loops) last = std::max(last, loop.id);
    at_.assign(static_cast<size_t>(last + 1), 0);
  }

  std::optional<Difference> run() {
    int64_t bindings = 1;
    for (size_t i = 0; i < symbols_.size() && bindings < kMaxBindings; ++i)
      bindings *= static_cast<int64_t>(std::size(kSizes));
    for (int64_t n = 0; n < std::min(bindings, kMaxBindings); ++n) {
      int64_t rest = n;
      for (uint32_t s : symbols_) {
        symbol_values_[s] = kSizes[rest % static_cast<int64_t>(std::size(kSizes))];
        rest /= static_cast<int64_t>(std::size(kSizes));
      }
      if (!is_allowed()) continue;
      if (auto found = try_points()) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<int64_t> value(Form f) const { return algebra_.evaluate(f, at_, symbol_values_); }

  bool is_allowed() const {
    return std::all_of(divides_.begin(), divides_.end(), [&](const auto& fact) {
      const auto divisor = value(fact.first), whole = value(fact.second);
      return divisor && whole && *divisor > 0 && *whole % *divisor == 0;
    });
  }

  std::optional<Difference> try_points() {
    // A loop without a point leaves the nest without any, whether the forms depend on it or not.
    for (const LoopVariable& loop : others_)
      if (value(algebra_.loop_extent(loop.id)) == 0) return std::nullopt;
    std::vector<int64_t> extents;
    int64_t points = 1;
    for (const LoopVariable& loop : loops_) {
      const auto extent = value(algebra_.loop_extent(loop.id));
      if (!extent || *extent < 1) return std::nullopt;
      extents.push_back(*extent);
      if (__builtin_mul_overflow(points, *extent, &points)) points = INT64_MAX;
    }
    const int64_t tried = std::min(points, tried_ < kManyPoints ? kMaxPoints : kFewPoints);
    tried_ += tried;
    for (int64_t i = 0; i < tried; ++i) {
      // Too many points: start at the last point of all loops, then step evenly.
      int64_t rest = tried == points ? i : points - 1 - i * (points / tried);
      for (size_t k = loops_.size(); k-- > 0;) {
        at_[static_cast<size_t>(loops_[k].id)] = rest % extents[k];
        rest /= extents[k];
      }
      const auto a = value(a_), b = value(b_);
      if (a && b && *a != *b) return found(*a, *b);
    }
    return std::nullopt;
  }

  Difference found(int64_t a, int64_t b) const {
    Difference result;
    for (uint32_t s : symbols_) result.sizes.push_back({"%" + g_.values[s].name, symbol_values_[s]});
    for (const LoopVariable& loop : loops_) result.point.push_back({loop.name, at_[static_cast<size_t>(loop.id)]});
    result.a = a;
    result.b = b;
    return result;
  }

  IndexAlgebra& algebra_;
  const Graph& g_;
  Form a_, b_;
  std::span<const std::pair<Form, Form>> divides_;
  std::vector<LoopVariable> loops_, others_;  // those on which the forms depend, and all others
  std::vector<uint32_t> symbols_;
  std::vector<int64_t> symbol_values_, at_;
  int64_t tried_ = 0;  // points, of all bindings
};

}  // namespace

std::optional<Difference> find_difference(IndexAlgebra& algebra, const Graph& g, Form a, Form b,
                                          std::span<const LoopVariable> loops,
                                          std::span<const std::pair<Form, Form>> divides) {
  return Search(algebra, g, a, b, loops, divides).run();
}

}  // namespace fusebox
