#include "passes/schedule/reduction_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>

#include "ir/domain/domain.h"
#include "passes/schedule/column_ends.h"
#include "passes/schedule/column_parts.h"
#include "passes/schedule/column_values.h"
#include "passes/schedule/fresh_names.h"
#include "passes/schedule/loop_space.h"
#include "passes/schedule/reduction_passes.h"
#include "passes/schedule/reduction_splits.h"
#include "passes/schedule/step_draft.h"
#include "passes/schedule/vector_width.h"

namespace fusebox {

namespace {

using Names = StepDraft::Names;

std::set<std::string> listed(const std::string& names) {
  std::set<std::string> result;
  for (const auto part : std::views::split(names, ','))
    if (!part.empty()) result.emplace(part.begin(), part.end());
  return result;
}

class LoopPlanner {
 public:
  LoopPlanner(const ScheduleView& view, const ReductionSpace& space, const Heuristics& h)
      : g_(view.fusion),
        space_(space),
        h_(h),
        defects_(view.defects),
        begins_early_(should_begin_early(view, space.reference)),
        has_few_rows_(most_of(view.sizes, space.kept) < 2 * view.device.multiprocessors),
        access_(find_access(view, space)),
        of_one_(sizes_of_one(view)),
        row_(h.number_or("lanes", 0) == 1 && h.word("form") == "registers" ? only_size(view, space) : 0),
        names_(view.fusion),
        ref_(g_[space.reference].name),
        in_vectors_(listed(h.word("in_vectors"))),
        is_inner_(h.word("axes") == "inner"),
        keeps_row_(h.word("form") == "registers"),
        makes_again_(h.has("keep")),
        walks_(h.scheduler == "inner_outer"),
        has_parts_(h.has("walkers")),
        waits_(h.has("most_rows")) {}

  std::vector<Step> run() {
    copy_inputs();
    copies_ =
        keeps_row_ && !makes_again_ ? own_copies() : split_passes(g_, space_, cached_, keeps_row_, names_, steps_);
    std::optional<ColumnEnds> ends;
    if (!has_parts_ && !space_.columns.empty() && !defects_.has(Defect::kColumnEndsShared)) ends = copy_for_ends();
    copy_outputs();
    std::optional<ColumnParts> parts;
    if (has_parts_) parts.emplace(g_, space_, access_, h_, names_, steps_).split_off();
    split_ = split_reference(g_, access_, ref_, h_, names_, steps_);
    Names order;
    for (const ScheduledLoop& loop : split_.loops) order.push_back(loop.name);
    steps_.reorder(ref_, order);
    const Names of_rows = parts ? parts->of_rows() : Names{};
    ends ? ends->transform(ref_, steps_) : steps_.transform_like(ref_, of_rows);
    const auto overwriting = give_one_thread();
    for (const ScheduledLoop& loop : split_.loops)
      if (loop.type != ParallelType::kSerial) steps_.parallelize(ref_, loop.name, loop.type);
    ends ? ends->parallelize(ref_, steps_) : steps_.parallelize_like(ref_, of_rows);
    for (const auto& [output, chain] : overwriting) mark_one_thread(output, chain);
    if (parts) parts->schedule();
    mark_copies();
    inline_all();
    state_facts();
    return steps_.take();
  }

 private:
  // The length that all rows of the class have; 0 if it has several.
  static int64_t only_size(const ScheduleView& view, const ReductionSpace& space) {
    if (space.reduced.size() != 1) return 0;
    const SizeClass c = view.sizes.of(space.reduced[0]);
    return c.most % c.divisor == 0 && c.most - c.divisor < least_of(view.sizes, space.reduced) ? c.most : 0;
  }

  bool is_overwritten(ValueId input) const {
    return std::ranges::any_of(outputs(g_), [&](const OutputRef& out) { return out.alias == input; });
  }

  bool has_readers(ValueId v) const {
    return std::ranges::any_of(tensor_ops(g_), [&](OpId op) { return std::ranges::count(g_[op].operands, v) > 0; });
  }

