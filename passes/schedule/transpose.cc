// Fusions that read an input, or store an output, along another innermost axis than the reference has. A block has a tile of
// both axes. It brings the input's part of the tile to shared memory along the input's own innermost axis, and reads it from
// there along the reference's; an output goes the other way. The chunks of a row of the tile are swizzled by the row's number,
// so neither way meets a bank twice.
//
//   transpose reference %y across 0 along 1 tile 64 vector 8 rows 32 %b_in 8 %a_in 8 %y 8
//
// `across` and `along`: the axes of the tile in the order of the reference's memory; `along` is the innermost one. A block
// has `rows` rows of threads, and a thread a chunk of `vector` elements in a row of the tile.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/schedule_memo.h"
#include "passes/schedule/scheduler.h"
#include "passes/schedule/transpose_tiles.h"
#include "passes/schedule/vector_width.h"

namespace fusebox {
namespace {

constexpr int64_t kLeastExtent = 16;  // an axis that may be shorter is not worth a tile

// The numbers of the reference's axes, in the order of its memory, without broadcasts.
std::vector<size_t> order_of(const Graph& g, ValueId reference) {
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  std::vector<size_t> result;
  for (DomainId d : axes_in_memory(g, reference))
    if (g[d].iter_type != IterType::kBroadcast) result.push_back(position_in(axes, d));
  return result;
}

// Whether a place is the number of an axis of the reference.
bool is_number(const std::string& place) {
  return !place.empty() && std::ranges::all_of(place, [](char c) { return c >= '0' && c <= '9'; });
}

// The number of the reference's axis along which the innermost axis of a copy's memory lies, or none. `memory`: the input of
// a load, or the output that a store makes.
std::optional<size_t> innermost_place(const Prepared& p, const std::string& copy, ValueId memory) {
  const Graph& g = p.w.graph();
  const DomainId inner = innermost_axis(g, memory);
  const auto it = p.once.places.find(copy);
  if (!inner || it == p.once.places.end()) return std::nullopt;
  const size_t axis = position_in(logical_without_reductions(g, g.tensor_of(memory)), inner);
  if (axis >= it->second.size()) return std::nullopt;
  const std::string& place = it->second[axis];
  return is_number(place) ? std::optional<size_t>(std::stoul(place)) : std::nullopt;
}

ValueId input_of(const Graph& g, ValueId load) { return g[g[load].def].operands[0]; }

// Whether an output is stored over the input of a load. Other threads load a tile than those that store its elements.
bool is_overwritten(const Graph& g, const std::string& load, const StepWriter& w) {
  const ValueId input = input_of(g, w.tensor(load));
  return std::ranges::any_of(outputs(g), [&](const OutputRef& out) { return out.alias == input; });
}

// Whether a store goes over an input. Other threads store a tile than those that may read its elements.
bool overwrites(const Graph& g, const std::string& store, const StepWriter& w) {
  return std::ranges::any_of(outputs(g),
                             [&](const OutputRef& out) { return out.value == w.tensor(store) && out.alias; });
}

// Whether a tensor has all axes of the reference.
bool is_full(const Prepared& p, ValueId v, const std::vector<size_t>& order) {
  const auto it = p.once.places.find(p.w.graph()[v].name);
  return it != p.once.places.end() && std::ranges::all_of(order, [&](size_t axis) {
           return std::ranges::count(it->second, std::to_string(axis)) > 0;
         });
}

// The load and what is made from it, by the number of the value. Nothing is followed behind what `stops` says.
template <class Stops>
std::vector<bool> made_from(const Prepared& p, const std::string& load, Stops&& stops) {
  const Graph& g = p.w.graph();
  std::vector<bool> from(g.values.size());
  from[p.w.tensor(load).index] = true;
  for (OpId op : g[Graph::body()].ops) {
    if (!makes_tensor(g, op)) continue;
    const bool reads = std::ranges::any_of(g[op].operands, [&](ValueId v) { return v && from[v.index] && !stops(v); });
    for (ValueId v : g[op].results) from[v.index] = from[v.index] || reads;
  }
  return from;
}

// Whether a tensor with all axes of the reference is made from the load. Otherwise nothing gives the load a loop for an axis
// that it lacks, as where a squeeze drops that axis of the tensors that it is read with.
bool leads_to_full(const Prepared& p, const std::string& load, const std::vector<size_t>& order) {
  const std::vector<bool> from = made_from(p, load, [](ValueId) { return false; });
  for (uint32_t i = 0; i < from.size(); ++i)
    if (from[i] && is_full(p, ValueId(i), order)) return true;
  return false;
}

// Whether an output is made from the load by tensors that all lack an axis of the reference, as where the axis has one
// element in this run. The loops of such an output are others than those of the reference.
bool leads_past_full(const Prepared& p, const std::string& load, const std::vector<size_t>& order) {
  const auto full = [&](ValueId v) { return is_full(p, v, order); };
  const std::vector<bool> from = made_from(p, load, full);
  return std::ranges::any_of(outputs(p.w.graph()), [&](const OutputRef& out) {
    return p.w.graph().is_tensor(out.value) && from[out.value.index] && !full(out.value);
  });
}

// The loads and stores that are to go through shared memory, and the axis that their tile has beside the innermost one.
struct Turned {
  size_t across = 0, along = 0;  // numbers of axes of the reference
  std::vector<std::string> loads, stores;

