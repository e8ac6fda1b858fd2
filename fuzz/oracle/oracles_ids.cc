// The oracle for a schedule's domains: compares their values, their checks and the id graphs with enumeration, which
// does not use the index algebra.
#include <algorithm>
#include <array>

#include "fuzz/index_laws/batch.h"
#include "fuzz/oracle/oracle.h"
#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/identity/id_graph_builder.h"
#include "passes/schedule/apply_steps.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

using Row = std::vector<int64_t>;

constexpr int64_t kMostPoints = 1024, kSampled = 48;

// The values of a tensor's domains at points of its nest, computed from its transforms only.
class Enumeration {
 public:
  Enumeration(const Graph& g, const Bindings& sizes, const std::map<DomainId, ValueId>& promoted, TensorId t)
      : g_(g),
        sizes_(sizes),
        promoted_(promoted),
        tensor_(g[t]),
        extents_(g.domains.size(), -1),
        rows_(g.domains.size()) {}

  // False if an extent is not known or the nest is empty.
  bool run() {
    const auto& loops = loop_of(tensor_);
    int64_t all = 1;
    for (DomainId d : loops) {
      const int64_t e = extent(d);
      if (e <= 0 || __builtin_mul_overflow(all, e, &all) || all > (int64_t{1} << 40)) return false;
    }
    is_sampled_ = all > kMostPoints;
    points_ = is_sampled_ ? kSampled : all;
    for (DomainId d : loops) rows_[d.index].assign(static_cast<size_t>(points_), 0);
    for (int64_t p = 0; p < points_; ++p) {
      // A sample: the last point, and points spread by a multiplicative sequence.
      int64_t rest = !is_sampled_ ? p
                     : p == 0     ? all - 1
                                  : static_cast<int64_t>((static_cast<uint64_t>(p) * 0x9e3779b97f4a7c15u >> 1) %
                                                         static_cast<uint64_t>(all));
      for (size_t k = loops.size(); k-- > 0;) {
        rows_[loops[k].index][static_cast<size_t>(p)] = rest % extent(loops[k]);
        rest /= extent(loops[k]);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = tensor_.transforms.size(); i-- > 0;) changed |= up(g_[tensor_.transforms[i]]);
      for (TransformId id : tensor_.transforms) changed |= down(g_[id]);
    }
    return true;
  }

  size_t points() const { return static_cast<size_t>(points_); }
  bool is_sampled() const { return is_sampled_; }
  // Empty if the loops do not determine the domain.
  const Row& row(DomainId d) const { return rows_[d.index]; }

  // -1 if it is not known.
  int64_t extent(DomainId d) {
    int64_t& known = extents_[d.index];
    if (known >= 0) return known;
    const IterDomain& domain = g_[d];
    if (!domain.def) {
      const auto at = promoted_.find(d);
      const bool is_broadcast = domain.iter_type == IterType::kBroadcast;
      const auto value = at != promoted_.end() ? evaluate_integer(g_, at->second, sizes_)
                         : is_broadcast        ? std::optional<int64_t>(1)
                                               : evaluate_integer(g_, domain.extent, sizes_);
      return known = value.value_or(-1);
    }
    const Transform& t = g_[domain.def];
    const int64_t a = extent(t.inputs[0]), b = t.inputs.size() > 1 ? extent(t.inputs[1]) : 1;
    if (a < 0 || b < 0) return -1;
    switch (t.kind) {
      case TransformKind::kMerge:
        return known = a * b;
      case TransformKind::kSwizzle:
        return known = d == t.outputs[0] ? a : b;
      case TransformKind::kResize: {
        const auto left = evaluate_integer(g_, t.factor, sizes_), right = evaluate_integer(g_, t.right, sizes_);
        return known = left && right ? a + *left + *right : -1;
      }
      case TransformKind::kSplit: {
        const auto factor = evaluate_integer(g_, t.factor, sizes_);
        if (!factor || *factor <= 0) return -1;
        const bool is_factor = (d == t.outputs[1]) == t.inner_split;
        return known = is_factor ? *factor : (a + *factor - 1) / *factor;
      }
    }
    return -1;
  }

 private:
  Row& of(DomainId d) { return rows_[d.index]; }
  bool has(DomainId d) const { return !rows_[d.index].empty(); }

