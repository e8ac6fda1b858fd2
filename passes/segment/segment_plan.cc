#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/graph/name_index.h"
#include "ir/infer/is_library.h"
#include "ir/table/error.h"
#include "ir/token/lex.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/own_memory.h"
#include "passes/segment/segment.h"
#include "passes/segment/view.h"

namespace fusebox {
namespace {

bool is_tensor_op(const Graph& g, OpId op) {
  return g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]);
}

std::vector<OpId> tensor_ops(const Graph& g) {
  std::vector<OpId> result;
  for (OpId op : g[Graph::body()].ops)
    if (is_tensor_op(g, op)) result.push_back(op);
  return result;
}

const std::string& name_of(const Graph& g, OpId op) { return g[g[op].results[0]].name; }

// Finds the values that cross borders, and orders the segments.
class Completer {
 public:
  Completer(const Graph& g, Segmentation s, const Defects& defects)
      : g_(g), segmentation_(std::move(s)), defects_(defects) {}

  Segmentation run() {
    locate();
    for (size_t i = 0; i < segmentation_.segments.size(); ++i) borders(i);
    for (const Segment& s : segmentation_.segments)
      if (s.executor == SegmentExecutor::kView) check_view(s);
    sort();
    return std::move(segmentation_);
  }

 private:
  void locate() {
    segments_of_.resize(g_.ops.size());
    readers_.resize(g_.values.size());
    positions_.resize(g_.ops.size());
    for (size_t i = 0; i < g_[Graph::body()].ops.size(); ++i) positions_[g_[Graph::body()].ops[i].index] = i;
    for (OpId op : tensor_ops(g_))
      for (ValueId v : g_[op].operands)
        if (v) readers_[v.index].push_back(op);
    for (uint32_t i = 0; i < g_.values.size(); ++i)
      if (!g_.values[i].name.empty()) values_.try_emplace(g_.values[i].name, ValueId(i));
    for (size_t i = 0; i < segmentation_.segments.size(); ++i)
      for (const std::string& name : segmentation_.segments[i].ops) {
        const auto v = values_.find(name);
        if (v == values_.end() || !g_[v->second].def || !is_tensor_op(g_, g_[v->second].def))
          throw Error(ErrorCode::kUnknownName, "no op of the fusion makes this tensor; name an op by its first result",
                      "%" + name);
        segments_of_[g_[v->second].def.index].push_back(i);
      }
    for (OpId op : tensor_ops(g_))
      if (segments_of_[op.index].empty())
        throw Error(ErrorCode::kInvalidGraph, "the op is in no segment; assign it to one", "%" + name_of(g_, op));
    for (const OutputRef& out : outputs(g_)) {
      outputs_.insert(out.value);
      if (out.alias) {
        if (defects_.has(Defect::kViewOverwrittenTwice)) overwritten_.erase(alias_[out.value]);
        alias_[out.value] = out.alias;
        overwritten_.insert(out.alias);
      } else {
        returned_.insert(out.value);
      }
    }
  }

  void borders(size_t i) {
    Segment& segment = segmentation_.segments[i];
    std::set<OpId> inside;
    for (const std::string& name : segment.ops) inside.insert(g_[values_.at(name)].def);
    std::set<ValueId> in, out;
    for (OpId op : inside)
      for (ValueId v : g_[op].operands)
        if (v && g_.is_tensor(v) && !inside.contains(g_[v].def)) in.insert(v);
    for (OpId op : inside)
      for (ValueId v : g_[op].results) {
        // If several segments make a value, it crosses from the first of them.
        if (segments_of_[op.index].front() != i) continue;
        bool needed = outputs_.contains(v);
        for (OpId reader : readers_[v.index])
          for (size_t s : segments_of_[reader.index])
            needed |= s != i && std::find(segments_of_[op.index].begin(), segments_of_[op.index].end(), s) ==
                                    segments_of_[op.index].end();
        if (needed) out.insert(v);
      }
    segment.inputs.clear();
    segment.outputs.clear();
    for (ValueId v : in) segment.inputs.push_back({g_[v].name, {}, {}, lies_over(v)});
    for (ValueId v : out) segment.outputs.push_back({g_[v].name, {}, {}, lies_over(v)});
  }