  size_t count() const { return loads.size() + stores.size(); }
};

std::optional<Turned> turned(const Prepared& p, std::optional<size_t> only = {}) {
  const Graph& g = p.w.graph();
  const auto order = order_of(g, p.w.tensor(p.reference));
  if (order.size() < 2) return std::nullopt;
  // The tile needs both axes in the copy, and no loop besides those of the reference.
  const auto has_tile = [&](const std::string& copy) {
    const auto& places = p.once.places.at(copy);
    return std::ranges::all_of(places, is_number) && std::ranges::count(places, std::to_string(order.back())) == 1;
  };
  std::map<size_t, Turned> by_axis;
  for (const std::string& load : p.loads) {
    const auto place = innermost_place(p, load, input_of(g, p.w.tensor(load)));
    if (place && *place != order.back() && !is_overwritten(g, load, p.w) && has_tile(load) &&
        leads_to_full(p, load, order) && !leads_past_full(p, load, order))
      by_axis[*place].loads.push_back(load);
  }
  for (const std::string& store : p.stores) {
    const auto place = innermost_place(p, store, p.w.tensor(store));
    if (place && *place != order.back() && !overwrites(g, store, p.w) && has_tile(store) &&
        is_full(p, p.w.tensor(store), order) && !p.is_behind(store))
      by_axis[*place].stores.push_back(store);
  }
  const Turned* best = nullptr;
  for (auto& [axis, t] : by_axis) {
    t.across = axis;
    t.along = order.back();
    if (only ? axis == *only : !best || t.count() > best->count()) best = &t;
  }
  return best ? std::optional(*best) : std::nullopt;
}

// The tensors that share an axis with the reference.
std::vector<std::string> reached(const Prepared& p) {
  std::vector<std::string> result = p.along_reference();
  std::erase_if(result, [&](const std::string& name) {
    const auto it = p.once.places.find(name);
    return it != p.once.places.end() && std::ranges::none_of(it->second, is_number);
  });
  return result;
}

bool are_neighbours(const Graph& g, ValueId a, ValueId b) {
  const auto reads = [&](ValueId reader, ValueId v) { return std::ranges::count(g[g[reader].def].operands, v) > 0; };
  return reads(a, b) || reads(b, a) || g[a].def == g[b].def ||
         std::ranges::any_of(g[g[a].def].operands, [&](ValueId v) {
           return v && g.is_tensor(v) && g[g[v].def].kind == OpKind::kInput && reads(b, v);
         });
}

// Takes off the list what steps from neighbour to neighbour reach from the head.
std::vector<std::string> take_connected(const StepWriter& w, const std::string& head, std::vector<std::string>& left) {
  std::vector<std::string> result;
  std::vector<ValueId> met = {w.tensor(head)};
  for (size_t i = 0; i < met.size(); ++i)
    std::erase_if(left, [&](const std::string& name) {
      const ValueId v = w.tensor(name);
      if (!are_neighbours(w.graph(), met[i], v)) return false;
      met.push_back(v);
      result.push_back(name);
      return true;
    });
  return result;
}

// A copy for shared memory that only single elements connect with the reference: the loops of the reference do not spread to it.
std::optional<std::string> find_unconnected(const Prepared& p, const Turned& t) {
  std::vector<std::string> left = reached(p);
  take_connected(p.w, p.reference, left);
  for (const auto* list : {&t.loads, &t.stores})
    for (const std::string& copy : *list)
      if (std::ranges::count(left, copy) > 0) return copy;
  return std::nullopt;
}

// The bytes of an element of each copy that goes through shared memory.
int64_t bytes_of(const Prepared& p, const Turned& t) {
  int64_t bytes = 0;
  for (const auto* list : {&t.loads, &t.stores})
    for (const std::string& copy : *list) bytes += size_bytes(p.w.graph()[p.w.tensor(copy)].dtype);
  return bytes;
}

class TransposeWriter {
 public:
  // Writes behind the steps of `prepared`.
  TransposeWriter(std::shared_ptr<Prepared> prepared, const Heuristics& h)
      : all(std::move(prepared)),
        p(*all),
        writer_(p.w),
        h_(h),
        tile_(h.number("tile")),
        vector_(h.number("vector")),
        rows_(h.number("rows")) {
    turned_ = turned(p, static_cast<size_t>(h.number("across")));
  }