  // The values that a transform needs, and those that it gives: from its outputs to its inputs, or the reverse.
  bool up(const Transform& t) {
    return computed(t.outputs, t.inputs, t, [&](int64_t a, int64_t b, int64_t n, int64_t left) {
      return t.kind == TransformKind::kSplit    ? Values{a * n + b, 0}
             : t.kind == TransformKind::kMerge  ? divided(a, n)
             : t.kind == TransformKind::kResize ? Values{a - left, 0}
             : t.swizzle == SwizzleType::kXor   ? Values{a, b ^ a}
                                                : Values{a, index_laws::floor_mod(b - a, n)};
    });
  }

  bool down(const Transform& t) {
    return computed(t.inputs, t.outputs, t, [&](int64_t a, int64_t b, int64_t n, int64_t left) {
      return t.kind == TransformKind::kSplit    ? divided(a, n)
             : t.kind == TransformKind::kMerge  ? Values{a * n + b, 0}
             : t.kind == TransformKind::kResize ? Values{a + left, 0}
             : t.swizzle == SwizzleType::kXor   ? Values{a, b ^ a}
                                                : Values{a, index_laws::floor_mod(a + b, n)};
    });
  }

  // The values of one domain or of two at a point.
  using Values = std::array<int64_t, 2>;
  static Values divided(int64_t a, int64_t n) { return {index_laws::floor_div(a, n), index_laws::floor_mod(a, n)}; }

  // Computes the values of the domains `to` at every point. Returns false if they are known, or not determined.
  template <class Domains, class Function>
  bool computed(const Domains& from, const Domains& to, const Transform& t, const Function& values_at) {
    if (has(to[0]) || !std::all_of(from.begin(), from.end(), [&](DomainId d) { return has(d); })) return false;
    const Row a = of(from[0]), b = from.size() > 1 ? of(from[1]) : Row();
    const int64_t n = extent(t.kind == TransformKind::kSplit ? t.outputs[1] : t.inputs.back());
    const auto left = t.kind == TransformKind::kResize ? evaluate_integer(g_, t.factor, sizes_) : int64_t{0};
    if (n <= 0 || !left) return false;
    for (DomainId d : to) of(d) = a;
    for (size_t p = 0; p < a.size(); ++p) {
      const Values values = values_at(a[p], b.empty() ? 0 : b[p], n, *left);
      for (size_t i = 0; i < to.size(); ++i) of(to[i])[p] = values[i];
    }
    return true;
  }

  const Graph& g_;
  const Bindings& sizes_;
  const std::map<DomainId, ValueId>& promoted_;
  const Tensor& tensor_;
  Row extents_;
  std::vector<Row> rows_;
  int64_t points_ = 0;
  bool is_sampled_ = false;
};

std::string name_of(const Graph& g, DomainId d) { return "%" + g[g[g[d].tensor].value].name + "." + g[d].name; }

class IdCheck {
 public:
  IdCheck(OracleRun& run, const Graph& g, const Bindings& sizes)
      : run_(run), g_(g), sizes_(sizes), plan_(plan_nests(g)), rows_(g.domains.size()) {
    for (size_t i = 0; i < g.values.size(); ++i)
      symbols_.push_back(g.is_tensor(ValueId(i)) ? 0 : evaluate_integer(g, ValueId(i), sizes).value_or(0));
  }

  void check() {
    IdGraphBuilder builder;
    builder.start(g_, [&](TensorNest& nest, const std::vector<DomainId>&) { visit(nest); }, run_.options().defects);
    for (const IdGraphKind kind : {IdGraphKind::kExact, IdGraphKind::kAlmostExact})
      check_classes(builder.make(kind, false));
  }

 private:
  void visit(TensorNest& nest) {
    const TensorId id = nest.tensor;
    Enumeration enumeration(g_, sizes_, plan_.promoted, id);
    if (!enumeration.run()) return;
    const auto& loops = loop_of(g_[id]);
    const std::vector<DomainId> domains = domains_of(g_, g_[id]);
    batch_.start(nest.algebra, enumeration.points(), loops.size(), symbols_);
    for (size_t k = 0; k < loops.size(); ++k) batch_.loop(k) = enumeration.row(loops[k]);
    for (DomainId d : domains) {
      const Row& expected = enumeration.row(d);
      if (expected.empty() || !nest.values.known(d)) continue;
      const Row& row = batch_.of(nest.values.value(d));
      if (row != expected) {
        const auto p = static_cast<size_t>(std::mismatch(row.begin(), row.end(), expected.begin()).first - row.begin());
        run_.report("id-graphs", "value", "",
                    name_of(g_, d) + " should be " + std::to_string(expected[p]) + " at loop point " +
                        std::to_string(p) + " and is " + nest.algebra.to_string(nest.values.value(d)));
        return;
      }
      rows_[d.index] = expected;
    }
    check_elements(nest, enumeration);
  }