  // A view lies in its operand's memory. What the program returns lies in memory of its own, so it is a view only if nothing
  // but the program's kernels knows its operand; then the operand is made in its place.
  void check_view(const Segment& s) const {
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kStepNotApplicable, why, "segment " + s.name);
    };
    if (s.ops.size() != 1) refuse("a view is one reshape or slice; give each a segment of its own");
    const OpId op = g_[values_.at(s.ops[0])].def;
    const auto found = find_view(g_, op, defects_);
    if (const auto* why = std::get_if<std::string>(&found)) refuse(*why + "; assign it to a kernel");
    const ValueId result = g_[op].results[0], from = g_[op].operands[0];
    if (alias_.contains(from)) refuse("its operand overwrites an input; assign it to a kernel");
    for (ValueId v = from;;) {
      if (overwritten_.contains(v) && !defects_.has(Defect::kViewOfOverwritten))
        refuse("its memory is overwritten; assign it to a kernel");
      const OpId def = g_[v].def;
      if (!is_tensor_op(g_, def) || executor_of(def) != SegmentExecutor::kView) break;
      v = g_[def].operands[0];
    }
    if (!outputs_.contains(result)) return;
    const auto is_returned_view = [&](OpId reader) {
      return reader != op && executor_of(reader) == SegmentExecutor::kView && outputs_.contains(g_[reader].results[0]);
    };
    if (g_[op].kind != OpKind::kReshape || !is_tensor_op(g_, g_[from].def) || outputs_.contains(from) ||
        executor_of(g_[from].def) != SegmentExecutor::kKernel ||
        std::ranges::any_of(readers_[from.index], is_returned_view))
      refuse("an output is a view only of what one kernel makes for it; assign it to a kernel");
    const View& view = std::get<View>(found);
    if (view.in_memory.order != order_of(g_, g_.tensor_of(result)))
      refuse("the output lies in another order than its operand; assign it to a kernel");
  }

  SegmentExecutor executor_of(OpId op) const { return segmentation_.segments[segments_of_[op.index].front()].executor; }

  // The input in whose memory a crossing value lies. None unless the value's segment may write over the input itself. A
  // value has memory of its own, and is copied, if it is returned by itself too, if it is a view, if the segment's steps say so, or
  // if ATen reads it and would find another layout in the input's memory.
  std::string lies_over(ValueId v) const {
    const auto it = alias_.find(v);
    if (it == alias_.end() || !is_tensor_op(g_, g_[v].def) || returned_.contains(v)) return {};
    const size_t segment = segments_of_[g_[v].def.index].front();
    if (segmentation_.segments[segment].executor == SegmentExecutor::kView) return {};
    if (has_own_memory(segmentation_.segments[segment].steps, g_[v].name)) return {};
    if (is_read_by_aten(v) && !lies_the_same(v, it->second)) return {};
    return may_overwrite(segment, v, it->second) ? g_[it->second].name : std::string();
  }

  bool is_read_by_aten(ValueId v) const {
    return std::ranges::any_of(readers_[v.index], [&](OpId reader) {
      return is_library(g_, g_[reader]) || std::ranges::any_of(segments_of_[reader.index], [&](size_t s) {
               return segmentation_.segments[s].executor == SegmentExecutor::kAten;
             });
    });
  }

  // Whether the value lies in the input's memory as it does in memory of its own. ATen lays its results as their operands
  // lie, so they would depend on the plan otherwise: not every plan can write over every input.
  bool lies_the_same(ValueId v, ValueId input) const {
    const Tensor &own = g_.tensor_of(v), &place = g_.tensor_of(input);
    const auto flags = contiguity_of(g_, place);
    return order_of(g_, own) == order_of(g_, place) && std::ranges::find(flags, Contiguity::kFalse) == flags.end();
  }

  // Whether a thread may read an element that another one overwrites, in an op with a thread for each element. Every
  // thread reads a broadcast at index 0, even a thread beyond the output. For an input without elements it cannot be
  // shown that a thread reads its own.
  bool may_read_anothers(ValueId input) const {
    const Tensor& t = g_.tensor_of(input);
    return std::any_of(t.logical.begin(), t.logical.end(), [&](DomainId d) {
      return g_[d].iter_type == IterType::kBroadcast || constant_integer(g_, g_[d].extent) == 0;
    });
  }

  // A segment may write over an input itself if no other segment reads the input, and if its own ops do not read it
  // after the value is made. In a segment of one op that op must be pointwise, so that it reads the elements that it
  // overwrites.
  bool may_overwrite(size_t segment, ValueId v, ValueId input) const {
    if (segmentation_.segments[segment].ops.size() == 1 && may_read_anothers(input)) return false;
    const OpId maker = g_[v].def;
    std::vector<bool> later;  // made for the first reader behind the maker
    for (OpId reader : readers_[input.index])
      for (size_t s : segments_of_[reader.index]) {
        if (s != segment && defects_.has(Defect::kAliasWrittenEarly)) continue;
        if (s != segment) return false;
        if (reads_anywhere(reader, input) && !defects_.has(Defect::kAliasReadByOthers)) return false;
        if (segmentation_.segments[segment].ops.size() == 1 && !demands(g_[reader].kind, kPointwise) &&
            !defects_.has(Defect::kAliasReadByOthers))
          return false;
        if (positions_[reader.index] <= positions_[maker.index]) continue;
        if (later.empty()) later = dependents(maker);
        if (later[reader.index]) return false;
      }
    return true;
  }

  // Whether data tell where the op reads the tensor, so that a thread may read what another one overwrites.
  bool reads_anywhere(OpId reader, ValueId tensor) const {
    const Op& op = g_[reader];
    for (size_t k = 0; k < op.operands.size(); ++k)
      if (op.operands[k] == tensor && reads_by_data(g_, op, k)) return true;
    return false;
  }

  // By op: whether it needs a result of the maker, directly or through other ops. An op stands behind the ops that it
  // reads.
  std::vector<bool> dependents(OpId maker) const {
    std::vector<bool> result(g_.ops.size());
    for (OpId op : g_[Graph::body()].ops)
      result[op.index] = std::any_of(g_[op].operands.begin(), g_[op].operands.end(), [&](ValueId v) {
        return v && g_[v].def && (g_[v].def == maker || result[g_[v].def.index]);
      });
    return result;
  }

  // Some segments cannot run because they wait for each other. Returns the first segment of one such cycle.
  static size_t on_a_cycle(const std::vector<std::set<size_t>>& needs, const std::vector<bool>& done) {
    const auto waits_for = [&](size_t i) {
      return *std::find_if(needs[i].begin(), needs[i].end(), [&](size_t n) { return n != i && !done[n]; });
    };
    size_t at = static_cast<size_t>(std::find(done.begin(), done.end(), false) - done.begin());
    for (size_t i = 0; i < done.size(); ++i) at = waits_for(at);
    size_t first = at;
    for (size_t i = waits_for(at); i != at; i = waits_for(i)) first = std::min(first, i);
    return first;
  }

  void sort() {
    std::vector<std::set<size_t>> needs(segmentation_.segments.size());
    for (size_t i = 0; i < segmentation_.segments.size(); ++i)
      for (const Crossing& c : segmentation_.segments[i].inputs) {
        const OpId def = g_[values_.at(c.value)].def;
        if (is_tensor_op(g_, def)) needs[i].insert(segments_of_[def.index].front());
      }
    // Takes the first segment that can run, again and again.
    std::vector<std::vector<size_t>> needed_by(segmentation_.segments.size());
    std::vector<size_t> waits_for(segmentation_.segments.size());
    std::set<size_t> ready;
    for (size_t i = 0; i < segmentation_.segments.size(); ++i) {
      needs[i].erase(i);
      for (size_t n : needs[i]) needed_by[n].push_back(i);
      waits_for[i] = needs[i].size();
      if (needs[i].empty()) ready.insert(i);
    }
    std::vector<size_t> order;
    std::vector<bool> done(segmentation_.segments.size());
    while (!ready.empty()) {
      const size_t i = *ready.begin();
      ready.erase(ready.begin());
      done[i] = true;
      order.push_back(i);
      for (size_t user : needed_by[i])
        if (--waits_for[user] == 0) ready.insert(user);
    }
    if (order.size() < segmentation_.segments.size())
      throw Error(ErrorCode::kInvalidGraph, "segments need each other's results; move an op so that one can run first",
                  "segment " + segmentation_.segments[on_a_cycle(needs, done)].name);
    std::vector<Segment> sorted;
    sorted.reserve(order.size());
    for (size_t i : order) sorted.push_back(std::move(segmentation_.segments[i]));
    segmentation_.segments = std::move(sorted);
  }

  const Graph& g_;
  Segmentation segmentation_;
  const Defects& defects_;
  std::vector<std::vector<size_t>> segments_of_;
  std::vector<std::vector<OpId>> readers_;  // by value: ops that read it and make tensors
  std::vector<size_t> positions_;           // by op: its position in the body
  std::unordered_map<std::string_view, ValueId> values_;
  std::set<ValueId> outputs_;
  std::map<ValueId, ValueId> alias_;  // by output: the last input that it overwrites
  std::set<ValueId> overwritten_;
  std::set<ValueId> returned_;  // outputs that overwrite nothing
};

}  // namespace

