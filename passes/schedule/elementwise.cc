#include "passes/schedule/elementwise.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/module/launch_limits.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "passes/schedule/loop_space.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/schedule_memo.h"
#include "passes/schedule/vector_width.h"
#include "passes/schedule/walked_axis.h"

namespace fusebox {
namespace {

constexpr int64_t kMostUnroll = 4;
constexpr int64_t kMostParts = 4;  // of an axis that each thread walks whole

// The loads without any of the outer axes, and with all others: their chunk serves all iterations of the loop over the outer
// axes. A load that lacks an axis between them would be in the threads of its first element only. One with an axis that is none
// of the reference's (a reshape merges it with another) has the outer axes in another form.
std::vector<std::string> reused_loads(const Prepared& p, const Heuristics& h) {
  std::vector<std::string> result;
  if (h.number("reuse") == 1) return result;
  const Graph& g = p.w.graph();
  const ValueId y = p.w.tensor(p.reference);
  const auto axes = logical_without_reductions(g, g.tensor_of(y));
  const auto order = axes_in_memory(g, y);
  const auto has = [&](const std::vector<std::string>& places, DomainId d) {
    return std::ranges::count(places, std::to_string(position_in(axes, d))) > 0;
  };
  const auto is_place = [&](const std::string& word) {
    for (size_t i = 0; i < axes.size(); ++i)
      if (word == std::to_string(i)) return true;
    return false;
  };
  const auto outer = static_cast<size_t>(h.number("outer"));
  for (const std::string& load : p.loads) {
    const auto it = p.once.places.find(load);
    if (it == p.once.places.end() || p.is_behind(load)) continue;
    const auto own = logical_without_reductions(g, g.tensor_of(p.w.tensor(load)));
    bool is_free = true;
    for (size_t i = 0; i < own.size(); ++i)
      is_free &= g[own[i]].iter_type == IterType::kBroadcast || is_place(it->second.at(i));
    for (size_t i = 0; i < order.size(); ++i)
      is_free &= g[order[i]].iter_type == IterType::kBroadcast || has(it->second, order[i]) == (i >= outer);
    if (is_free) result.push_back(load);
  }
  return result;
}

// The name of the axis that the choice is about; empty if it was not made.
std::string axis_named_by(const Heuristics& h, std::string_view key) {
  return h.has(key) ? h.word(key) : std::string();
}

// The loops of the reference, as far as its chunks and threads.
struct Loops {
  std::string block, thread, vector, rows, parts, walk;
};

Loops write_reference(StepWriter& w, const std::string& y, const Heuristics& h) {
  const auto axes = axes_in_memory(w.graph(), w.tensor(y));
  const auto order = names_of(w.graph(), axes);
  const auto inner = order.end() - static_cast<std::ptrdiff_t>(h.number("axes"));
  const auto middle =
      h.number("reuse") == 1 ? order.begin() : order.begin() + static_cast<std::ptrdiff_t>(h.number("outer"));
  // In front of the first axis that has elements, one of a single element would leave a remainder in that axis's index.
  std::vector<std::string> run(inner, order.end());
  size_t first = 0;
  while (first < run.size() && w.graph()[axes[order.size() - run.size() + first]].iter_type == IterType::kBroadcast)
    ++first;
  if (first < run.size()) std::rotate(run.begin(), run.begin() + first, run.begin() + first + 1);
  w.reorder(y, order);
  Loops loops;
  std::string chunk = w.merge(y, run, "i");
  if (h.number("vector") > 1) std::tie(chunk, loops.vector) = w.split(y, chunk, h.number("vector"), "c", "v");
  std::vector<std::string> all(middle, inner);
  loops.parts = axis_named_by(h, "parts");
  loops.walk = axis_named_by(h, "walk");
  std::erase(all, loops.parts);
  std::erase(all, loops.walk);
  all.push_back(chunk);
  std::tie(loops.block, loops.thread) = w.split(y, w.merge(y, all, "rc"), h.number("threads"), "o", "t");
  if (h.number("reuse") > 1) loops.rows = w.merge(y, std::vector<std::string>(order.begin(), middle), "rows");
  return loops;
}

// A thread keeps its chunks of the reused loads and walks along the outer axes with them.
void write_reuse(Prepared& p, const Heuristics& h) {
  StepWriter& w = p.w;
  const std::string& y = p.reference;
  const Loops l = write_reference(w, y, h);
  const auto in_order = [&](std::vector<std::string> loops) {
    std::erase(loops, "");
    w.reorder(y, loops);
  };
  // A reused load gets no loop for an axis behind all of its own.
  in_order({l.block, l.thread, l.parts, l.vector, l.rows});
  w.transform_like(y);
  const auto [group, row] = w.split(y, l.rows, h.number("reuse"), "g", "k");
  in_order({group, l.block, l.thread, row, l.parts, l.vector});
  const auto reused = reused_loads(p, h);
  std::vector<std::string> others = p.along_reference();
  std::erase_if(others, [&](const std::string& name) { return std::ranges::count(reused, name) > 0; });
  w.transform_like(y, others);
  p.follow_readers();
  w.parallelize(y, group, ParallelType::kGridY);
  w.parallelize(y, l.block, ParallelType::kGridX);
  w.parallelize(y, l.thread, ParallelType::kBlockX);
  if (!l.parts.empty()) w.parallelize(y, l.parts, ParallelType::kUnswitch);
  w.parallelize_like(y, others);
  p.parallelize_like_readers();
  for (const std::string& load : reused) {
    const auto loops = w.loops(load);
    if (loops.size() < 2) continue;
    w.parallelize(load, loops[0], ParallelType::kGridX);
    w.parallelize(load, loops[1], ParallelType::kBlockX);
  }
}

// The sizes of which the indices are made where an op cuts or regroups axes. A schedule that states their divisors has
// other forms, which may show that elements lie side by side.
std::vector<Heuristic> known_multiples(const ScheduleView& view) {
  const Graph& g = view.fusion;
  std::set<ValueId> sizes;
  const auto take = [&](ValueId v) {
    if (!v || g.is_constant(v)) return;
    sizes.insert(v);
    for (const ScalarForm::Term& term : form_of(g, v).terms) sizes.insert(term.factors.begin(), term.factors.end());
  };
  const auto regroups = [](OpKind kind) {
    return kind == OpKind::kReshape || kind == OpKind::kSlice || kind == OpKind::kPad || kind == OpKind::kCat;
  };
  for (OpId op : g[Graph::body()].ops) {
    if (!regroups(g[op].kind)) continue;
    const Tensor& t = g.tensor_of(g[op].results[0]);
    for (const auto* list : {&root_of(t), &t.logical})
      for (DomainId d : *list) take(g[d].extent);
    for (TransformId id : op_transforms(g, t)) {
      take(g[id].factor);
      take(g[id].right);
    }
  }
  std::vector<Heuristic> result;
  for (ValueId v : sizes) {
    const Value& size = g[v];
    // The class of a negative number is that of 0, and says nothing of its divisors.
    const bool is_size =
        size.kind == ValueKind::kScalar && size.dtype == Dtype::kIndex && !size.name.empty() && is_size_sum(g, v);
    const int64_t divisor = view.sizes.of(v).divisor;
    if (is_size && divisor > 1) result.push_back({std::string(kMultiple) + size.name, divisor, {}});
  }
  return result;
}

void write_multiple(StepWriter& w, const Heuristic& c) { w.assume_multiple(c.key.substr(kMultiple.size()), c.number); }

// The loops of all tensors, as far as their parallel types. Vectors are not marked yet.
void write_loops(Prepared& p, const Heuristics& h) {
  StepWriter& w = p.w;
  const std::string& y = p.reference;
  for (const Heuristic& c : h.choices)
    if (c.key.starts_with(kMultiple)) write_multiple(w, c);
  if (rank_of(w.graph(), w.tensor(y)) == 0) return;
  if (h.number("reuse") > 1) return write_reuse(p, h);
  Loops l = write_reference(w, y, h);
  std::string unrolled;
  if (h.number("unroll") > 1) {
    auto& repeated = l.walk.empty() ? l.block : l.walk;
    std::tie(repeated, unrolled) = w.split(y, repeated, h.number("unroll"), "o", "u");
  }
  if (!unrolled.empty() || !l.parts.empty() || !l.walk.empty()) {
    std::vector<std::string> loops = {l.block, l.thread, l.walk, unrolled, l.parts, l.vector};
    std::erase(loops, "");
    w.reorder(y, loops);
  }
  const auto along = p.once.behind.empty() ? std::vector<std::string>() : p.along_reference();
  const bool is_alone = !p.once.behind.empty() && along.empty();  // an empty list would stand for all
  if (!is_alone) w.transform_like(y, along);
  p.follow_readers();
  w.parallelize(y, l.block, ParallelType::kGridX);
  w.parallelize(y, l.thread, ParallelType::kBlockX);
  if (!unrolled.empty()) w.parallelize(y, unrolled, ParallelType::kUnroll);
  if (!l.parts.empty()) w.parallelize(y, l.parts, ParallelType::kUnswitch);
  if (!l.walk.empty()) w.parallelize(y, l.walk, ParallelType::kUnswitch);
  if (!is_alone) w.parallelize_like(y, along);
  p.parallelize_like_readers();
}

// Whether the innermost loop of a tensor is the chunk's, and runs over an axis of its own.
bool has_chunk(const Graph& g, ValueId v, int64_t vector) {
  const auto& loop = loop_of(g.tensor_of(v));
  if (loop.empty() || !g[loop.back()].def || is_thread(g[loop.back()].parallel)) return false;
  const Transform& split = g[g[loop.back()].def];
  if (split.kind != TransformKind::kSplit || !split.inner_split || split.outputs[1] != loop.back() ||
      constant_integer(g, split.factor) != vector)
    return false;
  return std::ranges::any_of(leaves(g, loop.back()),
                             [&](DomainId d) { return g[d].iter_type != IterType::kBroadcast; });
}

// Loads stand outside of unrolled loops, so that all of them are on their way before the first is waited for.
void write_inlining(Prepared& p, const Heuristics& h) {
  StepWriter& w = p.w;
  if (h.number("reuse") > 1) {
    w.inline_most(p.all_but(reused_loads(p, h)));
  } else if (h.number("unroll") > 1) {
    const auto others = p.all_but(p.loads);
    const Graph& g = w.graph();
    const ParallelType outside = h.has("walk") ? ParallelType::kUnswitch : ParallelType::kBlockX;
    for (const std::string& load : p.loads) {
      const auto& loop = loop_of(g.tensor_of(w.tensor(load)));
      const auto at = std::ranges::find(loop, outside, [&](DomainId d) { return g[d].parallel; });
      if (at != loop.end()) w.inline_at(load, std::string(g[*at].name));
    }
    w.inline_most(others);
  } else {
    w.inline_most();
  }
  p.finish();
}

struct Extent {
  double most = 1;
  int64_t divisor = 1;
};

Extent extent_of(const ScheduleView& view, std::span<const DomainId> axes) {
  Extent e;
  for (DomainId d : axes) {
    if (view.fusion[d].iter_type == IterType::kBroadcast) continue;
    const SizeClass c = view.sizes.of(d);
    e.most *= static_cast<double>(std::max<int64_t>(c.most, 1));
    e.divisor = std::min(e.divisor * c.divisor, kVectorBytes);
  }
  return e;
}

// How many elements of the outer axes a thread takes with one chunk of the inputs that lack these axes: several if such
// inputs are a large part of what is read. They would come from the L2 cache again for each.
int64_t choose_reuse(const ScheduleView& view, const FusionAxes& all, ValueId reference,
                     const std::vector<std::vector<DomainId>>& runs, double blocks) {
  const Graph& g = view.fusion;
  if (runs.size() < 2) return 1;
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  const bool has_reshape = std::ranges::any_of(g.ops, [](const Op& op) { return op.kind == OpKind::kReshape; });
  int64_t reused = 0, streamed = 0;
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value)) streamed += size_bytes(g[out.value].dtype);
  for (ValueId v : inputs(g)) {
    if (!g.is_tensor(v)) continue;
    const auto along = axes_along(g, all, reference, v);
    const auto has = [&](DomainId d) { return along[position_in(axes, d)].has_value(); };
    const auto has_if_long = [&](DomainId d) { return g[d].iter_type == IterType::kBroadcast || has(d); };
    const auto own = logical_without_reductions(g, g.tensor_of(v));
    const auto is_long = [&](DomainId d) { return g[d].iter_type != IterType::kBroadcast; };
    const auto is_found = [](const std::optional<size_t>& axis) { return axis.has_value(); };
    // An axis that a reshape merges with another is none of the reference's, so its input seems to lack the rows. So does an input
    // that is padded along the rows: it counts as reused still, because its kernel is right and one row of a thread was not timed.
    const bool has_others = has_reshape && std::ranges::count_if(own, is_long) > std::ranges::count_if(along, is_found);
    if (has_others || std::ranges::any_of(runs.front(), has))
      streamed += size_bytes(g[v].dtype);
    else if (std::all_of(runs.begin() + 1, runs.end(),
                         [&](const auto& run) { return std::ranges::all_of(run, has_if_long); }))
      reused += size_bytes(g[v].dtype);
  }
  int64_t reuse = 2 * reused > streamed ? 8 : 1;
  double rows = 1;
  for (DomainId d : runs.front())
    if (g[d].iter_type != IterType::kBroadcast) rows *= static_cast<double>(view.sizes.of(d).most);
  while (reuse > 1 && (blocks / static_cast<double>(reuse) < static_cast<double>(4 * view.device.multiprocessors) ||
                       rows < static_cast<double>(reuse)))
    reuse /= 2;
  return rows > static_cast<double>(kMostGrid[1]) ? 1 : reuse;
}

