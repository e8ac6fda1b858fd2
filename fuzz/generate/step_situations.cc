// Schedules that a focus aims at (focus.h).
#include <algorithm>

#include "fuzz/generate/step_maker.h"
#include "ir/domain/domain.h"
#include "ir/infer/is_library.h"
#include "passes/segment/assign_step.h"
#include "passes/segment/segment.h"
#include "passes/segment/view.h"

namespace fusebox::fuzz {

bool StepMaker::parallelize(const std::string& tensor, DomainId d, ParallelType p) {
  Step step{StepKind::kParallelize, {StepOperand::domain_of(tensor, g_[d].name)}, {}, {}};
  step.attrs.set_enum(AttrKey::kParallel, p);
  return take(std::move(step));
}

// Puts each axis of the reduction on its own threads and keeps its operand in registers.
bool StepMaker::block_dimensions(const BlockFocus& block) {
  std::string name;
  for (OpId id : g_[Graph::body()].ops)
    if (demands(g_[id].kind, kReduction) && loop_of(tensor(g_[g_[id].results[0]].name)).size() == block.types.size())
      name = g_[g_[id].results[0]].name;
  if (name.empty()) return false;
  const auto loop = loop_of(tensor(name));
  for (size_t i = 0; i < loop.size(); ++i) parallelize(name, loop[i], block.types[i]);
  if (random_.one_in(4)) reduce_innermost();
  take({StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}});
  if (!random_.one_in(4)) take({StepKind::kInlineMost, {}, {}, {}});
  keep_visible(MemoryType::kGlobal);
  bound_accumulators();
  return true;
}

// A tensor in shared memory that each iteration of a loop makes. Other threads read it than those that made it.
bool StepMaker::shared_in_loop(ParallelType loop) {
  const auto [read, reader] = read_and_reader();
  if (!find_value(g_, read) || loop_of(tensor(read)).size() < 2) return false;
  const std::string name = stored_output(reader);
  size_t at = 0;
  if (random_.one_in(3) && !loop_of(tensor(name)).empty()) {
    const std::string first = g_[loop_of(tensor(name))[0]].name;
    const auto parts = StepOperand::number(random_.between(1, 3));
    if (take({StepKind::kSplit, {StepOperand::domain_of(name, first), parts}, {fresh(), fresh()}, {}})) at = 1;
    take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  }
  Step memory{StepKind::kSetMemoryType, {StepOperand::of(read)}, {}, {}};
  memory.attrs.set_enum(AttrKey::kMemory, MemoryType::kShared);
  if (!take(std::move(memory))) return false;
  constexpr ParallelType kOuter[] = {ParallelType::kSerial, ParallelType::kGridX, ParallelType::kUnroll};
  const ParallelType outer = random_.pick(kOuter);
  // The inner loops, by type: one order for the loops that make the tensor, another for those that read it.
  std::vector<ParallelType> types = {ParallelType::kBlockX, ParallelType::kBlockY, ParallelType::kSerial};
  const std::vector<ParallelType> made = types;
  do random_.shuffle(types);
  while (types == made && !random_.exhausted());
  const bool is_made_alike = random_.one_in(2);
  const auto names = tensors(false);
  const auto first_read = std::find(names.begin(), names.end(), read);
  for (auto it = names.begin(); it != names.end(); ++it) {
    const auto loops = loop_of(tensor(*it));
    if (loops.size() <= at) continue;
    if (at > 0) parallelize(*it, loops[0], outer);
    parallelize(*it, loops[at], loop);
    const bool makes = it == first_read || it < first_read;
    // The threads that made a tensor may also store the elements that others read.
    const bool stores = *it == name && is_made_alike;
    for (size_t i = at + 1; i < loops.size() && i - at - 1 < types.size(); ++i)
      parallelize(*it, loops[i], makes || stores ? made[i - at - 1] : types[i - at - 1]);
  }
  for (const std::string& t : names)
    if (const auto loops = loop_of(tensor(t)); t != name && loops.size() > at)
      take({StepKind::kInlineAt, {StepOperand::domain_of(t, g_[loops[at]].name)}, {}, {}});
  keep_visible(MemoryType::kShared);
  bound_accumulators();
  return true;
}

