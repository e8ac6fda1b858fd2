#include "passes/schedule/reduction_loops.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "ir/domain/domain.h"
#include "passes/schedule/fresh_names.h"
#include "passes/schedule/reduction_passes.h"
#include "passes/schedule/step_list.h"

namespace fusebox {

namespace {

using Names = StepList::Names;

std::set<std::string> listed(const std::string& names) {
  std::set<std::string> result;
  for (const auto part : std::views::split(names, ','))
    if (!part.empty()) result.emplace(part.begin(), part.end());
  return result;
}

// A loop of the reference, with the mark that all tensors get.
struct Loop {
  std::string name;
  ParallelType type = ParallelType::kSerial;
};

class LoopPlanner {
 public:
  LoopPlanner(const ScheduleView& view, const ReductionSpace& space, const Heuristics& h)
      : g_(view.fusion),
        space_(space),
        h_(h),
        defects_(view.defects),
        access_(find_access(view, space)),
        names_(view.fusion),
        ref_(g_[space.reference].name),
        in_vectors_(listed(h.word("in_vectors"))),
        vector_(h.number("vector")),
        is_inner_(h.word("axes") == "inner"),
        keeps_row_(h.word("form") == "registers") {}

  std::vector<Step> run() {
    copy_inputs();
    copies_ = keeps_row_ ? own_copies() : split_passes(g_, space_, cached_, names_, steps_);
    copy_outputs();
    is_inner_ ? split_inner() : split_outer();
    Names order;
    for (const Loop& loop : loops_) order.push_back(loop.name);
    steps_.reorder(ref_, order);
    steps_.transform_like(ref_);
    const auto overwriting = give_one_thread();
    for (const Loop& loop : loops_)
      if (loop.type != ParallelType::kSerial) steps_.parallelize(ref_, loop.name, loop.type);
    steps_.parallelize_like(ref_);
    for (const auto& [output, chain] : overwriting) mark_one_thread(output, chain);
    mark_copies();
    inline_all();
    state_facts();
    return steps_.take();
  }

 private:
  bool is_overwritten(ValueId input) const {
    return std::ranges::any_of(outputs(g_), [&](const OutputRef& out) { return out.alias == input; });
  }

  bool has_readers(ValueId v) const {
    return std::ranges::any_of(tensor_ops(g_), [&](OpId op) { return std::ranges::count(g_[op].operands, v) > 0; });
  }

  // Copies inputs that are read in vectors, full inputs whose loads should be under way together, and small inputs that
  // a thread reads once instead of at every place of a row.
  void copy_inputs() {
    for (ValueId v : inputs(g_)) {
      if (!g_.is_tensor(v) || !has_readers(v) || !can_be_cached(g_, v)) continue;
      const bool is_vectorized = in_vectors_.contains(g_[v].name);
      const bool is_batched = !keeps_row_ && space_.is_full(v);
      const bool is_kept = !space_.is_full(v) && rank_of(g_, v) > 0 && !is_overwritten(v) && is_broadcast(v);
      if (!is_vectorized && !is_batched && !is_kept) continue;
      const std::string copy = names_.tensor(g_[v].name);
      steps_.cache_after(g_[v].name, copy);
      cached_[g_[v].name] = copy;
    }
  }

  bool is_broadcast(ValueId v) const {
    return std::ranges::any_of(tensor_ops(g_), [&](OpId op) {
      return demands(g_[op].kind, kMetadata) && std::ranges::count(g_[op].operands, v) > 0;
    });
  }

  std::map<std::string, std::vector<std::string>> own_copies() const {
    std::map<std::string, std::vector<std::string>> result;
    for (const auto& [input, copy] : cached_) result[input] = {copy};
    return result;
  }

  // An output that is read too becomes a copy of what is read. A full output that is stored in vectors becomes a copy
  // as well.
  void copy_outputs() {
    std::set<ValueId> done;
    for (const OutputRef& out : outputs(g_)) {
      const ValueId v = out.value;
      if (!g_.is_tensor(v) || g_[g_[v].def].kind == OpKind::kInput || !done.insert(v).second) continue;
      const std::string& name = g_[v].name;
      const bool is_vectorized = in_vectors_.contains(name);
      if (has_readers(v)) {
        const std::string copy = names_.tensor(name);
        steps_.cache_fork(name, copy);
        stored_[name] = copy;
      } else if (is_vectorized) {
        const std::string made = names_.tensor(name);
        steps_.cache_before(name, made);
        made_.push_back(made);
        stored_[name] = name;
      }
    }
  }

  std::string domain(const std::string& wanted) { return names_.domain(wanted); }

  std::string merge_all(const std::vector<std::string>& axes, const std::string& wanted) {
    std::string merged = axes[0];
    for (size_t i = 1; i < axes.size(); ++i) {
      std::string next = domain(wanted);
      steps_.merge(ref_, merged, axes[i], next);
      merged = std::move(next);
    }
    return merged;
  }