// An axis of few elements that ops cut or pad, which each thread walks whole: none, or the outermost one between the runs.
// So a thread loads an element once, although parts of it move.
DomainId choose_parts(const Graph& g, const FusionAxes& all, const std::vector<std::vector<DomainId>>& runs) {
  for (size_t i = 1; i + 1 < runs.size(); ++i)
    for (DomainId d : runs[i]) {
      const int64_t extent = g[d].extent ? constant_integer(g, g[d].extent).value_or(0) : 0;
      if (g[d].iter_type == IterType::kIteration && extent > 1 && extent <= kMostParts && all.is_resized(d)) return d;
    }
  return {};
}

void choose_launch(const ScheduleView& view, Heuristics& h, double chunks, int64_t unroll, const Walk& walk) {
  if (walk) unroll = 1;
  const auto blocks = [&](int64_t threads) { return chunks / static_cast<double>(threads * unroll); };
  const auto wanted = static_cast<double>(2 * view.device.multiprocessors);
  while (unroll > 1 && blocks(128) < wanted) unroll /= 2;
  int64_t threads = 256;
  if (blocks(threads) < wanted) threads = 128;
  while (threads > view.device.warp && chunks <= static_cast<double>(threads / 2)) threads /= 2;
  h.set("threads", threads);
  h.set("unroll", unroll * walk.unroll);
}