// Each block sums a part, and reads the whole sum from its registers.
bool StepMaker::sum_of_all_blocks() {
  std::string name;
  for (OpId id : g_[Graph::body()].ops)
    if (demands(g_[id].kind, kReduction)) name = g_[g_[id].results[0]].name;
  if (name.empty()) return false;
  for (DomainId d : loop_of(tensor(name)))
    parallelize(name, d, g_[d].iter_type == IterType::kReduction ? ParallelType::kGridX : ParallelType::kBlockX);
  take({StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}});
  take({StepKind::kInlineMost, {}, {}, {}});
  if (random_.one_in(4)) keep_visible(MemoryType::kGlobal);
  return true;
}

// One tensor that is read transposed lies in global memory and is read by other blocks; another lies in shared memory.
bool StepMaker::two_scopes() {
  std::vector<std::string> read;
  for (OpId id : g_[Graph::body()].ops)
    if (const Op& op = g_[id]; op.kind == OpKind::kPermute && g_[g_[op.operands[0]].def].kind != OpKind::kInput)
      read.push_back(g_[op.operands[0]].name);
  if (read.size() != 2) return false;
  random_.shuffle(read);
  for (size_t i = 0; i < read.size(); ++i) {
    Step memory{StepKind::kSetMemoryType, {StepOperand::of(read[i])}, {}, {}};
    memory.attrs.set_enum(AttrKey::kMemory, i == 0 ? MemoryType::kGlobal : MemoryType::kShared);
    if (!take(std::move(memory))) return false;
  }
  for (const std::string& name : tensors(false)) {
    const Op& op = g_[g_[*find_value(g_, name)].def];
    const bool is_of_first = name == read[0] || (op.operands[0] && g_[op.operands[0]].name == read[0]);
    const auto loop = loop_of(tensor(name));
    if (loop.size() != 2) continue;
    if (is_of_first) parallelize(name, loop[0], ParallelType::kGridX);
    parallelize(name, loop[1], ParallelType::kBlockX);
  }
  keep_visible(MemoryType::kGlobal);
  return true;
}

// The blocks of a cluster share the reduced axis of each reduction. Kept axes stand inside, so that a thread keeps an
// accumulator for each of their elements.
bool StepMaker::two_cluster_sums() {
  std::vector<std::string> names;
  for (OpId id : g_[Graph::body()].ops)
    if (demands(g_[id].kind, kReduction)) names.push_back(g_[g_[id].results[0]].name);
  if (names.size() < 2) return false;
  const int64_t blocks = int64_t{2} << random_.below(2);
  for (const std::string& name : names) {
    const auto loop = loop_of(tensor(name));
    if (loop.size() != 2 || g_[loop[1]].iter_type != IterType::kReduction) return false;
    const std::string kept = g_[loop[0]].name, part = fresh(), rest = fresh();
    Step split{StepKind::kSplit,
               {StepOperand::domain_of(name, g_[loop[1]].name), StepOperand::number(blocks)},
               {part, rest},
               {}};
    split.attrs.set_flag(AttrKey::kOuter);
    if (!take(std::move(split))) return false;
    Step order{StepKind::kReorder, {StepOperand::of(name)}, {}, {}};
    for (const std::string& d : {part, rest, kept}) order.operands.push_back(StepOperand::domain_of(name, d));
    if (!random_.one_in(4)) take(std::move(order));
    for (DomainId d : std::vector<DomainId>(loop_of(tensor(name)))) {
      if (g_[d].name == part) parallelize(name, d, ParallelType::kGridX);
      // Of a sum over both axes, the blocks along grid.y are in several clusters.
      if (g_[d].name == kept && g_[d].iter_type == IterType::kReduction && random_.one_in(2))
        parallelize(name, d, ParallelType::kGridY);
    }
  }
  cluster(blocks, ParallelType::kGridX);
  keep_visible(MemoryType::kGlobal);
  return true;
}

// Threads share the rows; each element of a thread is a vector along its row.
bool StepMaker::rows_in_vectors() {
  const std::string name = stored_output("");
  if (name.empty()) return false;
  const bool is_wide = size_bytes(g_[*find_value(g_, name)].dtype) > 4;
  if (!vectors(name, is_wide || random_.one_in(2) ? 2 : 4)) return false;
  take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  const auto loop = loop_of(tensor(name));
  parallelize(name, loop[0], random_.one_in(2) ? ParallelType::kGridX : ParallelType::kBlockX);
  finish(name, true);
  return true;
}