  int64_t shared_bytes() const { return tile_ * tile_ * bytes_of(p, *turned_); }

  void write_loops() {
    const std::string& y = p.reference;
    // A store reads the copy of its tile in shared memory, which threads write as they compute its elements.
    for (const std::string& store : turned_->stores) tiles_.push_back(writer_.cache_before(store));
    const auto axes = names_of(
        writer_.graph(), logical_without_reductions(writer_.graph(), writer_.graph().tensor_of(writer_.tensor(y))));
    const auto order = names_of(writer_.graph(), axes_in_memory(writer_.graph(), writer_.tensor(y)));
    writer_.reorder(y, order);
    const auto [across, rows] = writer_.split(y, axes[turned_->across], tile_, "p", "pi");
    const auto [along, columns] = writer_.split(y, axes[turned_->along], tile_, "q", "qi");
    std::vector<std::string> outer;
    for (const std::string& d : order)
      outer.push_back(d == axes[turned_->across] ? across : d == axes[turned_->along] ? along : d);
    std::string block = writer_.merge(y, outer, "g");
    // Most tiles have no element outside: they take a branch without checks.
    std::string inside;
    std::tie(block, inside) = writer_.split(y, block, 1, "g", "o");
    writer_.reorder(y, {block, inside, rows, columns});
    if (const auto all = reached(p); !all.empty()) writer_.transform_like(y, all);
    p.follow_readers();
    for (const Group& group : groups()) {
      write_threads(group.head);
      if (group.others.empty()) continue;  // an empty list would stand for all
      writer_.transform_like(group.head, group.others);
      writer_.parallelize_like(group.head, group.others);
    }
    p.follow_readers(turned_->loads);
    p.parallelize_like_readers(turned_->loads);
    for (const std::string& load : turned_->loads) write_turned(load);
    for (const std::string& store : turned_->stores) write_turned_store(store);
    for (const std::string& tile : tiles_) writer_.set_memory_type(tile, MemoryType::kShared);
  }