// The loops that these heuristics give, whatever the widths of single copies are. The memo does not keep them.
Written take_loops(const ScheduleView& view, Heuristics h) {
  std::erase_if(h.choices, [](const Heuristic& c) { return c.key.starts_with('%'); });
  if (view.memo && view.memo->loops.prepared && view.memo->loops.heuristics == h)
    return std::exchange(view.memo->loops, {});
  Written made{std::move(h), take_prepared(view)};
  try {
    write_loops(*made.prepared, made.heuristics);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;  // any other: the last step is refused, and with it the schedule
    made.is_refused = true;
  }
  return made;
}

// By copy: the elements that it can move at once.
using Widths = std::vector<int64_t>;

// What `ask` says of widths, or nothing if the kernel plan refuses the schedule.
template <class Ask>
auto unless_refused(Ask&& ask) -> std::optional<decltype(ask())> {
  try {
    return ask();
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    return std::nullopt;
  }
}

int64_t sum_of_wide(const Widths& widths) {
  int64_t sum = 0;
  for (int64_t w : widths) sum += w > 1 ? w : 0;
  return sum;
}

// A schedule in which every copy with a chunk is in vectors, and the widths that the copies can really have.
struct Vectors {
  std::shared_ptr<Prepared> schedule;  // none if a step is refused
  std::vector<std::string> copies;
  Widths widths;
  std::vector<Heuristic> multiples;  // the facts that these widths take
  std::shared_ptr<KernelPlan::Views> views;
  bool is_refused = false;  // by the kernel plan: chunks of several elements may be what it refuses
};