// Makes each copy of an input in vectors of its own width.
bool StepMaker::two_widths() {
  std::vector<std::string> copies;
  for (OpId id : g_[Graph::body()].ops)
    if (g_[id].kind == OpKind::kSet)
      if (const ValueId v = g_[id].results[0]; g_.is_tensor(v) && loop_of(g_.tensor_of(v)).size() == 2)
        copies.push_back(g_[v].name);
  if (copies.size() != 2) return false;
  std::vector<int64_t> widths = {2, random_.one_in(3) ? 8 : 4};
  random_.shuffle(widths);
  const bool is_wide = size_bytes(g_[*find_value(g_, copies[0])].dtype) > 2;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<std::string> nest = {copies[i]};
    for (const OpId id : g_[Graph::body()].ops)
      if (const Op& op = g_[id];
          !op.results.empty() && g_.is_tensor(op.results[0]) &&
          std::ranges::any_of(op.operands, [&](ValueId v) { return v && g_[v].name == copies[i]; }))
        nest.push_back(g_[op.results[0]].name);
    for (const std::string& name : nest) {
      const auto loop = loop_of(tensor(name));
      if (loop.size() != 2) continue;  // two copies of one reader: its loops are split already
      const std::string outer = fresh(), inner = fresh();
      const int64_t width = is_wide ? std::min<int64_t>(widths[i], 4) : widths[i];
      if (!take({StepKind::kSplit,
                 {StepOperand::domain_of(name, g_[loop[1]].name), StepOperand::number(width)},
                 {outer, inner},
                 {}}))
        return false;
      parallelize(name, loop[0], ParallelType::kGridX);
    }
    const auto loop = loop_of(tensor(copies[i]));
    if (loop.size() != 3) return false;
    take({StepKind::kInlineAt, {StepOperand::domain_of(copies[i], g_[loop[1]].name)}, {}, {}});
    parallelize(copies[i], loop_of(tensor(copies[i])).back(), ParallelType::kVectorize);
  }
  if (random_.one_in(4)) keep_visible(MemoryType::kGlobal);
  return true;
}

// Each block has a row. Its threads go along the innermost loops of all outputs and reductions, whatever their extents.
bool StepMaker::rows_of_threads() {
  const StepOperand threads = StepOperand::number(random_.one_in(3) ? 8 : 32);
  std::vector<std::string> names;
  for (OpId id : g_[Graph::body()].ops)
    if (demands(g_[id].kind, kReduction)) names.push_back(g_[g_[id].results[0]].name);
  for (const auto& out : outputs(g_))
    if (g_.is_tensor(out.value) && g_[g_[out.value].def].kind != OpKind::kInput) names.push_back(g_[out.value].name);
  for (const std::string& name : names) {
    if (loop_of(tensor(name)).size() != 2) continue;
    const std::string inner = g_[loop_of(tensor(name))[1]].name;
    if (!take({StepKind::kSplit, {StepOperand::domain_of(name, inner), threads}, {fresh(), fresh()}, {}})) return false;
  }
  for (const std::string& name : names) {
    const auto loop = loop_of(tensor(name));
    if (loop.size() != 3) continue;
    // A tensor that is stretched to the output follows it, and not the reduction.
    std::vector<StepOperand> like = {StepOperand::of(name)};
    for (const ValueId v : g_[g_[*find_value(g_, name)].def].operands)
      if (v && g_.is_tensor(v) && g_[g_[v].def].kind == OpKind::kBroadcast) like.push_back(StepOperand::of(g_[v].name));
    if (like.size() > 1) take({StepKind::kTransformLike, like, {}, {}});
    parallelize(name, loop[0], ParallelType::kGridX);
    parallelize(name, loop[2], ParallelType::kBlockX);
    if (like.size() > 1) take({StepKind::kParallelizeLike, like, {}, {}});
  }
  take({StepKind::kInlineMost, {}, {}, {}});
  if (random_.one_in(4)) keep_visible(MemoryType::kGlobal);
  return true;
}

