// Reductions of extents and of the numbers that decide them. The consequences of a change are computed op by op as
// numbers, and the fusion is remade with these.
#include <algorithm>

#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/reduce/reduce_axes.h"
#include "fuzz/reduce/reduce_rules.h"
#include "ir/scalar/numeric.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {
namespace {

using OperandOf = std::pair<OpId, size_t>;

class ExtentSolver {
 public:
  explicit ExtentSolver(const Case& c) : g_(c.fusion()), sizes_(sizes_of(g_, c.inputs())) {
    std::map<ValueId, AxisOf> symbols;
    for (ValueId v : inputs(g_)) {
      if (!g_.is_tensor(v)) continue;
      take_shape(v);
      const auto& axes = g_.tensor_of(v).logical;
      for (size_t i = 0; i < axes.size(); ++i) {
        const ValueId size = g_[axes[i]].size();
        if (g_.is_constant(size)) continue;
        const auto [it, is_new] = symbols.emplace(size, AxisOf{v, i});
        if (!is_new) classes_.unite(it->second, {v, i});
      }
    }
    for (OpId id : tensor_ops(g_)) {
      const Op& op = g_[id];
      for (ValueId y : op.results) take_shape(y);
      for (ValueId y : op.results) {
        for (size_t i = 0; i < shapes_[y].size(); ++i) classes_.unite({op.results[0], i}, {y, i});
        if (op.kind == OpKind::kSlice || op.kind == OpKind::kPad) continue;
        for (const AxisLink& l : axis_links(g_, id, sizes_).links) {
          const ValueId x = op.operands[l.operand];
          if (shapes_[x][l.axis] == shapes_[y][l.result]) classes_.unite({x, l.axis}, {y, l.result});
        }
      }
      for (size_t k = 1; k < op.operands.size(); ++k)
        if (demands(op.kind, kReduction) && op.operands[k])
          for (size_t i = 0; i < shapes_[op.operands[0]].size(); ++i)
            classes_.unite({op.operands[0], i}, {op.operands[k], i});
    }
  }

  bool is_known() const { return known_; }
  // One axis of each class, with its extent.
  std::vector<std::pair<AxisOf, int64_t>> axes() const {
    std::map<AxisOf, std::pair<AxisOf, int64_t>> found;
    for (const auto& [v, shape] : shapes_)
      for (size_t i = 0; i < shape.size(); ++i) found.emplace(classes_.find({v, i}), std::pair(AxisOf{v, i}, shape[i]));
    std::vector<std::pair<AxisOf, int64_t>> result;
    for (const auto& [first, member] : found) result.push_back(member);
    return result;
  }

  // The change that gives an axis another extent or an operand another number.
  std::optional<FusionChange> solve(std::optional<std::pair<AxisOf, int64_t>> seed,
                                    std::map<OperandOf, int64_t> numbers) {
    numbers_ = std::move(numbers);
    chosen_.clear();
    if (seed) chosen_[classes_.find(seed->first)] = seed->second;
    seed_ = seed ? std::optional(classes_.find(seed->first)) : std::nullopt;
    changed_ = true;
    for (int round = 0; changed_; ++round) {
      changed_ = false;
      if (round == 8) return std::nullopt;
      for (OpId id : tensor_ops(g_))
        if (!follow(id)) return std::nullopt;
    }
    FusionChange change;
    for (ValueId v : inputs(g_))
      for (size_t i = 0; g_.is_tensor(v) && i < shapes_[v].size(); ++i)
        if (extent(v, i) != shapes_[v][i]) change.extents[v][i] = extent(v, i);
    for (OpId id : tensor_ops(g_)) patch(id, change);
    return change;
  }

 private:
  void take_shape(ValueId v) {
    const auto shape = evaluate_shape(g_, v, sizes_);
    known_ &= shape.has_value();
    shapes_[v] = shape.value_or(std::vector<int64_t>(rank_of(g_, v), 1));
  }

  size_t axis_of(const Op& op) const {
    return axis_from(op.attrs.integer(AttrKey::kAxis), shapes_.at(op.results[0]).size());
  }

  int64_t extent(ValueId v, size_t axis) {
    const auto it = chosen_.find(classes_.find({v, axis}));
    return it == chosen_.end() ? shapes_[v][axis] : it->second;
  }

