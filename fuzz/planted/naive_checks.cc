#include "fuzz/planted/naive_checks.h"

#include <algorithm>
#include <numeric>

#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kMostTouches = 1 << 13, kMostElements = 1 << 13, kMostBlocks = 1 << 10;
constexpr int64_t kGlobal = -1;

// Whether all blocks wait for one another.
bool is_of_grid(const Instruction& i) {
  return i.opcode == Opcode::kGridBarrier || (i.opcode == Opcode::kGridReduce && i.all);
}

}  // namespace

void NaiveChecks::begin(const Bytecode& code, const LaunchDims& dims, std::span<const HostArgument> args) {
  if (!found_.empty() || gave_up_) throw Error(ErrorCode::kStepLimit, "a launch after the one that is judged");
  code_ = &code;
  dims_ = dims;
  args_ = args;
  memory_.clear();
  arrived_.clear();
  lane_ = -1;
  const int64_t blocks = dims.grid[0] * dims.grid[1] * dims.grid[2];
  int64_t elements = 0;
  granule_bytes_ = 16;
  for (const BytecodeBuffer& b : code.buffers) granule_bytes_ = std::gcd(granule_bytes_, size_bytes(b.dtype));
  for (const HostArgument& a : args) {
    elements += a.elements;
    granule_bytes_ = std::gcd(granule_bytes_, static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.data) % 16));
    gave_up_ |= !a.places.empty();
  }
  // Blocks of a cluster wait for one another, which these checks know only of whole grids.
  gave_up_ |= elements > kMostElements || blocks > kMostBlocks || code.cluster_blocks > 0;
  if (gave_up_) throw Error(ErrorCode::kStepLimit, "a launch that is too large for quadratic checks, or has clusters");
  blocks_.assign(static_cast<size_t>(blocks), {});
  // An element is written from the start if one of the arguments that contain it says so.
  const auto set = [&](const HostArgument& a, bool is_written) {
    for (int64_t e = 0; e < a.elements; ++e) {
      if ((a.written.empty() || a.written[static_cast<size_t>(e)] != 0) != is_written) continue;
      const int64_t bytes = size_bytes(a.dtype);
      each_granule({kGlobal, static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.data)), a.elements}, e, bytes,
                   [&](Granule& g) { g.is_written = is_written; });
    }
  };
  for (const HostArgument& a : args) set(a, false);
  if (memory_.empty()) return;
  for (const HostArgument& a : args) set(a, true);
}

void NaiveChecks::begin_block(int64_t block) {
  Block& b = blocks_.at(static_cast<size_t>(block));
  b.buffers.resize(code_->buffers.size());
  b.allocations.resize(code_->buffers.size());
  lane_ = -1;
}

void NaiveChecks::begin_instance(const At& at, int32_t lane, bool follows) {
  const bool is_same = lane_ >= 0 && at.block == at_.block && at.instruction == at_.instruction &&
                       (lane > lane_ || (lane == lane_ && follows));
  at_ = at;
  lane_ = lane;
  if (is_same) return;
  ++instance_;
  if (!found_.empty()) throw Error(ErrorCode::kStepLimit, "an instruction before this one broke a rule");
}

void NaiveChecks::violate(ErrorCode code, std::string place) {
  const Violation v{code, std::move(place)};
  if (std::find(found_.begin(), found_.end(), v) == found_.end()) found_.push_back(v);
}

std::string NaiveChecks::place_of(uint32_t buffer, int64_t element) const {
  return "%" + code_->buffers[buffer].name + "[" + std::to_string(element) + "]";
}

std::string NaiveChecks::line_of(const At& at) const {
  return "line " + std::to_string(code_->origins[code_->code[at.instruction].origin].line);
}