// Resizes a loop of an op and the same loop of its reader by the same numbers, but perhaps one.
bool StepMaker::resized_alike() {
  const auto [read, reader] = read_and_reader();
  if (!find_value(g_, read) || read == reader) return false;
  const size_t rank = loop_of(tensor(reader)).size();
  if (rank == 0 || loop_of(tensor(read)).size() != rank) return false;
  const size_t at = random_.below(rank);
  int64_t by[] = {random_.between(0, 2), random_.between(0, 3)};
  for (const std::string& name : {reader, read}) {
    Step step{StepKind::kResize,
              {StepOperand::domain_of(name, g_[loop_of(tensor(name))[at]].name), StepOperand::number(by[0]),
               StepOperand::number(by[1])},
              {fresh()},
              {}};
    if (!take(std::move(step))) return false;
    if (!random_.one_in(4)) by[random_.below(2)] += random_.one_in(2) ? 1 : -1;
  }
  const ParallelType type = random_.one_in(2) ? ParallelType::kGridX : ParallelType::kSerial;
  for (const std::string& name : {reader, read}) parallelize(name, loop_of(tensor(name))[at], type);
  const StepOperand home =
      StepOperand::domain_of(read, g_[loop_of(tensor(read))[random_.one_in(2) ? at : rank - 1]].name);
  take({StepKind::kInlineAt, {home}, {}, {}});
  if (random_.one_in(4)) keep_visible(MemoryType::kGlobal);
  return true;
}

// Reads the elements that a slice keeps in vectors: a copy of the sliced input has the loops of the slice.
bool StepMaker::slice_in_vectors() {
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    if (op.kind != OpKind::kSlice || g_[g_[op.operands[0]].def].kind != OpKind::kInput) continue;
    const std::string sliced = g_[op.results[0]].name, input = g_[op.operands[0]].name, copy = fresh();
    const auto readers = uses(g_)[op.results[0].index];
    const auto it = std::ranges::find_if(readers, [&](OpId r) { return !g_[r].results.empty(); });
    if (it == readers.end() || loop_of(g_.tensor_of(g_[*it].results[0])).empty()) continue;
    const std::string reader = g_[g_[*it].results[0]].name, chunk = fresh(), vector = fresh();
    const int64_t width = size_bytes(g_[op.results[0]].dtype) > 4 || random_.one_in(2) ? 2 : 4;
    const std::string last = g_[loop_of(tensor(reader)).back()].name;
    if (!take({StepKind::kCacheAfter, {StepOperand::of(input)}, {copy}, {}}) ||
        !take({StepKind::kSplit,
               {StepOperand::domain_of(reader, last), StepOperand::number(width)},
               {chunk, vector},
               {}}) ||
        !take({StepKind::kTransformLike, {StepOperand::of(reader), StepOperand::of(sliced)}, {}, {}}) ||
        !take({StepKind::kSetLoopDomain, {StepOperand::of(copy), StepOperand::of(sliced)}, {}, {}}))
      return false;
    Step step{StepKind::kParallelize, {StepOperand::domain_of(copy, vector)}, {}, {}};
    step.attrs.set_enum(AttrKey::kParallel, ParallelType::kVectorize);
    take(std::move(step));
    take({StepKind::kInlineMost, {}, {}, {}});
    return true;
  }
  return false;
}

