#include "passes/schedule/reduction_access.h"

#include <algorithm>
#include <limits>
#include <map>

#include "ir/domain/domain.h"
#include "passes/schedule/known_divisors.h"
#include "passes/schedule/reduction_limits.h"

namespace fusebox {

namespace {

// Bytes of a row. Shorter rows are read in the order in which they lie in memory, so that neighbours share sectors.
constexpr int64_t kLongRow = 1024;
// Places of a column that few threads read one after another. Of longer columns, a block's threads take the places.
constexpr int64_t kShortPlaces = 64;
// Places of a column that neighbouring threads read sooner, at least, where few columns lie beside it.
constexpr int64_t kPlacesOfLanes = 8;
// Bytes of a tensor that is sooner turned by a kernel of its own than read or stored in single elements.
constexpr int64_t kLargeTurned = int64_t{2} << 20;

struct Candidate {
  ValueId value;
  bool is_input = false;
  ValueId over = {};  // the input in whose memory an output lies
};

class Finder {
 public:
  Finder(const ScheduleView& view, const ReductionSpace& space)
      : view_(view), g_(view.fusion), known_(view, g_), space_(space), readers_(uses(view.fusion)) {
    for (ValueId v : inputs(g_))
      if (g_.is_tensor(v) && !readers_[v.index].empty()) candidates_.push_back({v, true});
    for (const OutputRef& out : outputs(g_))
      if (g_.is_tensor(out.value) && space.is_full(out.value) && !space.is_of_columns(out.value) &&
          g_[g_[out.value].def].kind != OpKind::kInput)
        candidates_.push_back({out.value, false, out.alias});
  }

  ReductionAccess run() {
    ReductionAccess result;
    const ValueId main = choose_innermost(result.innermost);
    order_axes(main, result);
    find_columns(result);
    result.merges_first = result.columns.size() > 1;
    result.vector = std::min<int64_t>(kVectorBytes, view_.sizes.of(result.innermost).divisor);
    for (size_t i = 0; i + 1 < result.columns.size(); ++i)
      result.vector = std::min(kVectorBytes, result.vector * view_.sizes.of(result.columns[i]).divisor);
    // The widest tensor takes 16 bytes at once, and the others as many elements.
    std::vector<Candidate> taken;
    for (const Candidate& c : candidates_) {
      const int64_t bytes = size_bytes(g_[c.value].dtype);
      // A comma separates names in the heuristics.
      if (g_[c.value].name.find(',') != std::string::npos) continue;
      if (bits(g_[c.value].dtype) < 8 || bytes > kVectorBytes / 2 || !lies_in_vectors(c, result.innermost, 2)) continue;
      taken.push_back(c);
      result.bytes = std::max(result.bytes, bytes);
    }
    result.vector = std::min(result.vector, kVectorBytes / result.bytes);
    std::erase_if(taken, [&](const Candidate& c) { return !lies_in_vectors(c, result.innermost, result.vector); });
    if (taken.empty() || result.vector < 2) {
      result.vector = 1;
      take_short_columns(result);
      return result;
    }
    take_short_columns(result);
    for (const Candidate& c : taken) (c.is_input ? result.loads : result.stores).push_back(g_[c.value].name);
    if (space_.is_reduced(result.innermost))
      result.merges_first = result.reduced.size() > 1 && std::ranges::all_of(taken, [&](const Candidate& c) {
                              return holds_without_gap(c.value, result.reduced);
                            });
    result.sums = sums_in_vectors(result);
    return result;
  }

  // A large full tensor of which neighbouring threads would read or store single elements, or none. Where kept axes lie
  // innermost, the threads of a block fill the sectors of a tensor that lies along the last reduced axis.
  ValueId find_turned() const {
    ReductionAccess access;
    order_axes(choose_innermost(access.innermost), access);
    const bool are_filled = !space_.is_reduced(access.innermost) && !access.reduced.empty();
    for (const Candidate& c : candidates_)
      if (is_turned(c, access.innermost) && !(are_filled && innermost_of(c.value) == access.reduced.back()))
        return c.value;
    return {};
  }