Segmentation complete(const Graph& fusion, Segmentation segmentation, const Defects& defects) {
  return Completer(fusion, std::move(segmentation), defects).run();
}

std::vector<Step> unfused_steps(const Graph& g, OpId op) {
  const ValueId v = g[op].results[0];
  const std::string& name = g[v].name;
  std::vector<std::string> kept, order;
  for (DomainId d : g.tensor_of(v).logical)
    if (g[d].iter_type != IterType::kReduction) kept.push_back(g[d].name);
  order = kept;
  for (DomainId d : g.tensor_of(v).logical)
    if (g[d].iter_type == IterType::kReduction) order.push_back(g[d].name);
  std::vector<Step> steps;
  if (kept.empty()) return steps;
  if (order.size() > kept.size()) {
    Step reorder{StepKind::kReorder, {StepOperand::of(name)}, {}, {}};
    for (const std::string& d : order) reorder.operands.push_back(StepOperand::domain_of(name, d));
    steps.push_back(reorder);
  }
  std::string all = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) {
    const std::string merged = "all" + std::to_string(i);
    steps.push_back(
        {StepKind::kMerge, {StepOperand::domain_of(name, all), StepOperand::domain_of(name, kept[i])}, {merged}, {}});
    all = merged;
  }
  steps.push_back(
      {StepKind::kSplit, {StepOperand::domain_of(name, all), StepOperand::number(128)}, {"block", "thread"}, {}});
  const auto parallelize = [&](const char* domain, ParallelType p) {
    Step step{StepKind::kParallelize, {StepOperand::domain_of(name, domain)}, {}, {}};
    step.attrs.set_enum(AttrKey::kParallel, p);
    steps.push_back(step);
  };
  parallelize("block", ParallelType::kGridX);
  parallelize("thread", ParallelType::kBlockX);
  return steps;
}