NaiveChecks::Buffer NaiveChecks::buffer_of(const At& at, uint32_t buffer, int32_t lane) {
  const Block& block = blocks_[static_cast<size_t>(at.block)];
  switch (code_->buffers[buffer].memory) {
    case MemoryType::kGlobal:
      for (size_t p = 0; p < args_.size(); ++p)
        if (code_->parameters[p].buffer == buffer)
          return {kGlobal, static_cast<int64_t>(reinterpret_cast<uintptr_t>(args_[p].data)), args_[p].elements};
      return {};
    case MemoryType::kShared:
      return block.buffers[buffer];
    case MemoryType::kLocal: {
      // Each allocation gets a new space.
      const auto count = static_cast<int64_t>(code_->buffers.size());
      const int64_t thread = at.block * threads() + lane;
      const int64_t space = -2 - (thread * count + buffer) - (block.allocations[buffer] << 40);
      return {space, 0, code_->buffers[buffer].elements};
    }
    case MemoryType::kUnset:
    case MemoryType::kSymmetric:
      break;
  }
  throw Error(ErrorCode::kInternal,
              "a kernel has a buffer in " + std::string(text(code_->buffers[buffer].memory)) + " memory");
}

NaiveChecks::Granule& NaiveChecks::granule(const Key& key) {
  return memory_.try_emplace(key, Granule{key.space == kGlobal, {}}).first->second;
}

template <class Visit>
void NaiveChecks::each_granule(const Buffer& b, int64_t element, int64_t bytes, Visit&& visit) {
  const int64_t first = (b.address + element * bytes) / granule_bytes_;
  for (int64_t k = 0; k < bytes / granule_bytes_; ++k) visit(granule({b.space, first + k}));
}

void NaiveChecks::touch(const At& at, int32_t lane, uint32_t buffer, int64_t element, bool is_store, bool both) {
  if (++touches_ > kMostTouches) {
    gave_up_ = true;
    throw Error(ErrorCode::kStepLimit, "more touches than quadratic checks can compare");
  }
  const Block& block = blocks_[static_cast<size_t>(at.block)];
  const Touch now{at.block * threads() + lane,
                  at.block,
                  block.epoch,
                  static_cast<int64_t>(block.grid.size()),
                  is_store,
                  instance_,
                  buffer,
                  element};
  const Buffer b = buffer_of(at, buffer, lane);
  each_granule(b, element, bytes_of(buffer), [&](Granule& g) {
    // Only one thread uses a local buffer. Two loads may have any order.
    const bool is_shared = b.space >= kGlobal;
    if (is_shared) check_order(g.stores, now, both);
    if (is_shared && is_store) check_order(g.loads, now, both);
    if (is_store)
      g.is_written = true;
    else if (!g.is_written)
      violate(ErrorCode::kUnwrittenRead, place_of(buffer, element));
    // A repeated touch by the same thread says nothing new.
    std::vector<Touch>& touches = is_store ? g.stores : g.loads;
    const auto is_same = [&](const Touch& t) {
      return t.thread == now.thread && t.epoch == now.epoch && t.phase == now.phase;
    };
    if (is_shared && (touches.empty() || !is_same(touches.back()))) touches.push_back(now);
  });
}

void NaiveChecks::check_order(const std::vector<Touch>& earlier, const Touch& now, bool both) {
  for (const Touch& was : earlier) {
    const bool is_ordered =
        was.thread == now.thread || was.phase < now.phase || (was.block == now.block && was.epoch < now.epoch);
    if (is_ordered) continue;
    const ErrorCode code = was.is_store && now.is_store && !both ? ErrorCode::kDoubleStore : ErrorCode::kRace;
    violate(code, place_of(now.buffer, now.element));
    if (was.instance == instance_) violate(code, place_of(was.buffer, was.element));
  }
}

void NaiveChecks::access(const At& at, const Access& a) {
  begin_instance(at, a.lane, a.is_store && code_->code[at.instruction].opcode == Opcode::kCopy);
  const Buffer b = buffer_of(at, a.buffer, a.lane);
  if (a.element < 0 || a.element > b.elements - a.width)
    return violate(ErrorCode::kOutOfBounds, place_of(a.buffer, a.element));
  const int64_t bytes = a.width * bytes_of(a.buffer);
  const BytecodeBuffer& info = code_->buffers[a.buffer];
  const bool is_placed = info.memory != MemoryType::kLocal || a.width == 1 || info.align >= bytes;
  if ((b.address + a.element * bytes_of(a.buffer)) % bytes != 0 || !is_placed)
    return violate(ErrorCode::kMisaligned, place_of(a.buffer, a.element));
  for (int64_t k = 0; k < a.width; ++k) touch(at, a.lane, a.buffer, a.element + k, a.is_store);
}