  std::vector<std::string> names_of(const std::vector<DomainId>& axes) const {
    std::vector<std::string> result;
    for (DomainId d : axes) result.push_back(g_[d].name);
    return result;
  }

  // Splits off the vectors, if there are any. Returns the loop over the rest.
  std::string split_vector(const std::string& axis) {
    if (vector_ == 1) return axis;
    const std::string rest = domain("c");
    v_ = domain("v");
    steps_.split(ref_, axis, vector_, rest, v_);
    return rest;
  }

  void add(const std::string& name, ParallelType type = ParallelType::kSerial) {
    if (!name.empty()) loops_.push_back({name, type});
  }

  // The rows: the product of the kept axes, and the rows that a block takes at once.
  void split_rows(std::string& b, std::string& z) {
    if (access_.kept.empty()) return;
    b = merge_all(names_of(access_.kept), "row");
    if (h_.number("rows") == 1) return;
    z = domain("z");
    const std::string outer = domain("b");
    steps_.split(ref_, b, h_.number("rows"), outer, z);
    b = outer;
  }

  void split_inner() {
    std::string b, z;
    split_rows(b, z);
    // Vectors lie in the innermost axis; the others are merged with what is left of it.
    std::vector<std::string> axes = names_of(access_.reduced);
    std::string column;
    if (h_.word("merge") == "first") {
      column = split_vector(merge_all(axes, "i"));
    } else {
      axes.back() = split_vector(axes.back());
      column = merge_all(axes, "i");
    }
    const std::string k = domain("k"), l = domain("l");
    steps_.split(ref_, column, h_.number("lanes"), k, l);
    keeps_row_ ? split_chunks(b, z, k, l) : split_strips(b, z, k, l);
  }

  void split_chunks(const std::string& b, const std::string& z, const std::string& k, const std::string& l) {
    const int64_t chunks = h_.number("chunks");
    std::string w = k, r;
    if (chunks > 1) {
      r = domain("r");
      w = domain("w");
      vector_ > 1 ? steps_.split_outer(ref_, k, chunks, r, w) : steps_.split(ref_, k, chunks, w, r);
    }
    last_shared_ = z.empty() ? b : z;
    add(b, ParallelType::kGridX);
    add(z, ParallelType::kBlockZ);
    if (vector_ > 1) add(r);
    add(w, ParallelType::kBlockY);
    add(l, ParallelType::kBlockX);
    if (vector_ == 1) add(r, ParallelType::kUnswitch);
    add(v_);
  }

  // The serial walk: unrolled accesses, and the slices of several blocks.
  void split_walk(std::string k, std::string& s, std::string& o) {
    if (h_.number("unroll") > 1) {
      o = domain("o");
      u_ = domain("u");
      steps_.split(ref_, k, h_.number("unroll"), o, u_);
      k = o;
    }
    o = k;
    if (h_.number("slices") == 1) return;
    // Neighbouring blocks take neighbouring parts.
    o = domain("q");
    s = domain("s");
    steps_.split(ref_, k, h_.number("slices"), o, s);
  }

  void split_strips(const std::string& b, const std::string& z, const std::string& k, const std::string& l) {
    std::string s, o;
    split_walk(k, s, o);
    last_shared_ = o;
    add(b, ParallelType::kGridX);
    add(z, ParallelType::kBlockY);
    add(s, b.empty() ? ParallelType::kGridX : ParallelType::kGridY);
    add(o);
    add(u_);
    add(l, ParallelType::kBlockX);
    add(v_);
  }

  void split_outer() {
    std::vector<std::string> kept = names_of(access_.kept);
    const std::string columns = split_vector(kept.back());
    const std::string l = domain("l");
    kept.back() = domain("t");
    steps_.split(ref_, columns, h_.number("lanes"), kept.back(), l);
    const std::string b = merge_all(kept, "b");
    const std::string row = merge_all(names_of(access_.reduced), "row");
    std::string k = row, w;
    if (h_.number("warps") > 1) {
      k = domain("k");
      w = domain("w");
      steps_.split(ref_, row, h_.number("warps"), k, w);
    }
    std::string s, o;
    split_walk(k, s, o);
    last_shared_ = o;
    add(b, ParallelType::kGridX);
    add(s, ParallelType::kGridY);
    add(o);
    add(u_);
    add(w, ParallelType::kBlockY);
    add(l, ParallelType::kBlockX);
    add(v_);
  }