Segmentation plan_unfused(const Graph& fusion, const Defects& defects) {
  Segmentation s;
  s.graph = fusion.name;
  for (OpId op : tensor_ops(fusion)) {
    Segment segment;
    segment.name = fusion.name + "_" + std::to_string(s.segments.size());
    segment.ops = {name_of(fusion, op)};
    if (is_library(fusion, fusion[op]))
      segment.executor = SegmentExecutor::kAten;
    else
      segment.steps = unfused_steps(fusion, op);
    s.segments.push_back(std::move(segment));
  }
  return complete(fusion, std::move(s), defects);
}

Segmentation plan_single(const Graph& fusion, std::vector<Step> steps, const Defects& defects) {
  Segmentation s;
  s.graph = fusion.name;
  Segment segment;
  segment.name = fusion.name;
  for (OpId op : tensor_ops(fusion)) segment.ops.push_back(name_of(fusion, op));
  segment.steps = std::move(steps);
  if (!segment.ops.empty()) s.segments.push_back(std::move(segment));
  return complete(fusion, std::move(s), defects);
}

namespace {

// The sizes that a fact names.
std::vector<std::string> named_sizes(const Step& fact) {
  std::vector<std::string> names;
  for (const StepOperand& o : fact.operands)
    if (!o.value.empty()) names.push_back(o.value);
  return names;
}

// Notes which of the sizes this kernel has. Returns whether it has all of them.
bool find_sizes(const Graph& kernel, const std::vector<std::string>& sizes, std::set<std::string>& found) {
  NameIndex names(kernel);
  size_t count = 0;
  for (const std::string& name : sizes)
    if (names.find(name)) found.insert(name), ++count;
  return count == sizes.size();
}

// No kernel has all sizes that a fact names. `found` are those that some kernel has.
[[noreturn]] void refuse_fact(const Graph& fusion, const std::vector<std::string>& sizes,
                              const std::set<std::string>& found) {
  for (const std::string& name : sizes) {
    if (!find_value(fusion, name))
      throw Error(ErrorCode::kStepReferent, "no value has this name; a fact is about sizes of the program", "%" + name);
    if (!found.contains(name))
      throw Error(ErrorCode::kStepReferent,
                  "no kernel computes with this size, so no launch can check the fact; leave the fact out", "%" + name);
  }
  throw Error(ErrorCode::kStepReferent,
              "the sizes of the fact belong to different kernels; state a fact about the sizes of one kernel",
              "%" + sizes.at(0));
}

// Builds the segments of a list, in the order in which `assign` steps name them.
class Assigner {
 public:
  Assigner(const Graph& g, const Defects& defects) : g_(g), defects_(defects), names_(g) {
    segmentation_.graph = g.name;
    for (const OutputRef& out : outputs(g))
      if (out.alias) stored_over_[g[out.value].def].push_back(out.alias);
  }