  // Returns false for a negative extent, or if the change itself sets this axis to another one.
  bool choose(ValueId v, size_t axis, int64_t e) {
    if (e < 0) return false;
    if (extent(v, axis) == e) return true;
    const AxisOf root = classes_.find({v, axis});
    if (seed_ == root) return false;
    chosen_[root] = e;
    changed_ = true;
    return true;
  }

  std::optional<int64_t> number(OpId id, size_t k) const {
    if (const auto it = numbers_.find({id, k}); it != numbers_.end()) return it->second;
    return g_[id].operands[k] ? evaluate_integer(g_, g_[id].operands[k], sizes_) : std::nullopt;
  }

  bool follow(OpId id) {
    const Op& op = g_[id];
    const ValueId x = op.operands.empty() ? ValueId() : op.operands[0], y = op.results[0];
    const size_t rank = shapes_[y].size();
    const auto slots = slot_ranges(*row_of(op.kind).format, op.operands.size());
    if (op.kind == OpKind::kSlice) {
      for (size_t i = 0; i < rank; ++i) {
        const int64_t e = extent(x, i);
        const auto start = number(id, (*slots)[1].begin + i), stop = number(id, (*slots)[2].begin + i);
        const auto step = (*slots)[3].count > 0 ? number(id, (*slots)[3].begin + i) : std::optional<int64_t>(1);
        if (!start || !stop || !step || *step < 1) return false;
        const int64_t from = std::clamp<int64_t>(*start < 0 ? *start + e : *start, 0, e);
        const int64_t to = std::clamp<int64_t>(*stop < 0 ? *stop + e : *stop, from, e);
        if (!choose(y, i, (to - from + *step - 1) / *step)) return false;
      }
    } else if (op.kind == OpKind::kPad) {
      std::vector<int64_t> sizes;
      for (size_t i = 0; i < rank; ++i) sizes.push_back(extent(x, i));
      const SlotRange widths = (*slots)[2];
      for (size_t i = 0; i < widths.count; ++i) {
        const auto width = number(id, widths.begin + i);
        if (!width) return false;
        sizes[rank - 1 - i / 2] += *width;
      }
      for (size_t i = 0; i < rank; ++i)
        if (!choose(y, i, sizes[i])) return false;
    } else if (op.kind == OpKind::kCat) {
      int64_t sum = 0;
      for (ValueId v : op.operands) sum += extent(v, axis_of(op));
      return choose(y, axis_of(op), sum);
    } else if (op.kind == OpKind::kReshape) {
      for (const auto& group : axis_links(g_, id, sizes_).groups)
        if (!follow(x, y, group)) return false;
    }
    return true;
  }

  // Keeps both sides of a reshape equal: if possible, one extent of the result takes what the others leave.
  bool follow(ValueId x, ValueId y, const AxisLinks::Group& group) {
    int64_t from = 1, to = 1;
    for (size_t i : group.axes) from *= extent(x, i);
    for (size_t i : group.results) to *= extent(y, i);
    if (from == to) return true;
    for (size_t i : group.results) {
      int64_t rest = 1;
      for (size_t k : group.results) rest *= k == i ? 1 : extent(y, k);
      if (rest > 0 && from % rest == 0) return choose(y, i, from / rest);
    }
    for (size_t i : group.results)
      if (!choose(y, i, i == group.results[0] ? from : 1)) return false;
    return !group.results.empty();
  }

  // Writes the given numbers, and the extents that an op lists itself.
  void patch(OpId id, FusionChange& change) {
    const Op& op = g_[id];
    const ValueId y = op.results[0];
    OpPatch patch{{}, op.attrs};
    bool differs = false;
    const auto slots = slot_ranges(*row_of(op.kind).format, op.operands.size());
    const bool lists =
        stretches(op.kind) || op.kind == OpKind::kReshape || op.kind == OpKind::kFull || is_random(op.kind);
    const size_t first = lists && slots ? (*slots)[is_random(op.kind) ? 4 : 1].begin : 0;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ValueId v = op.operands[k];
      Scalar now = v ? Scalar(v) : Scalar(kAbsent);
      const auto written = v ? constant_integer(g_, v) : std::nullopt;
      if (const auto it = numbers_.find({id, k}); it != numbers_.end()) {
        now = Scalar(it->second);
        differs = true;
      } else if (written && *written >= 0 && ((lists && k >= first) || (op.kind == OpKind::kIota && k == 0))) {
        const size_t axis = k - first;
        if (axis < shapes_[y].size() && extent(y, axis) != shapes_[y][axis]) {
          now = Scalar(extent(y, axis));
          differs = true;
        }
      }
      patch.operands.push_back(now);
    }
    if (differs) change.patched[id] = std::move(patch);
  }