void NaiveChecks::within(const At& at, const Within& w) {
  begin_instance(at, w.lane, false);
  const Instruction& i = code_->code[at.instruction];
  const int64_t least = i.from_end ? -w.extent : 0;
  if (w.index < least || w.index >= w.extent)
    violate(ErrorCode::kIndexOutOfRange, i.buffer == kNoBuffer ? line_of(at) : place_of(i.buffer, w.index));
}

void NaiveChecks::allocate(const At& at, int64_t elements, int64_t offset) {
  begin_instance(at, 0, false);
  const uint32_t buffer = code_->code[at.instruction].buffer;
  const BytecodeBuffer& info = code_->buffers[buffer];
  Block& block = blocks_[static_cast<size_t>(at.block)];
  if (info.memory == MemoryType::kLocal) {
    ++block.allocations[buffer];
    return;
  }
  const int64_t bytes = bytes_of(buffer);
  if (elements < 0 || offset < 0 || elements > dims_.shared_bytes || offset + elements * bytes > dims_.shared_bytes)
    return violate(ErrorCode::kOutOfBounds, place_of(buffer, elements));
  if (offset % info.align != 0 || offset % bytes != 0) return violate(ErrorCode::kMisaligned, place_of(buffer, 0));
  const Buffer placed = block.buffers[buffer] = {at.block, offset, elements};
  for (int64_t e = 0; e < elements; ++e) each_granule(placed, e, bytes, [](Granule& g) { g.is_written = false; });
}

// A collective keeps its own values in `used` elements: threads store, and nobody else may read them.
void NaiveChecks::use_workspace(const At& at, uint32_t buffer, int64_t first, int64_t used, int64_t needed) {
  const Buffer b = buffer_of(at, buffer, 0);
  if (code_->buffers[buffer].memory == MemoryType::kLocal || b.elements < needed)
    return violate(ErrorCode::kOutOfBounds, place_of(buffer, b.elements));
  for (int64_t e = 0; e < used; ++e) {
    touch(at, static_cast<int32_t>(e % threads()), buffer, first + e, true, true);
    each_granule(b, first + e, bytes_of(buffer), [](Granule& g) { g.is_written = false; });
  }
}

void NaiveChecks::check_counter(const At& at, uint32_t buffer, int64_t slot) {
  const Buffer b = buffer_of(at, buffer, 0);
  if (slot < 0 || slot >= b.elements) return violate(ErrorCode::kOutOfBounds, place_of(buffer, slot));
  bool is_zero = true;
  each_granule(b, slot, bytes_of(buffer), [&](Granule& g) { is_zero = is_zero && g.is_written; });
  const auto* counter = reinterpret_cast<const char*>(b.address) + slot * bytes_of(buffer);
  is_zero = is_zero && std::all_of(counter, counter + bytes_of(buffer), [](char c) { return c == 0; });
  if (!is_zero) violate(ErrorCode::kUnwrittenRead, place_of(buffer, slot));
}