// Takes a result of an op with several. A broadcast axis of it is inlined into its reader. Any other axis is resized in
// the layout of the result, whose loops then mostly follow a reader.
bool StepMaker::later_result() {
  const auto readers = uses(g_);
  std::vector<std::string> read;
  for (OpId id : g_[Graph::body()].ops)
    for (ValueId v : g_[id].results)
      if (g_[id].results.size() > 1 && g_.is_tensor(v) && !readers[v.index].empty()) read.push_back(g_[v].name);
  if (read.empty()) return false;
  const std::string name = random_.pick(read);
  const auto loop = loop_of(tensor(name));
  if (loop.empty() || g_[loop[0]].iter_type == IterType::kReduction) return false;
  const StepOperand first = StepOperand::domain_of(name, g_[loop[0]].name);
  if (g_[loop[0]].iter_type == IterType::kBroadcast) {
    take({StepKind::kInlineAt, {first}, {}, {}});
  } else {
    Step memory{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
    memory.attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
    const std::string resized = fresh();
    const auto by = [&] { return StepOperand::number(random_.between(-1, 2)); };
    if (!take(std::move(memory)) || !take({StepKind::kResize, {first, by(), by()}, {resized}, {}})) return false;
    take({StepKind::kSetAllocation, {StepOperand::of(name), StepOperand::domain_of(name, resized)}, {}, {}});
    if (!random_.one_in(4)) loop_like_a_reader(name);
  }
  keep_visible(MemoryType::kGlobal);
  return true;
}

// One nest computes everything, so no value between the ops reaches memory.
bool StepMaker::inlined() {
  const std::string name = target();
  const auto loop = loop_of(tensor(name));
  if (!loop.empty() && random_.one_in(2)) parallelize(name, loop[0], ParallelType::kBlockX);
  finish(name, false);
  return true;
}

bool StepMaker::is_library_op(const std::string& name) const {
  return is_library(g_, g_[g_[*find_value(g_, name)].def]);
}

void StepMaker::cut_at_library_ops(const std::vector<std::string>& names, std::vector<size_t>& cuts) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (is_library_op(names[i])) cuts.insert(cuts.end(), {i, i + 1});
}

bool StepMaker::may_be_view(const std::string& name) const {
  return std::holds_alternative<View>(find_view(g_, g_[*find_value(g_, name)].def));
}

void StepMaker::cut_at_views(const std::vector<std::string>& names, std::vector<size_t>& cuts) {
  for (size_t i = 0; i < names.size(); ++i)
    if (may_be_view(names[i]) && random_.one_in(2)) cuts.insert(cuts.end(), {i, i + 1});
}

void StepMaker::assign_views(std::vector<Step>& assigns) {
  for (Step& assign : assigns) {
    const auto by = assign.attrs.enumerator<SegmentExecutor>(AttrKey::kExecutor);
    if (assign.operands.size() != 1 || by != SegmentExecutor::kKernel || !may_be_view(assign.operands[0].value) ||
        random_.one_in(4))
      continue;
    assign.attrs.set_enum(AttrKey::kExecutor, SegmentExecutor::kView);
    try {
      plan_assigned(g_, assigns);
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) throw;
      assign.attrs.set_enum(AttrKey::kExecutor, by);  // what it reads is overwritten, or it is returned
    }
  }
}

std::vector<Step> StepMaker::assigns_of(const std::vector<std::string>& names, std::vector<size_t> cuts,
                                        const std::function<bool(const std::string&)>& is_for_aten) {
  std::sort(cuts.begin(), cuts.end());
  std::vector<Step> assigns;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] == cuts[i + 1]) continue;
    const auto at = [&](size_t cut) { return names.begin() + static_cast<std::ptrdiff_t>(cut); };
    assigns.push_back(assign_step({at(cuts[i]), at(cuts[i + 1])}, "part" + std::to_string(i),
                                  is_for_aten(names[cuts[i]]) ? SegmentExecutor::kAten : SegmentExecutor::kKernel));
  }
  return assigns;
}

void StepMaker::assign_plain() {
  const auto names = tensors(false);
  std::vector<size_t> cuts = {0, names.size()};
  cut_at_library_ops(names, cuts);
  each_part(assigns_of(names, cuts, [&](const std::string& first) { return is_library_op(first); }), [&] {
    spread();
    keep_visible(MemoryType::kGlobal);
  });
}

void StepMaker::cut_apart(std::vector<size_t>& cuts) {
  std::vector<size_t> places;
  for (size_t i = 1; i < cuts.back(); ++i) places.push_back(i);
  random_.shuffle(places);
  places.resize(std::min(places.size(), focus.segments - 1));
  cuts.insert(cuts.end(), places.begin(), places.end());
}

// Values that leave a segment in an order other than that of their axes.
void StepMaker::permute_crossings() {
  const auto out = outputs(g_);
  for (const OutputRef& o : out)
    if (g_.is_tensor(o.value) && rank_of(g_, o.value) > 1 && g_[g_[o.value].def].kind != OpKind::kInput &&
        !random_.one_in(3))
      permute_allocation(g_[o.value].name);
}

}  // namespace fusebox::fuzz
