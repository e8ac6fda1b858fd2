// The oracle for data-dependent indices: moves one index of a valid case just outside its axis; the run must refuse it.
#include <algorithm>
#include <cstring>

#include "fuzz/generate/generate_inputs.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "passes/rewrite/rewrite.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

// An op that reads where an input says, with the extent of the indexed axis.
struct IndexRead {
  OpKind kind;
  size_t input;  // its position among the inputs
  ValueId made;
  int64_t extent;
};

// The needed ops that have elements and read every element of an input as an index.
std::vector<IndexRead> index_reads(OracleRun& run) {
  const Graph& g = run.fusion();
  std::vector<IndexRead> reads;
  const auto has_index = [](const Op& op) { return index_operand(op.kind).has_value(); };
  if (std::none_of(g.ops.begin(), g.ops.end(), has_index)) return reads;
  Graph needed = g;
  dead_code(needed);
  const auto given = inputs(g);
  for (const Op& op : needed.ops) {
    const ValueId index = has_index(op) ? op.operands[*index_operand(op.kind)] : ValueId();
    if (!index || !needed.is_tensor(index)) continue;
    const auto input = find_value(g, needed[index].name), made = find_value(g, needed[op.results[0]].name);
    const auto at = input ? std::find(given.begin(), given.end(), *input) : given.end();
    if (!made || at == given.end() || bits(g[*input].dtype) < 32) continue;
    const ValueId from = g[g[*made].def].operands[0];
    const auto shape = evaluate_shape(g, from, run.sizes()), result = evaluate_shape(g, *made, run.sizes()),
               chosen = evaluate_shape(g, *input, run.sizes());
    if (!shape || !result || !chosen || element_count(*result) == 0 || element_count(*chosen) == 0) continue;
    const int64_t axis = op.attrs.integer(AttrKey::kAxis);
    const auto rank = static_cast<int64_t>(shape->size());
    reads.push_back({op.kind, static_cast<size_t>(at - given.begin()), *made,
                     (*shape)[static_cast<size_t>(axis < 0 ? axis + rank : axis)]});
  }
  return reads;
}

void set_integer(const TensorData& t, RandomSource& random, int64_t value) {
  std::byte* at = t.data();
  for (size_t i = 0; i < t.rank(); ++i)
    at += static_cast<int64_t>(random.below(static_cast<size_t>(t.shape[i]))) * t.strides[i] * size_bytes(t.dtype);
  // Little endian: the low bytes come first.
  std::memcpy(at, &value, static_cast<size_t>(size_bytes(t.dtype)));
}

}  // namespace

void indices(OracleRun& run) {
  const std::vector<IndexRead> reads = index_reads(run);
  if (reads.empty() || run.reads_out_of_range()) return;
  const AtenApi* api = find_aten();
  if (!api) return;
  RandomSource random = run.random(43);
  const IndexRead& read = random.pick(reads);
  std::vector<Argument> given(run.arguments().begin(), run.arguments().end());
  given[read.input] = make_argument(run.subject().inputs().specs[read.input], 1);
  // A negative index of select counts from the end.
  const int64_t least = family_of(read.kind) == AxisRule::kSelected ? -read.extent : 0;
  const int64_t outside = random.one_in(3) ? least - 1 : read.extent;
  set_integer(as_tensor(given[read.input]), random, outside);
  try {
    api->evaluate(run.fusion(), given, {.bounds = false, .intermediates = {}});
    return;  // the reference reads another element
  } catch (const Error& e) {
    if (e.code != ErrorCode::kIndexOutOfRange) return;
  }
  const HostRun unfused = run.run_unfused(run.fusion(), given);
  if (!unfused.ok() && is_launch_refusal(unfused.failure->code)) return;
  // Sizes may be refused whatever the indices.
  const auto is_by_sizes = [](const HostRun& r) { return !r.ok() && is_size_refusal(r.failure->code); };
  if (is_by_sizes(unfused) && is_by_sizes(run.unfused())) return;
  const std::string place = "%" + run.fusion()[read.made].name;
  const std::string what = "an index of " + std::to_string(outside) + " for an axis of " + std::to_string(read.extent);
  if (unfused.ok())
    run.report("indices", "accepted", place, what + " is accepted");
  else
    run.report("indices", code_text(unfused.failure->code), place, what + " is met by: " + unfused.failure->what());
}

}  // namespace fusebox::fuzz