 private:
  // The axis that lies innermost in the most bytes of full tensors, and the first tensor in which it does. Of as many bytes,
  // that in tensors of more axes. Where large ones lie along a reduced and a kept axis, the kept one (find_turned).
  ValueId choose_innermost(DomainId& axis) const {
    std::map<DomainId, std::pair<int64_t, int64_t>> votes;
    std::map<DomainId, ValueId> first;
    for (const Candidate& c : candidates_) {
      if (!space_.is_full(c.value)) continue;
      const DomainId inner = innermost_of(c.value);
      if (!inner) continue;
      auto& [bytes, axes] = votes[inner];
      if (__builtin_add_overflow(bytes, bytes_of(c.value), &bytes)) bytes = std::numeric_limits<int64_t>::max();
      axes += size_bytes(g_[c.value].dtype) * static_cast<int64_t>(rank_of(g_, c.value));
      first.emplace(inner, c.value);
    }
    if (votes.empty()) {
      axis = last_long(g_.tensor_of(space_.reference).logical);
      return space_.reference;
    }
    const auto best = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    axis = best->first;
    if (space_.is_reduced(axis))
      for (const Candidate& c : candidates_)
        if (is_turned(c, axis) && !space_.is_reduced(innermost_of(c.value))) {
          axis = innermost_of(c.value);
          break;
        }
    return first.at(axis);
  }

  // Whether the tensor is large and full, and both axes are longer than what single elements waste.
  bool is_turned(const Candidate& c, DomainId innermost) const {
    const int64_t element = size_bytes(g_[c.value].dtype);
    const auto is_long = [&](DomainId axis) {
      return view_.sizes.of(axis).most > kBytesOfSector / element && view_.sizes.of(axis).most >= view_.device.warp;
    };
    const DomainId own = innermost_of(c.value);
    return space_.is_full(c.value) && own && own != innermost && bytes_of(c.value) >= kLargeTurned && is_long(own) &&
           is_long(innermost);
  }

  int64_t bytes_of(ValueId v) const {
    std::vector<DomainId> axes = g_.tensor_of(v).logical;
    std::erase_if(axes, [&](DomainId d) { return g_[d].iter_type != IterType::kIteration; });
    int64_t bytes = 0;
    const bool is_large = __builtin_mul_overflow(most_of(view_.sizes, axes), size_bytes(g_[v].dtype), &bytes);
    return is_large ? std::numeric_limits<int64_t>::max() : bytes;
  }

  DomainId innermost_of(ValueId v) const {
    std::vector<DomainId> layout = allocation_of(g_, g_.tensor_of(v));
    std::erase_if(layout, [&](DomainId d) { return g_[d].iter_type != IterType::kIteration; });
    return last_long(layout);
  }

  // The last axis that is reduced or longer than one element; the last one if there is none.
  DomainId last_long(const std::vector<DomainId>& domains) const {
    DomainId last, last_of_any;
    for (DomainId d : domains) {
      if (!space_.axis_of(d)) continue;
      last_of_any = space_.axis_of(d);
      if (space_.is_reduced(last_of_any) || view_.sizes.of(d).most > 1) last = last_of_any;
    }
    return last ? last : last_of_any;
  }

  // Takes the axes in the order of the tensor's memory; axes that it lacks come first.
  void order_axes(ValueId main, ReductionAccess& result) const {
    std::vector<DomainId> order;
    for (DomainId d : allocation_of(g_, g_.tensor_of(main)))
      if (const DomainId axis = space_.axis_of(d); axis && g_[d].iter_type == IterType::kIteration)
        order.push_back(axis);
    const auto place = [&](DomainId axis) {
      const size_t i = position_in(order, axis);
      return axis == result.innermost ? order.size() + 1 : i == order.size() ? 0 : i + 1;
    };
    const auto sorted = [&](std::vector<DomainId> axes) {
      std::ranges::stable_sort(axes, {}, place);
      return axes;
    };
    result.kept = sorted(space_.kept);
    result.reduced = sorted(space_.reduced);
    if (space_.is_reduced(result.innermost) && row_bytes(main, result.reduced) >= kLongRow &&
        !is_in_short_runs(main, result))
      std::ranges::stable_sort(result.kept, {}, [&](DomainId axis) { return bytes_that_lack(axis); });
  }

  // Whether a row lies in runs shorter than a line of the cache, between those of other rows. The blocks of these rows then run
  // side by side, so that each line is read and written once: group norm of [32, 64, 64, 320] in bf16, channels last in 32
  // groups, took 169 µs on an H200 so, and 289 otherwise.
  bool is_in_short_runs(ValueId main, const ReductionAccess& access) const {
    if (access.reduced.size() < 2 || holds_without_gap(main, access.reduced)) return false;
    return row_bytes(main, {access.reduced.back()}) < kBytesOfLine;
  }