  const Graph& g_;
  Bindings sizes_;
  std::map<ValueId, std::vector<int64_t>> shapes_;
  AxisClasses classes_;
  std::map<AxisOf, int64_t> chosen_;
  std::map<OperandOf, int64_t> numbers_;
  std::optional<AxisOf> seed_;
  bool known_ = true, changed_ = false;
};

bool apply_solution(Case& to, std::optional<FusionChange> change) {
  if (!change) return false;
  return change_fusion(to, *change);
}

// Gives other numbers to operands of the op that makes the named value.
Edit with_numbers(const std::string& name, const std::map<size_t, int64_t>& numbers) {
  return [name, numbers](Case& to) {
    const auto op = op_making(to.fusion(), name);
    if (!op || numbers.rbegin()->first >= to.fusion()[*op].operands.size()) return false;
    std::map<OperandOf, int64_t> operands;
    for (const auto& [k, m] : numbers) operands[{*op, k}] = m;
    const Case from = to;
    return apply_solution(to, ExtentSolver(from).solve(std::nullopt, std::move(operands)));
  };
}

}  // namespace

std::vector<Edit> shrink_extents(const Case& c) {
  std::vector<Edit> edits;
  const ExtentSolver solver(c);
  if (!solver.is_known()) return {};
  for (const auto& [at, extent] : solver.axes())
    for (int64_t smaller : smaller_numbers(extent, 1))
      edits.push_back([name = c.fusion()[at.first].name, axis = at.second, smaller](Case& to) {
        const auto v = find_value(to.fusion(), name);
        if (!v || !to.fusion().is_tensor(*v) || axis >= rank_of(to.fusion(), *v)) return false;
        const Case from = to;
        return apply_solution(to, ExtentSolver(from).solve(std::pair(AxisOf{*v, axis}, smaller), {}));
      });
  return edits;
}

std::vector<Edit> shrink_numbers(const Case& c) {
  std::vector<Edit> edits;
  const Graph& g = c.fusion();
  const Bindings sizes = sizes_of(g, c.inputs());
  for (OpId id : tensor_ops(g)) {
    if (g[id].kind != OpKind::kSlice && g[id].kind != OpKind::kPad) continue;
    const auto slots = slot_ranges(*row_of(g[id].kind).format, g[id].operands.size());
    if (!slots) continue;
    for (size_t k = 1; k < g[id].operands.size(); ++k) {
      const ValueId v = g[id].operands[k];
      if (!v || g[v].dtype != Dtype::kIndex) continue;
      const auto n = evaluate_integer(g, v, sizes);
      if (!n) continue;
      std::vector<int64_t> smaller = *n < 0 ? std::vector<int64_t>{0, *n / 2, *n + 1} : smaller_numbers(*n, 0);
      if (!g.is_constant(v)) smaller.push_back(*n);
      const std::string& name = g[g[id].results[0]].name;
      for (int64_t m : smaller) edits.push_back(with_numbers(name, {{k, m}}));
      // A slice of the same length that begins at 0.
      const SlotRange starts = (*slots)[1], stops = (*slots)[2];
      if (g[id].kind != OpKind::kSlice || k < starts.begin || k >= starts.begin + starts.count || *n <= 0) continue;
      const size_t stop_at = k - starts.begin + stops.begin;
      if (const auto stop = evaluate_integer(g, g[id].operands[stop_at], sizes); stop && *stop > *n)
        edits.push_back(with_numbers(name, {{k, 0}, {stop_at, *stop - *n}}));
    }
  }
  // All other constants with the same value change together.
  for (const Value& v : g.values) {
    if (!v.constant || v.dtype == Dtype::kIndex || is_complex(v.dtype) || v.dtype == Dtype::kFloat4E2m1x2) continue;
    const double now = to_double(v.dtype, *v.constant);
    for (double simple : {1.0, 2.0, 0.0})
      if (now != simple && now != 1.0)
        edits.push_back([dtype = v.dtype, bits = *v.constant, simple](Case& to) {
          FusionChange change;
          for (size_t i = 0; i < to.fusion().values.size(); ++i)
            if (to.fusion().values[i].dtype == dtype && to.fusion().values[i].constant == bits)
              change.literals[ValueId(i)] = from_double(dtype, simple);
          return !change.literals.empty() && change_fusion(to, change);
        });
  }
  return edits;
}

}  // namespace fusebox::fuzz