  void write_inlining() {
    for (const auto* list : {&turned_->loads, &tiles_})
      for (const std::string& copy : *list) writer_.inline_at(copy, writer_.loops(copy)[1]);
    auto ahead = loads_ahead();
    ahead.insert(ahead.end(), held_.begin(), held_.end());
    for (const std::string& load : ahead) writer_.inline_at(load, writer_.loops(load)[1]);
    writer_.inline_most(p.all_but(ahead));
    p.finish();
  }

  // What vectors may move.
  std::vector<std::string> copies() const {
    std::vector<std::string> result = p.loads;
    result.insert(result.end(), p.stores.begin(), p.stores.end());
    result.insert(result.end(), tiles_.begin(), tiles_.end());
    return result;
  }

  const std::shared_ptr<Prepared> all;
  Prepared& p;

 private:
  bool is_turned(const std::string& name) const {
    return std::ranges::count(turned_->loads, name) > 0 || std::ranges::count(turned_->stores, name) > 0;
  }

  std::vector<std::string> along_without_turned() const {
    std::vector<std::string> result = reached(p);
    std::erase_if(result, [&](const std::string& name) { return is_turned(name); });
    return result;
  }

  // The loads that a thread waits for together with those of its part of the tile, in front of the barrier.
  std::vector<std::string> loads_ahead() const {
    std::vector<std::string> result;
    const auto along = along_without_turned();
    const auto order = order_of(writer_.graph(), writer_.tensor(p.reference));
    std::ranges::copy_if(p.loads, std::back_inserter(result), [&](const std::string& load) {
      return !is_turned(load) && std::ranges::count(along, load) > 0 && !leads_past_full(p, load, order);
    });
    return result;
  }

  // Tensors that the loops of the first one reach without the turned copies.
  struct Group {
    std::string head;
    std::vector<std::string> others;
  };

  // The reference and what it reaches, then what a turned copy alone connects with it.
  std::vector<Group> groups() const {
    std::vector<std::string> left = along_without_turned();
    std::vector<Group> result;
    const auto take = [&](const std::string& head) { result.push_back({head, take_connected(writer_, head, left)}); };
    take(p.reference);
    const auto take_all = [&](const auto& is_head) {
      for (auto head = std::ranges::find_if(left, is_head); head != left.end();
           head = std::ranges::find_if(left, is_head)) {
        const std::string name = *head;
        left.erase(head);
        take(name);
      }
    };
    take_all([&](const std::string& name) { return loops_of(name).own.size() == 4; });
    take_all([&](const std::string& name) { return writer_.loops(name).size() >= 4; });
    result[0].others.insert(result[0].others.end(), left.begin(), left.end());
    return result;
  }

  // The loops of a tensor, and those over its broadcasts.
  struct TensorLoops {
    std::vector<std::string> own, broadcasts;
  };

  TensorLoops loops_of(const std::string& name) const {
    const Graph& g = writer_.graph();
    TensorLoops result;
    for (DomainId d : loop_of(g.tensor_of(writer_.tensor(name))))
      (g[d].iter_type == IterType::kBroadcast ? result.broadcasts : result.own).push_back(g[d].name);
    return result;
  }

  // Threads take the rows of the tile, and the chunks of a row.
  void write_threads(const std::string& y) {
    auto [loops, inner] = loops_of(y);
    // A tensor that lacks an axis of the tile, as a row that `select` reads, has a loop over a broadcast in its place.
    const bool lacks_axis = loops.size() < 4;
    if (lacks_axis) {
      loops = writer_.loops(y);
      inner.assign(loops.begin() + 4, loops.end());
    }
    Loops l{loops[0], loops[1], loops[2], {}};
    std::string element;
    std::tie(l.columns, element) = writer_.split(y, loops[3], vector_, "c", "v");
    if (!tiles_.empty() && !lacks_axis) std::tie(l.rows, l.columns) = swizzled(y, l.rows, l.columns);
    inner.insert(inner.begin(), element);
    parallelize(y, l, inner);
  }