  // Small outputs that overwrite inputs, each with the small tensors that are made on the way. Only one thread may read
  // what it overwrites, so each of them gets a loop of one iteration in place of the block's others.
  std::map<std::string, Names> give_one_thread() {
    std::map<std::string, Names> result;
    if (!is_inner_ || access_.kept.empty()) return result;
    for (const OutputRef& out : outputs(g_)) {
      if (!out.alias || !g_.is_tensor(out.value) || space_.is_full(out.value)) continue;
      const std::string output =
          stored_.contains(g_[out.value].name) ? stored_[g_[out.value].name] : g_[out.value].name;
      Names chain;
      std::set<ValueId> on_way{out.alias};
      for (OpId op : tensor_ops(g_)) {
        if (g_[op].results[0] == out.value || demands(g_[op].kind, kReduction)) continue;
        if (std::ranges::none_of(g_[op].operands, [&](ValueId v) { return on_way.contains(v); })) continue;
        on_way.insert(g_[op].results.begin(), g_[op].results.end());
        chain.push_back(g_[g_[op].results[0]].name);
      }
      const bool has_rows = h_.number("rows") > 1;
      const std::string& last = loops_[has_rows ? 1 : 0].name;
      const std::string row = domain("n"), x = domain("x");
      steps_.split(output, last, 1, row, x);
      one_[output] = {{row, loops_[has_rows ? 1 : 0].type}, {x, ParallelType::kBlockX}};
      if (keeps_row_) {
        const std::string y = domain("y"), rest = domain("e");
        steps_.split(output, x, 1, rest, y);
        one_[output] = {{row, one_[output][0].type}, {rest, ParallelType::kBlockX}, {y, ParallelType::kBlockY}};
      }
      if (!chain.empty()) steps_.transform_like(output, chain);
      result[output] = std::move(chain);
    }
    return result;
  }

  void mark_one_thread(const std::string& output, const Names& chain) {
    for (const Loop& loop : one_.at(output)) steps_.parallelize(output, loop.name, loop.type);
    if (!chain.empty()) steps_.parallelize_like(output, chain);
  }

  void mark_copies() {
    for (const auto& [input, copies] : copies_)
      for (const std::string& copy : copies) {
        if (!u_.empty() && is_full(input)) steps_.parallelize(copy, u_, ParallelType::kUnroll);
        if (in_vectors_.contains(input)) steps_.parallelize(copy, v_, ParallelType::kVectorize);
      }
    for (const auto& [output, store] : stored_)
      if (in_vectors_.contains(output)) steps_.parallelize(store, v_, ParallelType::kVectorize);
  }

  bool is_full(const std::string& name) const { return space_.is_full(*find_value(g_, name)); }

  void inline_all() {
    if (keeps_row_) return steps_.inline_most({});
    // The loads of a strip come together, before what reads them.
    std::set<std::string> loads;
    for (const auto& [input, copies] : copies_)
      for (const std::string& copy : copies) {
        if (!is_full(input)) {
          made_.push_back(copy);
          continue;
        }
        steps_.inline_at(copy, last_shared_);
        loads.insert(copy);
      }
    Names others = std::move(made_);
    for (OpId op : tensor_ops(g_)) others.push_back(g_[g_[op].results[0]].name);
    for (const Step& step : steps_.steps())
      if (step.kind == StepKind::kRecompute && !loads.contains(step.results[0])) others.push_back(step.results[0]);
    steps_.inline_most(others);
  }

  // The launch checks that rows are as short as the heuristics say, and that a block has no more threads.
  void state_facts() {
    if (keeps_row_ && !defects_.has(Defect::kRowFactLeftOut)) {
      Names sizes;
      int64_t bound = h_.number("longest");
      bool is_known = true;
      for (DomainId d : space_.reduced) {
        const ValueId extent = g_[d].extent;
        const auto constant = extent ? constant_integer(g_, extent) : std::nullopt;
        if (constant)
          bound = bound / std::max<int64_t>(*constant, 1);
        else if (extent && g_[extent].dtype == Dtype::kIndex && !g_[extent].name.empty())
          sizes.push_back(g_[extent].name);
        else
          is_known = false;
      }
      if (is_known && !sizes.empty() && bound > 0) steps_.assume_at_most(sizes, bound);
    }
    if (!defects_.has(Defect::kBoundLeftOut)) steps_.bound_launch(h_.number("threads"), 1);
  }

  const Graph& g_;
  const ReductionSpace& space_;
  const Heuristics& h_;
  const Defects& defects_;
  const ReductionAccess access_;  // for the order of the axes
  FreshNames names_;
  StepList steps_;
  const std::string ref_;
  const std::set<std::string> in_vectors_;
  const int64_t vector_;
  const bool is_inner_, keeps_row_;
  std::map<std::string, std::string> cached_;               // input → its copy
  std::map<std::string, std::vector<std::string>> copies_;  // input → all copies
  std::map<std::string, std::string> stored_;               // output → the tensor that is stored
  std::map<std::string, std::vector<Loop>> one_;            // output → its loops of one thread
  Names made_;                                              // tensors that `cache_before` made
  std::vector<Loop> loops_;
  std::string v_, u_, last_shared_;
};

}  // namespace

std::vector<Step> plan_reduction(const ScheduleView& view, const ReductionSpace& space, const Heuristics& h) {
  return LoopPlanner(view, space, h).run();
}

}  // namespace fusebox