  // Copies inputs that are read in vectors, full inputs whose loads should be under way together or that several passes
  // read, small inputs that a thread reads once instead of at every place of a row. What only later passes read is loaded with the row, if it is
  // one access, or few elements of one of few rows.
  void copy_inputs() {
    constexpr int64_t kFewElements = 8;
    const bool keeps = keeps_row_ && !makes_again_ && !walks_, has_one_access = keeps && h_.number("chunks") == 1;
    const bool keeps_few = keeps && has_few_rows_ && h_.number("chunks") * h_.number("vector") <= kFewElements;
    for (ValueId v : inputs(g_)) {
      if (!g_.is_tensor(v) || !has_readers(v) || !can_be_cached(g_, v)) continue;
      const bool is_vectorized = in_vectors_.contains(g_[v].name);
      // A copy that is loaded a row ahead is one access, without a branch around single elements.
      const bool is_read_again = !has_parts_ && space_.passes_of(v).size() > 1;
      const bool is_batched = space_.is_full(v) && (!keeps_row_ || makes_again_ || is_read_again);
      const bool is_kept = !space_.is_full(v) && rank_of(g_, v) > 0 && !is_overwritten(v) &&
                           (is_broadcast(v) || (makes_columns_once() && is_of_whole_columns(g_, space_, v)));
      const bool is_read_later = !space_.passes_of(v).contains(0);
      const bool may_be_early = is_read_later && !has_part_of_rows(v);
      const bool is_late = keeps_few && may_be_early && rank_of(g_, v) > 0 && !is_overwritten(v);
      if (!is_vectorized && !is_batched && !is_kept && !is_late) continue;
      const std::string copy = names_.tensor(g_[v].name);
      steps_.cache_after(g_[v].name, copy);
      cached_[g_[v].name] = copy;
      if (is_late || (has_one_access && may_be_early)) early_.insert(copy);
    }
  }

  // Whether the tensor has some of the kept axes and lacks others. A copy in loops of its own would have other rows then.
  bool has_part_of_rows(ValueId v) const {
    const auto has = [&](DomainId axis) {
      return std::ranges::any_of(g_.tensor_of(v).logical, [&](DomainId d) {
        return g_[d].iter_type == IterType::kIteration && space_.axis_of(d) == axis;
      });
    };
    const auto count = static_cast<size_t>(std::ranges::count_if(space_.kept, has));
    return count > 0 && count < space_.kept.size();
  }

  // What ops behind column sums read of their own, if the rows read it too.
  std::optional<ColumnEnds> copy_for_ends() {
    auto ends = ColumnEnds::split_off(g_, space_, cached_, names_, steps_);
    if (!ends || !ends->are_needed()) return std::nullopt;
    check_internal(keeps_row_ && !makes_again_, "passes that are split have other copies than those of column ends");
    copies_ = ends->copies();
    return ends;
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
      } else if (is_vectorized || stores_sums_in_vectors(name)) {
        const std::string made = names_.tensor(name);
        steps_.cache_before(name, made);
        made_.push_back(made);
        stored_[name] = name;
        if (name == ref_) ref_ = made;
      }
    }
  }

  // A thread has whole columns then.
  bool stores_sums_in_vectors(const std::string& output) const {
    return h_.word("form") == "passes" && h_.number("vector") > 1 && h_.number("warps") == 1 &&
           h_.number("slices") == 1 && std::ranges::count(access_.sums, output) > 0;
  }

  std::string domain(const std::string& wanted) { return names_.domain(wanted); }

  // Small outputs that overwrite inputs, each with the small tensors that are made on the way. Only one thread may read
  // what it overwrites, so each of them gets loops of one iteration in place of the block's others, and of the cluster's.
  // A sum has the loops of its reduction, and what lies along the rows is read by all threads: then no single thread can.
  std::map<std::string, Names> give_one_thread() {
    std::map<std::string, Names> result;
    if (!is_inner_ || walks_ || access_.kept.empty()) return result;
    if (h_.number("lanes") == 1) return result;  // a row has one thread
    for (const OutputRef& out : outputs(g_)) {
      if (!out.alias || !g_.is_tensor(out.value) || space_.is_full(out.value) || !has_readers(out.alias)) continue;
      const bool is_copy = stored_.contains(g_[out.value].name);
      const std::string output = is_copy ? stored_[g_[out.value].name] : g_[out.value].name;
      if (!is_copy && demands(g_[g_[out.value].def].kind, kReduction)) continue;
      Names chain;
      bool is_by_all = false;
      std::set<ValueId> on_way{out.alias};
      for (OpId op : tensor_ops(g_)) {
        if (g_[op].results[0] == out.value || demands(g_[op].kind, kReduction)) continue;
        if (std::ranges::none_of(g_[op].operands, [&](ValueId v) { return on_way.contains(v); })) continue;
        on_way.insert(g_[op].results.begin(), g_[op].results.end());
        chain.push_back(g_[g_[op].results[0]].name);
        is_by_all = is_by_all || space_.is_full(g_[op].results[0]);
      }
      if (is_by_all) continue;
      const bool has_rows = h_.number("rows") > 1;
      const std::string row = domain("n"), x = domain("x");
      steps_.split(output, row_of(out.value, has_rows), 1, row, x);
      auto& one = one_[output] = {{row, split_.loops[has_rows ? 1 : 0].type}, {x, ParallelType::kBlockX}};
      const auto add = [&](const char* name, ParallelType type) {
        const std::string loop = domain(name), rest = domain("e");
        steps_.split(output, one[1].name, 1, rest, loop);
        one[1].name = rest;
        one.push_back({loop, type});
      };
      if (keeps_row_) add("y", ParallelType::kBlockY);
      if (h_.number_or("cluster", 1) > 1) add("g", ParallelType::kGridY);
      if (!chain.empty()) steps_.transform_like(output, chain);
      result[output] = std::move(chain);
    }
    return result;
  }