// The facts about sizes, and the widths with them, if they make accesses wider. `asked` gave the widths without.
void choose_multiples(const ScheduleView& view, int64_t vector, VectorWidths& asked, Vectors& v) {
  std::vector<std::string> narrow;
  for (size_t i = 0; i < v.copies.size(); ++i)
    if (v.widths[i] < vector) narrow.push_back(v.copies[i]);
  if (narrow.empty()) return;
  std::vector<Heuristic> multiples = known_multiples(view);
  if (multiples.empty()) return;
  // The facts stand behind the loops here, and before them in the plan. The kernel plan knows them either way.
  const std::shared_ptr<Prepared> with = std::exchange(v.schedule, nullptr);  // it is no plan: some copies are narrower
  for (const Heuristic& m : multiples) write_multiple(with->w, m);
  const auto widths = [&](const std::vector<std::string>& copies) {
    return unless_refused([&] { return asked.of(copies); });
  };
  if (!unless_refused([&] { return asked.learn_facts(), true; })) return;
  const int64_t wide = vector * static_cast<int64_t>(v.copies.size() - narrow.size());
  const auto of_narrow = widths(narrow);
  if (!of_narrow || wide + sum_of_wide(*of_narrow) <= sum_of_wide(v.widths)) return;
  auto wider = widths(v.copies);
  if (!wider || sum_of_wide(*wider) <= sum_of_wide(v.widths)) return;
  v.widths = std::move(*wider);
  v.multiples = std::move(multiples);
}

