#include "serde/semantics.h"

#include <algorithm>
#include <string>

#include "ir/graph/name_index.h"
#include "ir/verify/input_spec.h"
#include "ir/verify/verify.h"

namespace fusebox {
namespace {

[[noreturn]] void invalid(const Place& place, const std::string& message) {
  throw Error(ErrorCode::kInvalidField, message, place.text());
}

void check_operand(const StepOperand& operand, const Slot& slot, const Place& place) {
  if (slot.optional && operand == StepOperand{}) return;
  const bool domain = !operand.domain.empty();
  if (!operand.value.empty() && operand.integer != 0) invalid(place, "the operand is a name and a number");
  if (operand.value.empty() && (domain || slot.kind != 'x')) invalid(place, "the operand names no value");
  if (domain != (slot.kind == 'd'))
    invalid(place, domain ? "the operand names a domain where none is taken" : "the operand names no domain");
}

void check_step(const Step& step, const Place& place) {
  const StepRow& row = row_of(step.kind);
  const Place operands(place, "operands"), attrs(place, "attrs");
  const auto ranges = slot_ranges(*row.format, step.operands.size());
  if (!ranges)
    invalid(operands,
            "'" + std::string(row.text) + "' does not take " + std::to_string(step.operands.size()) + " operands");
  for (size_t slot = 0; slot < row.format->all().size(); ++slot)
    for (size_t i = 0; i < (*ranges)[slot].count; ++i) {
      const size_t operand = (*ranges)[slot].begin + i;
      check_operand(step.operands[operand], row.format->slots[slot], Place(operands, operand));
    }
  for (size_t i = 0; i < step.attrs.list().size(); ++i)
    if (const AttrKey key = step.attrs.list()[i].key; !row.accepts(key))
      invalid(Place(Place(attrs, i), "key"),
              "'" + std::string(row.text) + "' does not take attribute '" + std::string(row_of(key).text) + "'");
}

[[noreturn]] void fail(const Error& error, const std::string& field) {
  throw Error(error.code, error.what(), error.place.empty() ? field : field + " " + error.place);
}

void check_steps(const std::vector<Step>& steps, const Place& place) {
  for (size_t i = 0; i < steps.size(); ++i) check_step(steps[i], Place(place, i));
}

}  // namespace

void check_meaning(const Module& m, const Place& place) {
  const Place graphs(place, "graphs"), lists(place, "step_lists"), segmentations(place, "segmentations");
  for (size_t i = 0; i < m.step_lists.size(); ++i) check_steps(m.step_lists[i].steps, Place(Place(lists, i), "steps"));
  for (size_t i = 0; i < m.segmentations.size(); ++i) {
    const Place at(segmentations, i), segments(at, "segments");
    for (size_t k = 0; k < m.segmentations[i].segments.size(); ++k)
      check_steps(m.segmentations[i].segments[k].steps, Place(Place(segments, k), "steps"));
  }
  if (const auto error = find_error(m)) {
    for (size_t i = 0; i < m.graphs.size(); ++i)
      if (const auto in_graph = find_error(m.graphs[i])) fail(*in_graph, Place(graphs, i).text());
    fail(*error, place.text());
  }
}

namespace {

void expect_levels(const std::vector<Graph>& graphs, size_t begin, size_t end, Level level, const Place& place) {
  for (size_t i = begin; i < end; ++i)
    if (graphs[i].level != level)
      invalid(Place(Place(place, "graphs"), i), "the graph stands at another level than its place asks for");
}

// Each stage holds programs of its own level. A fusion may be given at any.
void expect_levels(const StageRecord& stage, const Place& place) {
  const std::vector<Graph>& graphs = stage.module.graphs;
  switch (stage.stage) {
    case Stage::kFusion:
      return;
    case Stage::kConcretized:
    case Stage::kSegments:
    case Stage::kScheduled:
      for (size_t i = 0; i < graphs.size(); ++i)
        if (graphs[i].level != Level::kMath) expect_levels(graphs, i, i + 1, Level::kScheduled, place);
      return;
    case Stage::kKernel:
      return expect_levels(graphs, 0, graphs.size(), Level::kKernel, place);
    case Stage::kHost:
      expect_levels(graphs, 0, std::min<size_t>(graphs.size(), 1), Level::kHost, place);
      return expect_levels(graphs, 1, graphs.size(), Level::kKernel, place);
  }
}

// Recorded inputs are taken in the order of the fusion's own. How many are missing, a run says.
void check_inputs(const Graph& fusion, const std::vector<InputRecord>& records, const Place& place) {
  const std::vector<ValueId> wanted = inputs(fusion);
  NameIndex values(fusion);
  for (size_t i = 0; i < records.size(); ++i) {
    const InputSpec& spec = records[i].spec;
    const Place record(place, i), at(record, "spec");
    try {
      check_spec(fusion, values, spec);
    } catch (const Error& e) {
      fail(e, at.text());
    }
    if (i >= wanted.size() || spec.name != fusion[wanted[i]].name)
      invalid(at, "the input stands at another place than in the fusion");
    if (spec.dtype != fusion[wanted[i]].dtype || spec.is_scalar == fusion.is_tensor(wanted[i]))
      invalid(at, "the fusion wants " + std::string(text(fusion[wanted[i]].dtype)) +
                      (fusion.is_tensor(wanted[i]) ? " in a tensor" : " as a scalar"));
  }
}

}  // namespace

void check_meaning(const CacheRecord& r, const Place& place) {
  if (!r.compiled) return;
  const Place at(place, "compiled"), program(at, "program"), scheduled(at, "scheduled"), code(at, "code");
  check_meaning(r.compiled->program, program);
  check_meaning(r.compiled->scheduled, scheduled);
  check_meaning(r.compiled->code, code);
  const std::vector<Graph>& graphs = r.compiled->code.graphs;
  const size_t kernels = graphs.size() / 2;
  expect_levels(graphs, 0, 1, Level::kHost, code);
  expect_levels(graphs, 1, 1 + kernels, Level::kKernel, code);
  expect_levels(graphs, 1 + kernels, graphs.size(), Level::kHost, code);
  const Graph& fusion = r.compiled->program.graphs[0];
  if (r.compiled->program.segmentations[0].graph != fusion.name)
    invalid(Place(program, "segmentations"), "the segmentation is of another program");
}

void check_meaning(const Bundle& b, const Place& place) {
  const Place stages(place, "stages"), steps(place, "steps"), ranks(place, "ranks");
  for (size_t i = 0; i < b.stages.size(); ++i) {
    const Place stage(stages, i), module(stage, "module");
    check_meaning(b.stages[i].module, module);
    expect_levels(b.stages[i], module);
  }
  for (size_t i = 0; i < b.steps.size(); ++i) check_steps(b.steps[i].steps, Place(Place(steps, i), "steps"));
  if (const Module* given = find_stage(b, Stage::kFusion); given && !given->graphs.empty()) {
    for (size_t i = 0; i < b.steps.size(); ++i)
      if (!find_graph(*given, b.steps[i].graph))
        invalid(Place(Place(steps, i), "graph"), "the steps are of a program that stage fusion does not hold");
    for (size_t i = 0; i < b.ranks.size(); ++i)
      check_inputs(main_graph(*given), b.ranks[i].inputs, Place(Place(ranks, i), "inputs"));
  }
  const Place records(place, "records");
  for (size_t i = 0; i < b.records.size(); ++i) check_meaning(b.records[i], Place(records, i));
}

}  // namespace fusebox