  Segmentation run(std::span<const Step> steps) {
    for (const Step& step : steps)
      if (step.kind == StepKind::kAssign) assign(step);
    for (const Step& step : steps)
      if (step.kind != StepKind::kAssign && step.kind != StepKind::kAssume) schedule(step);
    for (Segment& s : segmentation_.segments) schedule_alone(s);
    Segmentation made = complete(g_, std::move(segmentation_), defects_);
    for (const Step& step : steps)
      if (step.kind == StepKind::kAssume) assume(step, made);
    return made;
  }

 private:
  [[noreturn]] static void refuse(const std::string& message, const std::string& place,
                                  ErrorCode code = ErrorCode::kStepNotApplicable) {
    throw Error(code, message, place);
  }

  void assign(const Step& step) {
    const std::string name(step.attrs.string(AttrKey::kName));
    if (!is_plain_name(name)) refuse("assign names a segment by letters, digits and _ alone", "name \"" + name + "\"");
    if (step.operands.empty()) refuse("assign names at least one tensor to be computed in the segment", "@" + name);
    const auto executor = step.attrs.enumerator<SegmentExecutor>(AttrKey::kExecutor);
    const auto [it, is_new] = by_name_.emplace(name, segmentation_.segments.size());
    if (is_new) {
      segmentation_.segments.emplace_back();
      segmentation_.segments.back().name = name;
      segmentation_.segments.back().executor = executor;
    }
    Segment& segment = segmentation_.segments[it->second];
    if (segment.executor != executor)
      refuse("two assign steps give this segment different executors; name one", "@" + name);
    for (const StepOperand& operand : step.operands) {
      const auto v = names_.find(operand.value);
      if (!v || !g_[*v].def || !is_tensor_op(g_, g_[*v].def))
        refuse("no op of the fusion makes a tensor of this name; scalars are computed where they are needed",
               "%" + operand.value, ErrorCode::kStepReferent);
      // Any result names the op. The segment lists the op once, by its first result.
      const OpId op = g_[*v].def;
      if (!assigned_.insert({it->second, op}).second) continue;
      segment.ops.push_back(name_of(g_, op));
      for (ValueId result : g_[op].results) segments_of_[g_[result].name].insert(it->second);
      for (ValueId read : g_[op].operands)
        if (read && g_.is_tensor(read) && g_[g_[read].def].kind == OpKind::kInput)
          segments_of_[g_[read].name].insert(it->second);
      // The segment also has the inputs that a result is stored over.
      if (const auto inputs = stored_over_.find(op); inputs != stored_over_.end())
        for (ValueId input : inputs->second) segments_of_[g_[input].name].insert(it->second);
    }
  }

  // Takes the name of the segment that a step is for; empty: none is named.
  std::string take_segment(Step& step) const {
    if (!step.attrs.has(AttrKey::kSegment)) return {};
    std::string name(step.attrs.string(AttrKey::kSegment));
    if (!by_name_.contains(name))
      refuse("no assign step makes a segment of this name", "@" + name, ErrorCode::kStepReferent);
    step.attrs.erase(AttrKey::kSegment);
    if (defects_.has(Defect::kStepSegmentIgnored)) name.clear();
    return name;
  }

  // A fact about sizes goes to every kernel that has these sizes.
  void assume(Step step, Segmentation& made) {
    const std::string only = take_segment(step);
    SegmentExtractor extractor(g_);
    const std::vector<std::string> sizes = named_sizes(step);
    std::set<std::string> found;
    bool is_taken = false;
    for (Segment& s : made.segments) {
      if (s.executor != SegmentExecutor::kKernel || (!only.empty() && s.name != only)) continue;
      if (!find_sizes(extractor.extract(s), sizes, found)) continue;
      const auto first =
          std::ranges::find_if(s.steps, [](const Step& other) { return other.kind != StepKind::kAssume; });
      s.steps.insert(first, step);
      is_taken = true;
    }
    if (is_taken) return;
    if (!only.empty())
      refuse("the segment is no kernel with all sizes that the fact names; name another segment, or none", "@" + only,
             ErrorCode::kStepReferent);
    if (sizes.empty()) refuse("no segment is a kernel, so no launch can check the fact; leave the fact out", "");
    refuse_fact(g_, sizes, found);
  }