  // The loops of a tensor over its tile.
  struct Loops {
    std::string block, inside, rows, columns;
  };

  // Those of a turned copy: columns run along its innermost axis.
  Loops own_loops(const std::string& copy, ValueId memory) {
    const Graph& g = writer_.graph();
    const ValueId v = writer_.tensor(copy);
    const size_t axis = position_in(logical_without_reductions(g, g.tensor_of(memory)), innermost_axis(g, memory));
    const DomainId own = logical_without_reductions(g, g.tensor_of(v))[axis];
    const auto loop = loop_of(g.tensor_of(v));
    Loops l{g[loop[0]].name, g[loop[1]].name, {}, {}};
    for (size_t i = 2; i < loop.size(); ++i) (follows_from(g, loop[i], own) ? l.columns : l.rows) = g[loop[i]].name;
    writer_.reorder(copy, {l.block, l.inside, l.rows, l.columns});
    return l;
  }

  // Exchanges the chunks of a row by the row's number, counted in chunks. Gives the loops over rows and over chunks.
  std::pair<std::string, std::string> swizzled(const std::string& copy, const std::string& rows,
                                               const std::string& chunks) {
    if (vector_ == 1) return writer_.swizzle(copy, rows, chunks, "rs", "cs");
    const auto [groups, in_group] = writer_.split(copy, rows, vector_, "r", "j");
    const auto [group, chunk] = writer_.swizzle(copy, groups, chunks, "rs", "cs");
    return {writer_.merge(copy, group, in_group, "n"), chunk};
  }

  // Gives the threads rows and columns. `inner`: the loops inside of these.
  void parallelize(const std::string& tensor, const Loops& l, const std::vector<std::string>& inner) {
    const auto [times, thread] = writer_.split(tensor, l.rows, rows_, "u", "t");
    std::vector<std::string> now = {l.block, l.inside, times, thread, l.columns};
    now.insert(now.end(), inner.begin(), inner.end());
    writer_.reorder(tensor, now);
    writer_.parallelize(tensor, l.block, ParallelType::kGridX);
    writer_.parallelize(tensor, l.inside, ParallelType::kUnswitch);
    writer_.parallelize(tensor, thread, ParallelType::kBlockY);
    writer_.parallelize(tensor, l.columns, ParallelType::kBlockX);
  }

  // Splits the chunks off a turned copy's columns; nothing for single elements, which are chunks themselves.
  std::vector<std::string> split_chunks(const std::string& copy, Loops& l) {
    if (vector_ == 1) return {};
    std::string element;
    std::tie(l.columns, element) = writer_.split(copy, l.columns, vector_, "c", "v");
    return {element};
  }

  // The tile of an input: rows along the reference's innermost axis, chunks along the input's own.
  void write_turned(const std::string& load) {
    Loops l = own_loops(load, input_of(writer_.graph(), writer_.tensor(load)));
    const auto inner = split_chunks(load, l);
    std::tie(l.rows, l.columns) = swizzled(load, l.rows, l.columns);
    parallelize(load, l, inner);
    writer_.set_memory_type(load, MemoryType::kShared);
    if (vector_ == 1) held_.push_back(held_before(load));
  }

  // A copy in the registers of the threads that make this one.
  std::string held_before(const std::string& copy) {
    const std::string held = writer_.cache_before(copy);
    writer_.transform_like(copy, {held});
    writer_.parallelize_like(copy, {held});
    return held;
  }

  // An output reads its tile along its own innermost axis, and gathers a vector before it is stored.
  void write_turned_store(const std::string& store) {
    Loops l = own_loops(store, writer_.tensor(store));
    const auto inner = split_chunks(store, l);
    parallelize(store, l, inner);
    if (vector_ > 1) held_before(store);
  }