  void find_columns(ReductionAccess& result) const {
    if (space_.is_reduced(result.innermost)) return;
    result.columns = {result.innermost};
    for (size_t i = result.kept.size() - 1; i-- > 0;) {
      std::vector<DomainId> wider = result.columns;
      wider.insert(wider.begin(), result.kept[i]);
      if (!lie_behind_one_another(wider)) return;
      result.columns = std::move(wider);
    }
  }

  void take_short_columns(ReductionAccess& result) const {
    result.lanes_take_places = lanes_should_take_places(result);
    if (!result.lanes_take_places) join_short_columns(result);
  }

  // Of [1000000, 16, 2] in f32, the threads of a warp read 256 bytes that lie behind one another so. By a thread for each pair of
  // columns, they would read 8 of every 128 bytes: softmax over the middle took 413 µs on an H200, for 60 of a copy.
  bool lanes_should_take_places(const ReductionAccess& result) const {
    if (space_.passes < 2 || result.columns.empty() || result.columns.size() == result.kept.size()) return false;
    const int64_t places = most_of(view_.sizes, result.reduced), columns = most_of(view_.sizes, result.columns);
    if (places < kPlacesOfLanes || places > kShortPlaces || columns > kBytesOfSector) return false;
    std::vector<DomainId> run = result.reduced;
    run.insert(run.end(), result.columns.begin(), result.columns.end());
    bool is_any = false;
    for (const Candidate& c : candidates_) {
      if (!space_.is_full(c.value)) continue;
      is_any = true;
      if (columns * size_bytes(g_[c.value].dtype) >= kBytesOfSector || !holds_without_gap(c.value, run)) return false;
    }
    return is_any && most_of(view_.sizes, kept_beside(space_, result)) >= view_.device.multiprocessors;
  }

  // Where a few short columns leave most threads of a block without one, the lanes run over all kept axes: the threads of
  // [100000, 4, 3] sum 3 columns of each of 80 rows.
  void join_short_columns(ReductionAccess& result) const {
    if (result.columns.empty() || result.columns.size() == result.kept.size()) return;
    const int64_t places = most_of(view_.sizes, result.reduced),
                  lanes = ceil_div(most_of(view_.sizes, result.columns), result.vector);
    if (places > kShortPlaces || lanes >= view_.device.warp / 2 || (result.merges_first && result.vector > 1)) return;
    result.columns = result.kept;
    result.merges_first = false;
  }

  // Whether each tensor in global memory that has one of these axes has all, in this order and without a gap.
  bool lie_behind_one_another(const std::vector<DomainId>& axes) const {
    const auto fits = [&](ValueId v) {
      const auto& logical = g_.tensor_of(v).logical;
      return std::ranges::none_of(logical,
                                  [&](DomainId d) {
                                    return g_[d].iter_type == IterType::kIteration &&
                                           std::ranges::count(axes, space_.axis_of(d)) > 0;
                                  }) ||
             holds_without_gap(v, axes);
    };
    return std::ranges::all_of(inputs(g_), [&](ValueId v) { return !g_.is_tensor(v) || fits(v); }) &&
           std::ranges::all_of(outputs(g_),
                               [&](const OutputRef& out) { return !g_.is_tensor(out.value) || fits(out.value); });
  }

  // At most. INT64_MAX if it is not known.
  int64_t row_bytes(ValueId v, const std::vector<DomainId>& reduced) const {
    const int64_t row = most_of(view_.sizes, reduced), bytes = size_bytes(g_[v].dtype);
    return row > std::numeric_limits<int64_t>::max() / bytes ? row : row * bytes;
  }

  // The bytes of an element of all full inputs that have the same elements all along the axis. If such an axis comes
  // last, the blocks that read the same row of these inputs run side by side, and find it in the cache.
  int64_t bytes_that_lack(DomainId axis) const {
    int64_t bytes = 0;
    for (const Candidate& c : candidates_)
      if (c.is_input && space_.is_full(c.value) && std::ranges::none_of(g_.tensor_of(c.value).logical, [&](DomainId d) {
            return g_[d].iter_type == IterType::kIteration && space_.axis_of(d) == axis;
          }))
        bytes += size_bytes(g_[c.value].dtype);
    return bytes;
  }