Vectors choose_vectors(const ScheduleView& view, const Heuristics& h) {
  Vectors result;
  Written loops = take_loops(view, h);
  std::shared_ptr<Prepared> tried;
  if (!loops.is_refused) tried = view.memo ? std::make_shared<Prepared>(*loops.prepared) : loops.prepared;
  if (view.memo) view.memo->loops = std::move(loops);
  if (!tried) return result;
  StepWriter& w = tried->w;
  try {
    for (const auto* list : {&tried->loads, &tried->stores})
      for (const std::string& name : *list)
        if (has_chunk(w.graph(), w.tensor(name), h.number("vector"))) result.copies.push_back(name);
    for (const std::string& name : result.copies) w.parallelize(name, w.loops(name).back(), ParallelType::kVectorize);
    write_inlining(*tried, h);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;  // any other: the schedule is refused as a whole, vectors or not
    return {};
  }
  result.schedule = tried;
  result.widths = Widths(result.copies.size(), 1);
  if (result.copies.empty()) return result;
  auto asked = unless_refused([&] { return VectorWidths(view, w.graph()); });
  const auto widths = asked ? unless_refused([&] { return asked->of(result.copies); }) : std::nullopt;
  result.is_refused = !widths;
  if (result.is_refused) return result;
  result.widths = *widths;
  result.views = asked->views();
  choose_multiples(view, h.number("vector"), *asked, result);
  return result;
}