// The arrays of a reduction across blocks are read by every thread. Without a wait, only the block that comes last has
// values in them afterwards.
void NaiveChecks::reduce_grid(const At& at, const Instruction& i) {
  const auto is_over = [&](int64_t axis) {
    return (i.threads >> (static_cast<int64_t>(ParallelType::kGridX) + axis) & 1) != 0;
  };
  int64_t kept = 1, sharing = 1, rank = 0, blocks = 1, group = 0, groups = 1, rest = at.block;
  for (int64_t axis = 0; axis < 3; ++axis) {
    (is_over(axis + 3) ? sharing : kept) *= dims_.block[static_cast<size_t>(axis)];
    const int64_t extent = dims_.grid[static_cast<size_t>(axis)], coordinate = rest % extent;
    rest /= extent;
    (is_over(axis) ? rank : group) += coordinate * (is_over(axis) ? blocks : groups);
    (is_over(axis) ? blocks : groups) *= extent;
  }
  const uint32_t n = i.workspaces.count / 3;
  const auto buffer = [&](uint32_t k) { return code_->lists[i.workspaces.begin + k]; };
  const int64_t elements = code_->buffers[buffer(0)].elements, used = elements * kept;
  int64_t at_once = 16;
  for (uint32_t k = 0; k < n; ++k) at_once = std::min(at_once, 16 / bytes_of(buffer(k)));
  for (uint32_t k = 0; k < n; ++k) {
    use_workspace(at, buffer(n + k), at.block * used, used,
                  (static_cast<int64_t>(blocks_.size()) + (i.all ? groups : 0)) * used);
    if (sharing > 1 && elements > 0) use_workspace(at, buffer(2 * n + k), 0, at_once * threads(), at_once * threads());
    for (int64_t e = 0; e < elements; ++e)
      for (int32_t l = 0; l < threads(); ++l) touch(at, l, buffer(k), e, false);
  }
  int64_t first = i.immediate * static_cast<int64_t>(blocks_.size()) + group * blocks;
  bool is_last = true;
  for (int64_t nodes = blocks, branches = 16 * sharing; nodes > 1 && is_last;
       nodes = (nodes + branches - 1) / branches) {
    rank /= branches;
    const int64_t slot = first + rank;
    int64_t& arrived = arrived_[{i.buffer, slot}];
    if (arrived == 0) check_counter(at, i.buffer, slot);
    is_last = ++arrived % std::min(branches, nodes - rank * branches) == 0;
    first += (nodes + branches - 1) / branches;
  }
  if (is_last || i.all) return;
  for (uint32_t k = 0; k < n; ++k)
    for (int64_t e = 0; e < elements; ++e)
      for (int32_t l = 0; l < threads(); ++l)
        each_granule(buffer_of(at, buffer(k), l), e, bytes_of(buffer(k)), [](Granule& g) { g.is_written = false; });
}

void NaiveChecks::synchronize(const At& at, int32_t count) {
  begin_instance(at, 0, false);
  if (count != threads()) return violate(ErrorCode::kDivergentBarrier, line_of(at));
  const Instruction& i = code_->code[at.instruction];
  if (i.opcode == Opcode::kWarpReduce) {  // no barrier, but every lane of each warp has to be there
    if (threads() % 32 != 0) violate(ErrorCode::kDivergentBarrier, line_of(at));
    return;
  }
  Block& block = blocks_[static_cast<size_t>(at.block)];
  if (is_of_grid(i) && i.from != kNoBuffer) check_counter(at, i.from, i.immediate);
  ++block.epoch;
  if (i.opcode == Opcode::kGridReduce)
    reduce_grid(at, i);
  else
    for (uint32_t k = 0; k < i.workspaces.count; ++k)
      use_workspace(at, code_->lists[i.workspaces.begin + k], 0, threads(), threads());
  if (i.opcode != Opcode::kBarrier && i.opcode != Opcode::kGridBarrier) ++block.epoch;
  if (is_of_grid(i)) block.grid.push_back(at.instruction);
}

void NaiveChecks::end() {
  finish();
  if (!found_.empty() || !wrong_mark_.empty()) return;
  for (size_t p = 0; p < args_.size(); ++p) {
    const HostArgument& a = args_[p];
    for (size_t e = 0; e < a.written.size(); ++e) {
      bool is_written = true;
      each_granule({kGlobal, static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.data)), a.elements},
                   static_cast<int64_t>(e), size_bytes(a.dtype), [&](Granule& g) { is_written &= g.is_written; });
      if (is_written == (a.written[e] != 0)) continue;
      wrong_mark_ = place_of(code_->parameters[p].buffer, static_cast<int64_t>(e));
      return;
    }
  }
}

void NaiveChecks::finish() {
  if (!found_.empty() || gave_up_) return;
  for (const Block& b : blocks_)
    if (b.grid != blocks_[0].grid) return violate(ErrorCode::kDivergentBarrier, "");
}

}  // namespace fusebox::fuzz