  void schedule(Step step) {
    const std::string only = take_segment(step);
    const auto is_number = [](const StepOperand& o) { return o.is_integer(); };
    if (only.empty() && std::ranges::all_of(step.operands, is_number)) {
      // A step that names nothing is about all tensors, so every kernel gets it.
      for (Segment& s : segmentation_.segments)
        if (s.executor == SegmentExecutor::kKernel) s.steps.push_back(step);
      return;
    }
    const size_t at = only.empty() ? segment_of(step) : by_name_.at(only);
    Segment& segment = segmentation_.segments[at];
    if (segment.executor != SegmentExecutor::kKernel)
      refuse("this tensor is made by a segment that is no kernel, and takes no schedule; leave the step out",
             only.empty() ? "%" + step.operands[0].value : "@" + only);
    segment.steps.push_back(step);
    // Tensors that a step makes belong to the same segment.
    if (row_of(step.kind).makes_tensors())
      for (const std::string& made : step.results) segments_of_[made].insert(at);
  }

  // The first segment with all tensors that the step names.
  size_t segment_of(const Step& step) {
    std::optional<std::set<size_t>> common;
    for (const StepOperand& operand : step.operands) {
      if (operand.is_integer()) continue;
      const auto v = names_.find(operand.value);
      if (v && !g_.is_tensor(*v)) continue;
      const auto it = segments_of_.find(operand.value);
      std::set<size_t> next;
      if (it != segments_of_.end())
        for (size_t s : it->second)
          if (!common || common->contains(s)) next.insert(s);
      if (next.empty())
        refuse("no segment has this tensor, and all that the step names before it; assign their ops to one",
               "%" + operand.value, ErrorCode::kStepReferent);
      common = std::move(next);
    }
    if (!common) refuse("the step names no tensor, and does not say which segment it is for", step_text(step));
    return *common->begin();
  }

  static std::string step_text(const Step& step) { return std::string(row_of(step.kind).text); }

  // A kernel of one op that no step names runs as in the unfused plan.
  void schedule_alone(Segment& s) {
    if (s.executor != SegmentExecutor::kKernel || s.ops.size() != 1) return;
    for (const Step& step : s.steps)
      if (!step.operands.empty() && !step.operands[0].is_integer()) return;
    const std::vector<Step> alone = unfused_steps(g_, g_[*names_.find(s.ops[0])].def);
    s.steps.insert(s.steps.begin(), alone.begin(), alone.end());
  }

  const Graph& g_;
  const Defects& defects_;
  NameIndex names_;
  Segmentation segmentation_;
  std::map<std::string, size_t> by_name_;
  std::set<std::pair<size_t, OpId>> assigned_;           // segments with their ops
  std::map<OpId, std::vector<ValueId>> stored_over_;     // by op: the inputs that its results are stored over
  std::map<std::string, std::set<size_t>> segments_of_;  // by tensor: segments that make it or, if an input, read it
};

}  // namespace

Segmentation plan_assigned(const Graph& fusion, std::span<const Step> steps, const Defects& defects) {
  return Assigner(fusion, defects).run(steps);
}

Segmentation plan_steps(const Graph& fusion, std::span<const Step> steps, const Defects& defects) {
  const bool assigned = std::ranges::any_of(
      steps, [](const Step& s) { return s.kind == StepKind::kAssign || s.attrs.has(AttrKey::kSegment); });
  if (assigned) return plan_assigned(fusion, steps, defects);
  Segmentation single = plan_single(fusion, {steps.begin(), steps.end()}, defects);
  for (const Step& step : steps) {
    if (step.kind != StepKind::kAssume || single.segments.empty()) continue;
    const std::vector<std::string> sizes = named_sizes(step);
    std::set<std::string> found;
    if (!find_sizes(extract(fusion, single.segments[0]), sizes, found)) refuse_fact(fusion, sizes, found);
  }
  return single;
}

}  // namespace fusebox