// The tensors that the kernel reads or stores whole.
int64_t streams_of(const ScheduleView& view, const FusionAxes& all, ValueId reference) {
  const Graph& g = view.fusion;
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  int64_t count = 0;
  for (const OutputRef& out : outputs(g)) count += g.is_tensor(out.value) ? 1 : 0;
  for (ValueId v : inputs(g)) {
    if (!g.is_tensor(v)) continue;
    const auto along = axes_along(g, all, reference, v);
    bool is_whole = true;
    for (size_t i = 0; i < axes.size(); ++i)
      is_whole = is_whole && (along[i] || g[axes[i]].iter_type == IterType::kBroadcast);
    count += is_whole ? 1 : 0;
  }
  return count;
}

// Whether chunks of 8 bytes are better than those of 16, for 16-bit numbers of several tensors. Of four tensors and more,
// where threads by whole chunks fill the GPU one to four times: on an H100, Adam of [2174, 1408] in bf16 took 17.1 µs by 16
// bytes and 16.1 by 8, and eleven such shapes 1 to 7 % less. Of three, where threads fill half of the GPU to all of it:
// swiglu of [36608, 44] took 8.4 and 8.0, and five such shapes 3 to 5 % less; fewer or more elements took as long or longer,
// [234, 31360] 16.6 and 17.5.
bool are_halves_better(const ScheduleView& view, const FusionAxes& all, ValueId reference, int64_t full, int64_t widest,
                       double elements) {
  if (full * 2 != kVectorBytes || widest != 2) return false;
  const double threads = elements / static_cast<double>(full);
  const auto held = static_cast<double>(view.device.multiprocessors * view.device.threads);
  if (2 * threads < held || threads > 4 * held) return false;
  const int64_t streams = streams_of(view, all, reference);
  return streams > 3 ? threads >= held : streams == 3 && 4 * threads <= 5 * held;
}