  // The loop of a small output along which its rows are shared out. An axis that no step of the schedule has changed has
  // the name that the output gives it.
  std::string row_of(ValueId output, bool has_rows) const {
    if (access_.kept.size() == 1 && !has_rows)
      for (DomainId d : g_.tensor_of(output).logical)
        if (g_[d].iter_type == IterType::kIteration && space_.axis_of(d) == access_.kept[0]) return g_[d].name;
    return split_.loops[has_rows ? 1 : 0].name;
  }

  void mark_one_thread(const std::string& output, const Names& chain) {
    for (const ScheduledLoop& loop : one_.at(output)) steps_.parallelize(output, loop.name, loop.type);
    if (!chain.empty()) steps_.parallelize_like(output, chain);
  }

  void mark_copies() {
    for (const auto& [input, copies] : copies_)
      for (const std::string& copy : copies) {
        if (!split_.unrolled.empty() && is_full(input))
          steps_.parallelize(copy, split_.unrolled, ParallelType::kUnroll);
        if (in_vectors_.contains(input)) steps_.parallelize(copy, split_.vector, ParallelType::kVectorize);
      }
    for (const auto& [output, store] : stored_) {
      if (in_vectors_.contains(output)) steps_.parallelize(store, split_.vector, ParallelType::kVectorize);
      if (!stores_sums_in_vectors(output)) continue;
      const int64_t most = kVectorBytes / size_bytes(g_[*find_value(g_, output)].dtype);
      std::string chunk = split_.vector;
      if (h_.number("vector") > most) {
        const std::string parts = domain("p");
        chunk = domain("e");
        steps_.split(store, split_.vector, most, parts, chunk);
      }
      steps_.parallelize(store, chunk, ParallelType::kVectorize);
    }
  }

  bool is_full(const std::string& name) const { return space_.is_full(*find_value(g_, name)); }

  void inline_all() {
    if (has_parts_) return run_ahead();
    if (keeps_row_) return inline_kept();
    // The loads of a strip come together, before what reads them.
    std::set<std::string> loads;
    for (const auto& [input, copies] : copies_)
      for (const std::string& copy : copies) {
        if (!is_full(input)) {
          made_.push_back(copy);
          continue;
        }
        steps_.inline_at(copy, split_.last_shared);
        loads.insert(copy);
      }
    Names others = std::move(made_);
    for (OpId op : tensor_ops(g_)) others.push_back(g_[g_[op].results[0]].name);
    for (const Step& step : steps_.steps())
      if (step.kind == StepKind::kRecompute && !loads.contains(step.results[0])) others.push_back(step.results[0]);
    steps_.inline_most(others);
  }

  // Whether what a thread makes for a whole column stands before its places. This costs registers, of which the only block of
  // a multiprocessor has none to spare: batch norm of [20000, 700] in f16 took 77.3 µs so on an H200, and 70.7 otherwise.
  bool makes_columns_once() const {
    return keeps_row_ && !is_inner_ && h_.number("chunks") > 1 && (makes_again_ || h_.number("blocks") > 1);
  }

  void inline_kept() {
    std::set<std::string> once;
    if (makes_columns_once()) {
      for (ValueId v : made_once_for_columns(g_, space_)) once.insert(g_[v].name);
      for (const auto& [input, copies] : copies_)
        if (is_of_whole_columns(g_, space_, *find_value(g_, input))) once.insert(copies.begin(), copies.end());
    }
    std::set<std::string> others = early_;
    others.insert(once.begin(), once.end());
    steps_.inline_most(others.empty() ? Names{} : all_but(others));
    for (const std::string& name : once) steps_.inline_at(name, split_.last_shared);
  }

  // The copies of the rows' inputs are loaded a row ahead. They are inlined last: their readers share loops by then.
  void run_ahead() {
    std::set<std::string> ahead;
    for (const auto& [input, copies] : copies_) {
      const auto& axes = g_.tensor_of(*find_value(g_, input)).logical;
      if (std::ranges::none_of(axes, [&](DomainId d) {
            return g_[d].iter_type == IterType::kIteration && std::ranges::count(space_.kept, space_.axis_of(d)) > 0;
          }))
        continue;
      ahead.insert(copies.begin(), copies.end());
    }
    steps_.inline_most(all_but(ahead));
    for (const std::string& copy : ahead) {
      steps_.inline_at(copy, split_.walked);
      steps_.circular_buffer(copy, 2);
    }
  }

