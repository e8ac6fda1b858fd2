#include "fuzz/field_laws/match.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fusebox::fuzz {
namespace {

// -- difference: the place of the first one, relative to the compared values

using Place = std::optional<std::string>;

template <class T>
Place differ(const T& a, const T& b);
template <class T>
Place differ(const std::optional<T>& a, const std::optional<T>& b);
template <class T>
Place differ(const std::vector<T>& a, const std::vector<T>& b);
Place differ(const Attrs& a, const Attrs& b);

template <class T>
Place differ(const T& a, const T& b) {
  if constexpr (HasFields<T>) {
    Place found;
    visit_fields(a, b, [&](const auto& field, const auto& x, const auto& y) {
      if (found) return;
      if (auto below = differ(x, y))
        found = std::string(field.name) + (below->empty() || below->front() == '[' ? "" : ".") + *below;
    });
    return found;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ? Place() : Place("");
  } else {
    return a == b ? Place() : Place("");
  }
}

template <class T>
Place differ(const std::optional<T>& a, const std::optional<T>& b) {
  if (a.has_value() != b.has_value()) return "";
  return a ? differ(*a, *b) : Place();
}

template <class T>
Place differ(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return "";
  if constexpr (std::is_same_v<T, uint8_t>) {
    return a == b ? Place() : Place("");
  } else {
    for (size_t i = 0; i < a.size(); ++i)
      if (const auto below = differ(a[i], b[i]))
        return "[" + std::to_string(i) + "]" + (below->empty() || below->front() == '[' ? "" : ".") + *below;
    return std::nullopt;
  }
}

Place differ(const Attrs& a, const Attrs& b) { return differ(a.list(), b.list()); }

// -- the same program

// Sizes and pure ops have no order; all other ops do.
bool is_placed(OpKind kind) {
  return kind != OpKind::kSize && demands(kind, kEffect | kSignature | kSync | kControl | kRead);
}

class ProgramWalk {
 public:
  ProgramWalk(const Graph& a, const Graph& b, MatchNames options) : a_(a), b_(b), options_(options) {
    for (const bool second : {false, true}) {
      const Graph& g = second ? b : a;
      auto& homes = second ? home_b_ : home_a_;
      homes.resize(g.ops.size());
      for (size_t r = 0; r < g.regions.size(); ++r)
        for (OpId op : g.regions[r].ops) homes[op.index] = RegionId(r);
    }
  }

  bool run() {
    if (a_.level != b_.level || a_.index_bits != b_.index_bits) return false;
    if (options_.names && a_.name != b_.name) return false;
    if (!meet(Graph::body(), Graph::body())) return false;
    while (!open_.empty()) {
      const Meeting m = open_.back();
      open_.pop_back();
      if (!compare(m)) return false;
    }
    return stand_ins_match();
  }

  bool needs(ValueId v) const { return std::get<Pairs<ValueTag>>(pairs_).to_b.contains(v); }

 private:
  enum class Table : uint8_t { kValue, kOp, kRegion, kTensor, kDomain, kTransform };
  struct Meeting {
    Table table;
    uint32_t a, b;
  };
  template <class Tag>
  struct Pairs {
    std::map<Id<Tag>, Id<Tag>> to_b, to_a;
  };
  static Table table_of(ValueId) { return Table::kValue; }
  static Table table_of(OpId) { return Table::kOp; }
  static Table table_of(RegionId) { return Table::kRegion; }
  static Table table_of(TensorId) { return Table::kTensor; }
  static Table table_of(DomainId) { return Table::kDomain; }
  static Table table_of(TransformId) { return Table::kTransform; }

  // Two ids at the same place: pairs them, or checks that they already are a pair.
  template <class Tag>
  bool meet(Id<Tag> x, Id<Tag> y) {
    if (!x || !y) return !x && !y;
    if constexpr (std::is_same_v<Tag, ValueTag>)
      if (a_[x].constant || b_[y].constant)
        return a_[x].dtype == b_[y].dtype && !differ(a_[x].constant, b_[y].constant);
    auto& pairs = std::get<Pairs<Tag>>(pairs_);
    const auto [forth, is_new] = pairs.to_b.try_emplace(x, y);
    const auto [back, is_new_there] = pairs.to_a.try_emplace(y, x);
    if (forth->second != y || back->second != x) return false;
    if (is_new) open_.push_back({table_of(x), x.index, y.index});
    return true;
  }
  template <class Tag>
  bool meet(const std::vector<Id<Tag>>& x, const std::vector<Id<Tag>>& y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!meet(x[i], y[i])) return false;
    return true;
  }
  template <class T>
  bool meet(const T& x, const T& y) {
    return !differ(x, y);
  }

  template <class T>
  bool members_meet(const T& x, const T& y) {
    bool same = true;
    visit_fields(x, y, [&](const auto& field, const auto& p, const auto& q) {
      same = same && ((!options_.names && !field.use.digested) || meet(p, q));
    });
    return same;
  }

  bool compare(const Meeting& m) {
    switch (m.table) {
      case Table::kValue:
        return compare(a_[ValueId(m.a)], b_[ValueId(m.b)]);
      case Table::kOp:
        return compare_ops(OpId(m.a), OpId(m.b));
      case Table::kRegion:
        return meet(a_[RegionId(m.a)].index, b_[RegionId(m.b)].index) &&
               meet(placed(a_, RegionId(m.a)), placed(b_, RegionId(m.b)));
      case Table::kTensor:
        return members_meet(filled(a_, a_[TensorId(m.a)]), filled(b_, b_[TensorId(m.b)]));
      case Table::kDomain:
        return compare(a_[DomainId(m.a)], b_[DomainId(m.b)]);
      case Table::kTransform:
        return members_meet(a_[TransformId(m.a)], b_[TransformId(m.b)]);
    }
    return false;
  }