  StepWriter& writer_;
  const Heuristics& h_;
  int64_t tile_, vector_, rows_;
  std::optional<Turned> turned_;
  std::vector<std::string> held_;
  std::vector<std::string> tiles_;  // of the stores
};

bool ends_in_chunk(const StepWriter& w, const std::string& name) {
  const Graph& g = w.graph();
  const auto& loop = loop_of(g.tensor_of(w.tensor(name)));
  if (loop.empty() || !g[loop.back()].def || is_thread(g[loop.back()].parallel)) return false;
  return std::ranges::any_of(leaves(g, loop.back()),
                             [&](DomainId d) { return g[d].iter_type != IterType::kBroadcast; });
}

// An axis of an output that is matched with an axis of the reference only because an expanded tensor stands beside both. Its
// extent is equal in some runs alone, so its loops are no parts of a tile.
std::optional<std::string> matched_by_size(const Graph& g, const FusionAxes& all, ValueId reference) {
  std::optional<AxisClasses> exact;
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    const auto own = logical_without_reductions(g, g.tensor_of(out.value));
    const auto along = axes_along(g, all, reference, out.value);
    for (size_t i = 0; i < along.size(); ++i) {
      if (!along[i]) continue;
      const auto n = size_form(g, axes[i]), m = size_form(g, own[*along[i]]);
      if (n && m && n->equals(*m)) continue;
      if (!exact) exact.emplace(g, AxisClassKind::kExact);
      if (!exact->same(axes[i], own[*along[i]]))
        return "the output %" + g[out.value].name + " is as long as %" + g[reference].name + " in some runs alone";
    }
  }
  return std::nullopt;
}

// A load that is read along axes of another tensor, as in front of a reshape: no loop of the tile would be its own. Or a store
// of another number of columns than the reference, as behind a gather: it has loops of the tile and others.
std::optional<std::string> lies_along_another(const Prepared& p) {
  const auto is_other = [](const std::string& place) { return place.find('.') != std::string::npos; };
  for (const std::string& load : p.loads)
    if (const auto it = p.once.places.find(load);
        it != p.once.places.end() && std::ranges::any_of(it->second, is_other))
      return load;
  const Graph& g = p.w.graph();
  for (const std::string& store : p.stores) {
    const auto it = p.once.places.find(store);
    if (it == p.once.places.end() || std::ranges::none_of(it->second, is_number)) continue;
    const auto axes = logical_without_reductions(g, g.tensor_of(p.w.tensor(store)));
    for (size_t i = 0; i < axes.size() && i < it->second.size(); ++i)
      if (g[axes[i]].iter_type != IterType::kBroadcast && !is_number(it->second[i])) return store;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> transpose_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  if (has_resizes(g)) return "an op slices, pads or joins tensors, which the scheduler resize is for";
  if (auto why = elementwise_declines(view)) return why;
  if (auto why = matched_by_size(g, *fusion_axes(view), reference_of(view))) return why;
  // Without a move every tensor is read and stored in the order of the reference, or of its own memory.
  const auto found = turned(*prepared_of(view));
  if (!found)
    return "no input that is only read and no output lies along another axis than the output %" +
           g[reference_of(view)].name;
  if (auto copy = lies_along_another(*prepared_of(view)))
    return "%" + *copy + " lies along axes of another tensor than the output %" + g[reference_of(view)].name;
  if (auto copy = find_unconnected(*prepared_of(view), *found))
    return "nothing but single elements connects %" + *copy + " with the output %" + g[reference_of(view)].name;
  if (kLeastTile * kLeastTile * bytes_of(*prepared_of(view), *found) > view.device.shared_block_bytes)
    return "the tiles of " + std::to_string(found->count()) +
           " inputs and outputs do not fit in the shared memory of a block";
  const ValueId reference = reference_of(view);
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  for (size_t axis : {found->across, found->along})
    if (view.sizes.of(axes[axis]).most < kLeastExtent)
      return "the axis %" + g[reference].name + "." + g[axes[axis]].name + " is too short for a tile";
  return std::nullopt;
}

namespace {

TiledSizes tiled_sizes(const ScheduleView& view, const std::vector<DomainId>& axes, const Turned& t) {
  TiledSizes sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (view.fusion[axes[i]].iter_type == IterType::kBroadcast) continue;
    const int64_t most = std::max<int64_t>(view.sizes.of(axes[i]).most, 1);
    if (i == t.across)
      sizes.across = most;
    else if (i == t.along)
      sizes.along = most;
    else
      sizes.others *= static_cast<double>(most);
  }
  return sizes;
}

}  // namespace

Heuristics transpose_choose(const ScheduleView& view) {
  const Graph& g = view.fusion;
  const ValueId reference = reference_of(view);
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  const auto prepared = prepared_of(view);
  const Turned found = *turned(*prepared);
  Heuristics h{.scheduler = "transpose", .choices = {}};
  h.set("reference", "%" + g[reference].name);
  h.set("across", static_cast<int64_t>(found.across));
  h.set("along", static_cast<int64_t>(found.along));
  const int64_t widest = widest_stream(view, reference);
  int64_t vector = kVectorBytes / std::min<int64_t>(widest, kVectorBytes);
  for (size_t axis : {found.across, found.along}) vector = std::min(vector, view.sizes.of(axes[axis]).divisor);
  const auto [tile, threads] =
      choose_tile(view.device, tiled_sizes(view, axes, found), vector, widest <= 2, bytes_of(*prepared, found));
  h.set("tile", tile);
  h.set("vector", vector);
  h.set("rows", std::min(threads / (tile / vector), tile));
  if (vector == 1) return h;
  try {
    TransposeWriter t(std::make_shared<Prepared>(*prepared), h);
    t.write_loops();
    std::vector<std::string> copies;
    for (const std::string& name : t.copies())
      if (ends_in_chunk(t.p.w, name)) copies.push_back(name);
    for (const std::string& name : copies) t.p.w.parallelize(name, t.p.w.loops(name).back(), ParallelType::kVectorize);
    t.write_inlining();
    const auto widths = copies.empty() ? std::vector<int64_t>() : VectorWidths(view, t.p.w.graph()).of(copies);
    for (size_t i = 0; i < copies.size(); ++i)
      if (widths[i] > 1) h.set("%" + copies[i], widths[i]);
    const bool is_plan = std::ranges::all_of(widths, [&](int64_t width) { return width == vector; });
    if (view.memo && is_plan) view.memo->schedule = {h, t.all};
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;  // any other: the schedule is refused as a whole, vectors or not
  }
  return h;
}

std::vector<Step> transpose_plan(const ScheduleView& view, const Heuristics& h) {
  if (view.memo && view.memo->schedule.prepared && view.memo->schedule.heuristics == h)
    return view.memo->schedule.prepared->w.steps();
  TransposeWriter t(take_prepared(view), h);
  if (t.shared_bytes() > view.device.shared_block_bytes)
    throw Error(ErrorCode::kUnsupportedSchedule,
                "the tiles do not fit in the shared memory of a block; give a smaller tile", t.p.reference);
  try {
    t.write_loops();
    for (const std::string& name : t.copies()) {
      const auto choice = std::ranges::find(h.choices, "%" + name, &Heuristic::key);
      if (choice == h.choices.end()) continue;
      std::string chunk = t.p.w.loops(name).back();
      if (choice->number < h.number("vector")) chunk = t.p.w.split(name, chunk, choice->number, "v", "e").second;
      t.p.w.parallelize(name, chunk, ParallelType::kVectorize);
    }
    t.write_inlining();
    if (view.memo) view.memo->schedule = {h, t.all};
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;  // any other: the last step is refused, and with it the schedule
  }
  return t.p.w.steps();
}

}  // namespace fusebox