// The heuristics with chunks of at most so many elements, in the innermost run of axes or, `is_flat`, along all axes as one.
Heuristics choose(const ScheduleView& view, std::string_view scheduler, int64_t most, bool is_flat = false) {
  const Graph& g = view.fusion;
  const ValueId reference = reference_of(view);
  Heuristics h{.scheduler = std::string(scheduler), .choices = {}};
  h.set("reference", "%" + g[reference].name);
  const auto axes = fusion_axes(view);
  const auto all = axes_in_memory(g, reference);
  const auto runs = is_flat ? std::vector<std::vector<DomainId>>{all} : runs_of(g, *axes, reference);
  const Extent inner = runs.empty() ? Extent{} : extent_of(view, runs.back());
  const Extent whole = extent_of(view, all);
  const int64_t widest = std::min<int64_t>(widest_stream(view, reference), kVectorBytes);
  const int64_t full = std::min({inner.divisor, kVectorBytes / widest, most});
  const Walk walk = scheduler == "pointwise" && !is_flat ? choose_walk(view, *axes, reference, full, widest) : Walk();
  const bool has_halves = are_halves_better(view, *axes, reference, full, widest, whole.most);
  const int64_t vector = walk ? walk.vector : has_halves ? full / 2 : full;
  h.set("axes", runs.empty() ? 0 : static_cast<int64_t>(runs.back().size()));
  h.set("vector", vector);
  const DomainId parts = choose_parts(g, *axes, runs);
  const int64_t walked = walk ? view.sizes.of(walk.axis).most : 1;
  const int64_t count = parts ? *constant_integer(g, g[parts].extent) : walked;
  const double chunks = whole.most / static_cast<double>(vector * count);
  // Where a chunk is narrow, a thread takes several, to have as many bytes on their way.
  const int64_t unroll = std::min(kMostUnroll, std::max<int64_t>(1, kVectorBytes / (full * widest * count)));
  choose_launch(view, h, chunks, unroll, walk);
  const double blocks = chunks / static_cast<double>(h.number("threads"));
  h.set("outer", runs.empty() ? 0 : static_cast<int64_t>(runs.front().size()));
  h.set("reuse", h.number("unroll") > 1 ? 1 : choose_reuse(view, *axes, reference, runs, blocks));
  if (walk) h.set("walk", g[walk.axis].name);
  if (parts) h.set("parts", g[parts].name);
  if (vector > 1) {
    const Vectors found = choose_vectors(view, h);
    // A slice may cut a chunk of several elements short; one element is in it or not.
    if (found.is_refused) return choose(view, scheduler, 1);
    // Where no tensor moves in vectors, neighbouring threads take neighbouring elements.
    const bool are_single = std::ranges::all_of(found.widths, [](int64_t width) { return width == 1; });
    if (are_single && !found.copies.empty()) return choose(view, scheduler, 1, is_flat);
    const auto is_full = [&](int64_t width) { return width == vector; };
    const bool is_plan = found.schedule && found.multiples.empty() && std::ranges::all_of(found.widths, is_full);
    h.choices.insert(h.choices.end(), found.multiples.begin(), found.multiples.end());
    for (size_t i = 0; i < found.copies.size(); ++i)
      if (found.widths[i] > 1) h.set("%" + found.copies[i], found.widths[i]);
    if (view.memo && is_plan) view.memo->schedule = {h, found.schedule, false, found.views};
  }
  // Rows that no chunk of 8 bytes divides may have whole chunks all together. On an H200, [30000, 1001] in bf16 times a column
  // plus a row took 48.8 µs by single elements, and 34.4 so.
  const bool is_narrow = full * widest < kVectorBytes / 2;
  if (is_flat || runs.size() < 2 || parts || walk || !is_narrow || std::min(whole.divisor, most) <= full) return h;
  Heuristics flat = choose(view, scheduler, most, true);
  const auto elements_at_once = [&](const Heuristics& of) {
    int64_t sum = 0;
    for (const Heuristic& c : of.choices) sum += c.key.starts_with('%') ? c.number : 0;
    return sum;
  };
  return flat.number("vector") > vector && elements_at_once(flat) > elements_at_once(h) ? flat : h;
}

// The vectors and the inlining of a plan whose loops are written.
void write_rest(Prepared& p, const Heuristics& h) {
  for (const auto* list : {&p.loads, &p.stores})
    for (const std::string& name : *list) {
      const auto choice = std::ranges::find(h.choices, "%" + name, &Heuristic::key);
      if (choice == h.choices.end()) continue;
      std::string chunk = p.w.loops(name).back();
      if (choice->number < h.number("vector")) chunk = p.w.split(name, chunk, choice->number, "v", "e").second;
      p.w.parallelize(name, chunk, ParallelType::kVectorize);
    }
  write_inlining(p, h);
}

}  // namespace

Heuristics elementwise_choose(const ScheduleView& view, std::string_view scheduler) {
  return choose(view, scheduler, kVectorBytes);
}

std::vector<Step> elementwise_plan(const ScheduleView& view, const Heuristics& h) {
  if (view.memo && view.memo->schedule.prepared && view.memo->schedule.heuristics == h)
    return view.memo->schedule.prepared->w.steps();
  const Written loops = take_loops(view, h);
  const std::shared_ptr<Prepared> p = loops.prepared;
  if (loops.is_refused) return p->w.steps();
  try {
    write_rest(*p, h);
    if (view.memo) view.memo->schedule = {h, p};
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;  // any other: the last step is refused, and with it the schedule
  }
  return p->w.steps();
}

}  // namespace fusebox