  // Exactly the points at which all checks hold are elements, each once.
  void check_elements(TensorNest& nest, Enumeration& enumeration) {
    const Tensor& t = g_[nest.tensor];
    // A domain that an rfactor or reshape makes from root domains may have elements that the root domains lack.
    if (enumeration.is_sampled() || !t.loop_broadcasts.empty() || !t.root.empty()) return;
    int64_t elements = 1;
    for (DomainId d : t.logical) {
      if (g_[d].iter_type == IterType::kBroadcast || enumeration.row(d).empty()) return;
      elements *= enumeration.extent(d);
    }
    // A resized loop may leave out elements or reach none. Other checks cover that.
    for (TransformId id : t.transforms)
      if (g_[id].kind == TransformKind::kResize) return;
    std::vector<char> holds(enumeration.points(), 1);
    for (const DomainCheck& check : nest.values.checks()) {
      const Row extent = batch_.of(check.extent), &value = batch_.of(check.value);
      for (size_t p = 0; p < holds.size(); ++p)
        if (value[p] >= extent[p] || (check.lower && value[p] < 0)) holds[p] = 0;
    }
    std::vector<char> met(static_cast<size_t>(elements), 0);
    int64_t count = 0;
    for (size_t p = 0; p < holds.size(); ++p) {
      if (holds[p] == 0) continue;
      int64_t at = 0;
      for (DomainId d : t.logical) {
        const int64_t value = enumeration.row(d)[p], extent = enumeration.extent(d);
        if (value < 0 || value >= extent) {
          run_.report("id-graphs", "check", "",
                      "the checks of %" + g_[t.value].name + " hold at loop point " + std::to_string(p) + ", where " +
                          name_of(g_, d) + " is " + std::to_string(value) + " of " + std::to_string(extent));
          return;
        }
        at = at * extent + value;
      }
      count += met[static_cast<size_t>(at)] == 0;
      if (met[static_cast<size_t>(at)]++ != 0) {
        run_.report("id-graphs", "check", "", "two loop points are one element of %" + g_[t.value].name);
        return;
      }
    }
    if (count != elements)
      run_.report("id-graphs", "check", "",
                  "the checks of %" + g_[t.value].name + " hold for " + std::to_string(count) + " of its " +
                      std::to_string(elements) + " elements");
  }

  // Two domains of one nest in the same class must have the same value.
  void check_classes(const IdGraph& ids) {
    for (const std::vector<DomainId>& members : ids.classes())
      for (size_t i = 0; i < members.size(); ++i)
        for (size_t k = i + 1; k < members.size(); ++k) {
          const Row &a = rows_[members[i].index], &b = rows_[members[k].index];
          if (g_[members[i]].tensor != g_[members[k]].tensor || a.empty() || b.empty() || a == b) continue;
          run_.report("id-graphs", std::string(text(ids.kind)), "",
                      "the " + std::string(text(ids.kind)) + " graph makes " + name_of(g_, members[i]) + " and " +
                          name_of(g_, members[k]) + " one, and they differ");
          return;
        }
  }

  OracleRun& run_;
  const Graph& g_;
  const Bindings& sizes_;
  NestPlan plan_;
  std::vector<Row> rows_;
  Row symbols_;
  index_laws::Batch batch_;
};

}  // namespace

void id_graphs(OracleRun& run) {
  const Compiled* c = run.compiled();
  // One kernel has the sizes of the fusion. A segment among several has sizes from the values that cross its border.
  if (!c || c->scheduled.size() != 1 || c->kernels[0].ops.empty()) return;
  // The domains rely on what a launch checks: facts about sizes, and the alignment of vectors. A launch that is refused
  // for one reason may break another rule too: an index outside its axis is found before the launch.
  if (run.scheduled().failure && is_launch_refusal(run.scheduled().failure->code)) return;
  const Graph& g = c->scheduled[0];
  // A copy that nothing reads is not made, so the launch does not check its alignment.
  const auto readers = uses(g);
  for (size_t i = 0; i < g.values.size(); ++i) {
    if (!g.is_tensor(ValueId(i)) || !readers[i].empty()) continue;
    for (DomainId d : loop_of(g.tensor_of(ValueId(i))))
      if (g[d].parallel == ParallelType::kVectorize) return;
  }
  try {
    // A schedule may give the inputs another order.
    IdCheck(run, g, rebind(run.fusion(), run.sizes(), g)).check();
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) run.report("id-graphs", e, "the id graphs of the schedule");
  }
}

}  // namespace fusebox::fuzz