  bool compare(Value x, Value y) {
    const bool sizes = x.def && y.def && a_[x.def].kind == OpKind::kSize && b_[y.def].kind == OpKind::kSize;
    if (sizes) x.def = y.def = OpId();
    return members_meet(x, y);
  }

  // A loop broadcast alone does not need the domain that it stands for. If nothing else needs that domain either, the
  // domain that it stands for in turn counts.
  bool compare(IterDomain x, IterDomain y) {
    stand_ins_.push_back({x.stands_for, y.stands_for});
    x.stands_for = y.stands_for = DomainId();
    return members_meet(x, y);
  }
  bool stand_ins_match() const {
    const auto& pairs = std::get<Pairs<DomainTag>>(pairs_);
    return std::all_of(stand_ins_.begin(), stand_ins_.end(), [&](auto stands_for) {
      auto& [x, y] = stands_for;
      while (x && !pairs.to_b.contains(x)) x = a_[x].stands_for;
      while (y && !pairs.to_a.contains(y)) y = b_[y].stands_for;
      return x && y ? pairs.to_b.at(x) == y : !x && !y;
    });
  }

  bool compare_ops(OpId x, OpId y) {
    Op p = a_[x], q = b_[y];
    if ((p.kind == OpKind::kLaunch || p.kind == OpKind::kRunAten) && p.kind == q.kind && !options_.names) {
      // The name of a launched kernel means nothing, but the same name must always mean the same program.
      const std::string from(p.attrs.string(AttrKey::kName)), to(q.attrs.string(AttrKey::kName));
      if (callees_to_b_.try_emplace(from, to).first->second != to) return false;
      if (callees_to_a_.try_emplace(to, from).first->second != from) return false;
      p.attrs.erase(AttrKey::kName);
      q.attrs.erase(AttrKey::kName);
    }
    return meet(home_a_[x.index], home_b_[y.index]) && members_meet(p, q);
  }

  // The ordered ops of a region, inputs first.
  static std::vector<OpId> placed(const Graph& g, RegionId region) {
    std::vector<OpId> result;
    for (OpId op : g[region].ops)
      if (is_placed(g[op].kind)) result.push_back(op);
    if (region == Graph::body())
      std::stable_partition(result.begin(), result.end(), [&](OpId op) { return g[op].kind == OpKind::kInput; });
    return result;
  }

  static Tensor filled(const Graph& g, Tensor t) {
    t.root = root_of(t);
    t.loop = loop_of(t);
    t.contiguity = contiguity_of(g, t);
    t.allocation = allocation_of(g, t);
    return t;
  }

  const Graph& a_;
  const Graph& b_;
  const MatchNames options_;
  std::vector<RegionId> home_a_, home_b_;
  std::tuple<Pairs<ValueTag>, Pairs<OpTag>, Pairs<RegionTag>, Pairs<TensorTag>, Pairs<DomainTag>, Pairs<TransformTag>>
      pairs_;
  std::map<std::string, std::string> callees_to_b_, callees_to_a_;
  std::vector<Meeting> open_;
  std::vector<std::pair<DomainId, DomainId>> stand_ins_;
};

// -- the same segmentation

Segmentation normal(const Segmentation& s, const std::set<std::string>& needed) {
  Segmentation result = s;
  result.graph.clear();
  // Values that nothing needs come last.
  const auto before = [&](const std::string& x, const std::string& y) {
    const bool p = needed.contains(x), q = needed.contains(y);
    return p != q ? p : p && x < y;
  };
  std::erase_if(result.segments, [&](Segment& segment) {
    segment.name.clear();
    const bool had_ops = !segment.ops.empty();
    std::erase_if(segment.ops, [&](const std::string& op) { return !needed.contains(op); });
    std::sort(segment.ops.begin(), segment.ops.end());
    for (auto* list : {&segment.inputs, &segment.outputs})
      std::stable_sort(list->begin(), list->end(),
                       [&](const Crossing& x, const Crossing& y) { return before(x.value, y.value); });
    return had_ops && segment.ops.empty();
  });
  std::stable_sort(result.segments.begin(), result.segments.end(),
                   [](const Segment& x, const Segment& y) { return x.ops < y.ops; });
  return result;
}

}  // namespace

template <class T>
std::optional<std::string> difference(const T& a, const T& b) {
  return differ(a, b);
}
template std::optional<std::string> difference(const Graph&, const Graph&);
template std::optional<std::string> difference(const StepList&, const StepList&);
template std::optional<std::string> difference(const Segmentation&, const Segmentation&);
template std::optional<std::string> difference(const InputSpecs&, const InputSpecs&);
template std::optional<std::string> difference(const Bundle&, const Bundle&);

bool programs_match(const Graph& a, const Graph& b, MatchNames options) { return ProgramWalk(a, b, options).run(); }

std::vector<bool> needed_values(const Graph& g) {
  ProgramWalk walk(g, g, {});
  walk.run();
  std::vector<bool> result(g.values.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = walk.needs(ValueId(i));
  return result;
}

bool segmentations_match(const Graph& g, const Segmentation& a, const Segmentation& b) {
  std::set<std::string> needed;
  const std::vector<bool> is_needed = needed_values(g);
  for (size_t i = 0; i < g.values.size(); ++i)
    if (is_needed[i]) needed.insert(g.values[i].name);
  return !differ(normal(a, needed), normal(b, needed));
}

}  // namespace fusebox::fuzz