  std::vector<std::string> sums_in_vectors(const ReductionAccess& access) const {
    std::vector<std::string> result;
    if (space_.is_reduced(access.innermost)) return result;
    for (const OutputRef& out : outputs(g_)) {
      const auto is_output = [&](OpId reader) { return g_[reader].kind == OpKind::kOutput; };
      if (!g_.is_tensor(out.value) || out.alias || space_.is_full(out.value) ||
          !std::ranges::all_of(readers_[out.value.index], is_output))
        continue;
      const int64_t width = std::min(access.vector, kVectorBytes / size_bytes(g_[out.value].dtype));
      if (bits(g_[out.value].dtype) >= 8 && width > 1 && g_[g_[out.value].def].kind != OpKind::kInput &&
          lies_in_vectors(Candidate{out.value, false, {}}, access.innermost, width))
        result.push_back(g_[out.value].name);
    }
    return result;
  }

  // Whether the tensor's elements along the axis lie side by side, and start at a multiple of the width.
  bool lies_in_vectors(const Candidate& c, DomainId axis, int64_t width) const {
    if (c.is_input && !can_be_cached(g_, c.value)) return false;
    return lies_in_vectors(c.value, axis, width) && (!c.over || lies_in_vectors(c.over, axis, width));
  }

  bool lies_in_vectors(ValueId v, DomainId axis, int64_t width) const {
    const Tensor& t = g_.tensor_of(v);
    const auto layout = allocation_of(g_, t);
    const auto contiguity = contiguity_of(g_, t);
    // A result in the memory of an input of the whole program may have gaps that its own layout does not tell.
    const bool has_own_layout = g_[g_[v].def].kind == OpKind::kInput;
    if (!known_.is_aligned(v, width * size_bytes(g_[v].dtype))) return false;
    bool is_innermost = true;
    for (size_t i = layout.size(); i-- > 0;) {
      if (g_[layout[i]].iter_type == IterType::kBroadcast) continue;
      if (is_innermost && (space_.axis_of(layout[i]) != axis || contiguity[i] != Contiguity::kTrue)) return false;
      if ((!has_own_layout || contiguity[i] == Contiguity::kFalse) && known_.has_strides(v)) {
        const auto divisor = known_.of_stride(v, layout[i]);
        if (!divisor || (is_innermost ? *divisor != 1 : *divisor < width)) return false;
      }
      is_innermost = false;
    }
    return !is_innermost;
  }

  // Whether the axes lie behind one another in the tensor's memory, in this order and without a gap.
  bool holds_without_gap(ValueId v, const std::vector<DomainId>& axes) const {
    const Tensor& t = g_.tensor_of(v);
    const auto layout = allocation_of(g_, t);
    const auto contiguity = contiguity_of(g_, t);
    size_t at = layout.size();
    for (size_t i = axes.size(); i-- > 0;) {
      while (at > 0 && g_[layout[at - 1]].iter_type == IterType::kBroadcast) --at;
      if (at == 0 || space_.axis_of(layout[at - 1]) != axes[i] || contiguity[at - 1] != Contiguity::kTrue) return false;
      --at;
    }
    return true;
  }

  const ScheduleView& view_;
  const Graph& g_;
  const KnownDivisors known_;
  const ReductionSpace& space_;
  const std::vector<std::vector<OpId>> readers_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::optional<std::string> turned_declines(const ScheduleView& view, const ReductionSpace& space) {
  const ValueId turned = Finder(view, space).find_turned();
  if (!turned) return std::nullopt;
  return "%" + view.fusion[turned].name +
         " is large and lies along another axis than the rest; a kernel of its own turns it sooner";
}

std::string listed_in_vectors(const ReductionAccess& access) {
  std::string names;
  if (access.vector > 1)
    for (const auto* list : {&access.loads, &access.stores})
      for (const std::string& name : *list) names += (names.empty() ? "" : ",") + name;
  return names.empty() ? "," : names;
}

ReductionAccess find_access(const ScheduleView& view, const ReductionSpace& space) { return Finder(view, space).run(); }

std::vector<DomainId> kept_beside(const ReductionSpace& space, const ReductionAccess& access) {
  std::vector<DomainId> result = space.kept;
  for (DomainId axis : access.columns) std::erase(result, axis);
  return result;
}

bool can_be_cached(const Graph& g, ValueId input) {
  return std::ranges::any_of(tensor_ops(g), [&](OpId id) { return reads_by_loops(g, id, input); });
}

}  // namespace fusebox