  Names all_but(const std::set<std::string>& copies) const {
    Names result;
    for (OpId op : tensor_ops(g_)) result.push_back(g_[g_[op].results[0]].name);
    for (const Step& step : steps_.steps())
      if ((step.kind == StepKind::kCacheAfter || step.kind == StepKind::kCacheBefore ||
           step.kind == StepKind::kCacheFork || step.kind == StepKind::kRfactor || step.kind == StepKind::kRecompute) &&
          !copies.contains(step.results[0]))
        result.push_back(step.results[0]);
    return result;
  }

  // The launch checks that rows are as short as the heuristics say and, where blocks wait for one another, as few. It
  // checks that a block has no more threads.
  void state_facts() {
    for (const std::string& size : of_one_) steps_.assume_equal(size, 1);
    if (const int64_t longest = h_.number_or("longest", 0); longest > 0 && !defects_.has(Defect::kRowFactLeftOut)) {
      // A thread then takes its row without a loop.
      const auto sizes = row_ > 0 ? sizes_of(g_, space_.reduced) : std::nullopt;
      if (sizes && sizes->names.size() == 1 && sizes->factor == 1 && std::ranges::count(of_one_, sizes->names[0]) == 0)
        steps_.assume_equal(sizes->names[0], row_);
      else
        assume_at_most(space_.reduced, longest);
    }
    if (const int64_t least = h_.number_or("least", 0); least > 1) assume_least(least);
    if (waits_) state_blocks();
    if (const int64_t blocks = h_.number_or("cluster", 1); blocks > 1)
      steps_.cluster(blocks, access_.kept.empty() ? ParallelType::kGridX : ParallelType::kGridY);
    // Blocks that wait for one another are launched together, behind whatever is in front of them.
    if (!waits_ && begins_early_) steps_.dependent_launch();
    if (!defects_.has(Defect::kBoundLeftOut)) steps_.bound_launch(h_.number("threads"), h_.number("blocks"));
  }

  // The blocks of a grid that wait for one another are as many as rows, or as the columns of a block take them.
  void state_blocks() {
    if (!h_.has("most_columns")) return assume_at_most(space_.kept, h_.number("most_rows"));
    assume_at_most(access_.columns, h_.number("most_columns"));
    assume_at_most(kept_beside(space_, access_), h_.number("most_rows"));
  }

  // Rows are no shorter, so only their last accesses are checked.
  void assume_least(int64_t least) {
    const auto sizes = sizes_of(g_, space_.reduced);
    if (sizes && sizes->names.size() == 1) steps_.assume_above(sizes->names[0], least - 1);
  }

  void assume_at_most(const std::vector<DomainId>& axes, int64_t bound) {
    const auto sizes = sizes_of(g_, axes);
    if (!sizes) return;
    if (const int64_t least = bound / std::max<int64_t>(sizes->factor, 1); !sizes->names.empty() && least > 0)
      steps_.assume_at_most(sizes->names, least);
  }

  const Graph& g_;
  const ReductionSpace& space_;
  const Heuristics& h_;
  const Defects& defects_;
  const bool begins_early_;       // before the launches in front have ended
  const bool has_few_rows_;       // too few to fill the GPU
  const ReductionAccess access_;  // for the order of the axes
  const Names of_one_;            // sizes
  const int64_t row_;             // elements of a row that one thread takes, if they are known; else 0
  FreshNames names_;
  StepDraft steps_;
  std::string ref_;  // the reference of the space, or what is stored in it
  const std::set<std::string> in_vectors_;
  const bool is_inner_, keeps_row_, makes_again_, walks_, has_parts_, waits_;
  std::map<std::string, std::string> cached_;               // input → its copy
  std::map<std::string, std::vector<std::string>> copies_;  // input → all copies
  // Copies that only later passes read, where a thread has one access of each. They share no loop, so they are loaded
  // with the row, before its threads wait for one another.
  std::set<std::string> early_;
  std::map<std::string, std::string> stored_;              // output → the tensor that is stored
  std::map<std::string, std::vector<ScheduledLoop>> one_;  // output → its loops of one thread
  Names made_;                                             // tensors that `cache_before` made
  SplitLoops split_;
};

}  // namespace

std::vector<Step> plan_reduction(const ScheduleView& view, const ReductionSpace& space, const Heuristics& h) {
  return LoopPlanner(view, space, h).run();
}

}  // namespace fusebox
