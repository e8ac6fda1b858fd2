#include "replay/host/machine.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "codegen/runtime/philox.cuh"
#include "ir/scalar/prepared_division.h"
#include "replay/host/launch_observer.h"

namespace fusebox::host {
namespace {

std::string count_text(int64_t n, const char* noun) { return std::to_string(n) + " " + noun; }

// Writes the low bytes of a constant or a scalar argument, as memory holds them.
void put_bits(std::byte* to, Dtype dtype, ConstantBits bits) {
  std::byte raw[16] = {};
  const auto part = static_cast<size_t>(is_complex(dtype) ? size_bytes(dtype) / 2 : size_bytes(dtype));
  std::memcpy(raw, &bits.low, std::min<size_t>(part, 8));
  if (is_complex(dtype)) std::memcpy(raw + part, &bits.high, part);
  memory_functions(dtype).load(to, raw, 1);
}

}  // namespace

// -- arena
std::byte* Arena::take(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (chunks_.empty() || used_ + bytes > chunks_.back().size) {
    const size_t size = std::max<size_t>(bytes + 64, chunks_.empty() ? size_t{1} << 16 : 2 * chunks_.back().size);
    chunks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size});
    begin_chunk();
  }
  std::byte* result = chunks_.back().memory.get() + used_;
  used_ += bytes;
  return result;
}

void Arena::begin_chunk() {
  used_ = chunks_.empty() ? 0 : (64 - reinterpret_cast<uintptr_t>(chunks_.back().memory.get()) % 64) % 64;
}

void Arena::clear() {
  constexpr size_t kKept = size_t{64} << 20;
  if (chunks_.size() > 1) chunks_.erase(chunks_.begin(), chunks_.end() - 1);
  if (!chunks_.empty() && chunks_.back().size > kKept) chunks_.clear();
  begin_chunk();
}

// -- geometry
std::array<int64_t, 3> Geometry::thread_at(int32_t lane) const {
  return {lane % block[0], lane / block[0] % block[1], lane / (block[0] * block[1])};
}
std::array<int64_t, 3> Geometry::block_at(int64_t linear) const {
  return {linear % grid[0], linear / grid[0] % grid[1], linear / (grid[0] * grid[1])};
}

// -- machine
Machine::Machine(const LaneProgram& program, const Geometry& geometry, const HostOptions& options,
                 std::vector<Space> spaces)
    : program_(program), code_(program.code), geometry_(geometry), options_(options), spaces_(std::move(spaces)) {
  for (size_t axis = 0; axis < 3; ++axis) thread_index_[axis].resize(static_cast<size_t>(geometry.lanes));
  std::array<int64_t, 3> at = {0, 0, 0};
  for (int32_t l = 0; l < geometry.threads; ++l) {
    for (size_t axis = 0; axis < 3; ++axis) thread_index_[axis][static_cast<size_t>(l)] = at[axis];
    for (size_t axis = 0; axis < 3 && ++at[axis] == geometry.block[axis] && axis < 2; ++axis) at[axis] = 0;
  }
  place_registers();
}

void Machine::place_registers() {
  const size_t rows = (code_.uniform_bytes + 63) / 64 * 64;
  places_.reserve(code_.registers.size());
  for (const BytecodeRegister& r : code_.registers)
    places_.push_back({r.uniform ? r.offset : rows + size_t{r.offset} * static_cast<size_t>(geometry_.lanes),
                       static_cast<uint8_t>(r.uniform ? 0 : 1)});
  calls_.resize(code_.code.size());
  for (size_t k = 0; k < calls_.size(); ++k) {
    const Instruction& i = code_.code[k];
    if (i.opcode != Opcode::kMath && i.opcode != Opcode::kConvert) continue;
    Call& call = calls_[k];
    call.function = program_.functions[k].lane;
    call.uniform = i.uniform;
    call.counts = i.counts;
    if (i.check_index && options_.checks.index_overflow) {
      call.checks_bad = i.opcode == Opcode::kMath && sets_bad(i.math, i.dtype);
      call.checks_always = !call.checks_bad && code_.index_bits == 32;
    }
    CallPlaces& places = call_places_.emplace_back();
    places.instruction = static_cast<uint32_t>(k);
    places.to = places_[i.dst].offset;
    for (size_t a = 0; a < 4 && i.args[a] != kNoRegister; ++a) {
      places.from[a] = places_[i.args[a]].offset;
      call.lanes.stride[a] = stride(i.args[a]);
    }
    call.lanes.end = 1;
  }
}

void Machine::bind_calls(Group& g, Arena& arena) {
  g.calls = arena.take_array<Call>(calls_.size());
  std::copy(calls_.begin(), calls_.end(), g.calls);
  for (const CallPlaces& places : call_places_) {
    LaneCall& lanes = g.calls[places.instruction].lanes;
    lanes.to = g.registers + places.to;
    for (size_t a = 0; a < 4; ++a) lanes.from[a] = g.registers + places.from[a];
  }
}

int64_t group_bytes(const Bytecode& code, const Geometry& geometry) {
  constexpr int64_t kMarks = 2 * sizeof(int32_t);  // of a granule
  const auto lanes = int64_t{geometry.lanes};
  const int64_t of_lane = int64_t{code.lane_bytes} + code.local_bytes + code.local_elements + code.mask_depth + 2;
  const int64_t granules = code.shared_granule == 0 ? 0 : geometry.shared_bytes / code.shared_granule;
  return code.uniform_bytes + of_lane * lanes + static_cast<int64_t>(code.code.size() * sizeof(Call)) +
         (granules == 0 ? 0 : geometry.shared_bytes) + granules * kMarks;
}

void Machine::prepare(Group& g, Arena& arena, std::span<const HostArgument> args) {
  const auto lanes = static_cast<size_t>(geometry_.lanes);
  g.registers = arena.take((code_.uniform_bytes + 63) / 64 * 64 + code_.lane_bytes * lanes);
  bind_calls(g, arena);
  g.local = arena.take(code_.local_bytes * lanes);
  g.local_written = arena.take_array<uint8_t>(code_.local_elements * lanes);
  if (code_.shared_granule != 0) {
    const auto granules = static_cast<size_t>(geometry_.shared_bytes) / code_.shared_granule;
    g.shared = arena.take(static_cast<size_t>(geometry_.shared_bytes));
    g.shared_writers = arena.take_array<int32_t>(granules);
    g.shared_readers = arena.take_array<int32_t>(granules);
    std::memset(g.shared_writers, 0, granules * sizeof(int32_t));
    std::memset(g.shared_readers, 0, granules * sizeof(int32_t));
  }
  g.masks.resize(code_.mask_depth + 2);
  for (Mask& m : g.masks) m.bits = arena.take_array<uint8_t>(lanes);
  std::memset(g.masks[0].bits, 0, lanes);
  std::memset(g.masks[0].bits, 1, static_cast<size_t>(geometry_.threads));
  g.masks[0].end = g.masks[0].count = geometry_.threads;
  g.buffers.resize(code_.buffers.size());
  for (size_t b = 0; b < g.buffers.size(); ++b) {
    BufferState& state = g.buffers[b];
    const BytecodeBuffer& buffer = code_.buffers[b];
    state.memory = buffer.memory;
    state.element_bytes = static_cast<int32_t>(size_bytes(buffer.dtype));
    if (buffer.memory != MemoryType::kLocal) continue;
    state.elements = buffer.elements;
    state.data = g.local + buffer.local_offset * lanes;
    state.local_written = g.local_written + buffer.local_first * lanes;
  }
  for (const BytecodeConstant& c : code_.constants) put_bits(at(g, c.reg), c.dtype, c.bits);
  for (size_t p = 0; p < args.size(); ++p)
    if (code_.parameters[p].reg != kNoRegister)
      put_bits(at(g, code_.parameters[p].reg), code_.parameters[p].dtype, args[p].bits);
}

void Machine::set_clock(const Group& g) {
  clock_.now = own_clock_.now = epoch_ << kEpochShift;
  clock_.phase_start = phase_epoch_ << kEpochShift;
  clock_.block_start = g.phase_epoch << kEpochShift;
  own_clock_.first = g.first_epoch << kEpochShift;
  clock_.cluster_start = cluster_epoch_ << kEpochShift;
  clock_.cluster_wait = wait_epoch_ << kEpochShift;
  if (!options_.checks.races) clock_.phase_start = own_clock_.phase_start = std::numeric_limits<int32_t>::max();
  if (!options_.checks.unwritten) {
    clock_.first = own_clock_.first = std::numeric_limits<int32_t>::min();
    clock_.lost = own_clock_.lost = 0;
  }
}

// Begins a new epoch: earlier accesses are ordered before later ones.
void Machine::advance(Group& g) {
  ++epoch_;
  set_clock(g);
  if (epoch_ < kMaxEpoch) return;
  if (code_.cluster_blocks > 0)
    fail(g, ErrorCode::kStepLimit, 0,
         "the blocks of a cluster synchronise more often than the checks can number; make the inputs smaller");
  renumber_all(g);
  phase_epoch_ = 2;
  g.phase_epoch = 3;
  epoch_ = kRenumberedNow;
  set_clock(g);
}

// Makes room for later epochs while `g` runs. Other groups of the grid keep what their own memory holds.
void Machine::renumber_all(Group& g) {
  for (const Space& s : spaces_) {
    renumber(s.writers, s.granules(), clock_, false);
    renumber(s.readers, s.granules(), clock_, false);
  }
  const auto renumber_own = [&](Group& of) {
    own_clock_.first = of.first_epoch << kEpochShift;
    of.first_epoch = 3;
    if (!of.shared_writers) return;
    const int64_t granules = geometry_.shared_bytes / code_.shared_granule;
    renumber(of.shared_writers, granules, own_clock_, true);
    renumber(of.shared_readers, granules, own_clock_, true);
  };
  if (together_.empty()) return renumber_own(g);
  for (Group& of : together_) renumber_own(of);
}

void Machine::start(Group& g, int64_t block) {
  g.block_linear = block;
  g.block = geometry_.block_at(block);
  g.pc = 0;
  g.depth = 0;
  g.arrived_epoch = 0;
  g.first_epoch = g.phase_epoch = epoch_ + 1;
  advance(g);
  if (options_.observer) options_.observer->begin_block(block);
}

void Machine::resume(Group& g) {
  g.phase_epoch = epoch_ + 1;
  advance(g);
}

void Machine::fail(const Group& g, ErrorCode code, int32_t lane, std::string detail, uint32_t buffer,
                   int64_t element) const {
  const Instruction& i = code_.code[at_];
  Broken broken;
  HostFinding& f = broken.finding;
  f.code = code;
  if (buffer != kNoBuffer) f.buffer = code_.buffers[buffer].name;
  f.element = element;
  f.block = g.block;
  f.thread = geometry_.thread_at(lane);
  if (i.origin < code_.origins.size()) {
    const BytecodeOrigin& origin = code_.origins[i.origin];
    f.op = origin.op;
    f.kind = origin.kind;
    f.line = origin.line;
  }
  f.detail = std::move(detail);
  throw broken;
}

void Machine::refuse_wait(const Group& g, std::string detail) {
  at_ = g.pc - 1;
  fail(g, ErrorCode::kDivergentBarrier, 0, std::move(detail));
}

// -- masks
void Machine::tighten(Mask& m) const {
  if (m.count == 0) {
    m.begin = m.end = 0;
    return;
  }
  while (m.bits[m.begin] == 0) ++m.begin;
  while (m.bits[m.end - 1] == 0) --m.end;
}

Mask Machine::narrowed(Group&, const Mask& base, const uint8_t* keep, uint8_t flip, uint8_t* to) const {
  Mask m{to, base.begin, base.end, 0};
  const uint8_t* __restrict bits = base.bits;
  int32_t count = 0;
  for (int32_t l = base.begin; l < base.end; ++l) {
    const auto on = static_cast<uint8_t>(bits[l] & (keep[l] ^ flip));
    to[l] = on;
    count += on;
  }
  m.count = count;
  tighten(m);
  return m;
}

// The active lanes whose predicate holds. If the result is narrower than the group's mask, it has bits in all of that
// mask's range.
Mask Machine::predicated(Group& g, uint32_t reg) {
  const Mask& base = g.mask();
  if (reg == kNoRegister) return base;
  const auto* keep = reinterpret_cast<const uint8_t*>(at(g, reg));
  if (stride(reg) == 0) return *keep != 0 ? base : Mask{base.bits, 0, 0, 0};
  return narrowed(g, base, keep, 0, g.masks.back().bits);
}

bool Machine::begin_if(Group& g, const Instruction& i) {
  const auto* keep = reinterpret_cast<const uint8_t*>(at(g, i.args[0]));
  if (i.uniform) return *keep != 0;
  const Mask& base = g.mask();
  uint8_t* bits = g.masks[static_cast<size_t>(g.depth) + 1].bits;
  const Mask inner = narrowed(g, base, keep, 0, bits);
  ++g.depth;
  g.mask() = inner;
  return inner.count != 0;
}

bool Machine::begin_for(Group& g, const Instruction& i) {
  const int64_t* start = index_at(g, i.args[0]);
  const int64_t* stop = index_at(g, i.args[1]);
  const int64_t* by = index_at(g, i.args[2]);
  auto* index = reinterpret_cast<int64_t*>(at(g, i.dst));
  if (i.uniform) {
    *index = *start;
    if (*start >= *stop) return false;
    if (*by < 1) fail_at_step(g, g.mask().begin, *by);
    return true;
  }
  const ptrdiff_t sa = stride(i.args[0]), sb = stride(i.args[1]), sc = stride(i.args[2]);
  const Mask& base = g.mask();
  Mask inner{g.masks[static_cast<size_t>(g.depth) + 1].bits, base.begin, base.end, 0};
  for (ptrdiff_t l = base.begin; l < base.end; ++l) {
    index[l] = start[l * sa];
    const auto on = static_cast<uint8_t>(base.bits[l] & (start[l * sa] < stop[l * sb]));
    inner.bits[l] = on;
    inner.count += on;
    if (on != 0 && by[l * sc] < 1) fail_at_step(g, static_cast<int32_t>(l), by[l * sc]);
  }
  if (inner.count == 0) return false;
  tighten(inner);
  ++g.depth;
  g.mask() = inner;
  return true;
}

void Machine::fail_at_limit(const Group& g, int32_t lane) const {
  fail(g, ErrorCode::kStepLimit, lane,
       count_text(options_.step_limit, "thread-instructions are the limit; make the inputs smaller"));
}

void Machine::fail_at_index(const Group& g, int32_t lane) const {
  fail(g, ErrorCode::kIndexOverflow, lane, "the loop index leaves " + count_text(code_.index_bits, "bits"));
}

// A loop without a step forward does not end, or only where its index overflows.
void Machine::fail_at_step(const Group& g, int32_t lane, int64_t step) const {
  fail(g, ErrorCode::kStepLimit, lane, "the loop's step is " + std::to_string(step) + ", not 1 or more");
}

// A loop that would meet the limit soon may break another rule before, so it goes on.
bool Machine::is_endless(int64_t index, int64_t stop, int64_t by) const {
  constexpr uint64_t kSoon = uint64_t{1} << 32;
  const uint64_t left = distance(index, stop);
  return left > kSoon && left / static_cast<uint64_t>(by) > std::max(static_cast<uint64_t>(options_.step_limit), kSoon);
}

bool Machine::next_for(Group& g, const Instruction& i) {
  if (thread_instructions > options_.step_limit) fail_at_limit(g, g.mask().begin);
  if (program_.idle.may_idle(at_)) skip_idle(g, i);
  if (!i.uniform) return next_for_lanes(g, i);
  auto* index = reinterpret_cast<int64_t*>(at(g, i.dst));
  const int64_t stop = *index_at(g, i.args[1]), by = *index_at(g, i.args[2]);
  if (is_endless(*index, stop, by)) fail_at_limit(g, g.mask().begin);
  if (advance_index(*index, by)) fail_at_index(g, g.mask().begin);
  return *index < stop;
}

bool Machine::next_for_lanes(Group& g, const Instruction& i) {
  auto* index = reinterpret_cast<int64_t*>(at(g, i.dst));
  const int64_t* stop = index_at(g, i.args[1]);
  const int64_t* by = index_at(g, i.args[2]);
  const ptrdiff_t sb = stride(i.args[1]), sc = stride(i.args[2]);
  Mask& m = g.mask();
  if (is_endless(index[m.begin], stop[m.begin * sb], by[m.begin * sc])) fail_at_limit(g, m.begin);
  int32_t count = 0;
  for (ptrdiff_t l = m.begin; l < m.end; ++l) {
    if (m.bits[l] == 0) continue;
    if (advance_index(index[l], by[l * sc])) fail_at_index(g, static_cast<int32_t>(l));
    m.bits[l] = index[l] < stop[l * sb];
    count += m.bits[l];
  }
  m.count = count;
  if (count == 0) {
    --g.depth;
    return false;
  }
  tighten(m);
  return true;
}

void Machine::expect_whole(Group& g, std::string_view what) {
  const Mask& m = g.mask();
  if (options_.observer) options_.observer->synchronize({g.block_linear, at_}, m.count);
  if (whole(m)) return;
  int32_t lane = 0;
  while (lane >= m.begin && lane < m.end && m.bits[lane] != 0) ++lane;
  fail(g, ErrorCode::kDivergentBarrier, lane,
       "only " + std::to_string(m.count) + " of " + count_text(geometry_.threads, "threads reach the ") +
           std::string(what));
}

// -- instructions
void Machine::check_index(Group& g, const Instruction& i, uint64_t bad) {
  if (!options_.checks.index_overflow) return;
  const auto* r = reinterpret_cast<const int64_t*>(at(g, i.dst));
  const Mask& m = g.mask();
  const int32_t begin = i.uniform ? 0 : m.begin, end = i.uniform ? 1 : m.end;
  const bool is_narrow = code_.index_bits == 32;
  const bool knows = i.opcode == Opcode::kMath && sets_bad(i.math, i.dtype);
  if (!knows) {
    if (!is_narrow) return;
    for (int32_t l = begin; l < end; ++l) bad |= (static_cast<uint64_t>(r[l]) + 0x80000000u) >> 32;
  }
  if (bad == 0) return;
  // Inactive lanes may have been computed too; they do not count.
  const auto overflows = [&](int32_t l) {
    if (is_narrow) return r[l] != static_cast<int32_t>(r[l]);
    const int64_t a = index_at(g, i.args[0])[l * stride(i.args[0])], b = index_at(g, i.args[1])[l * stride(i.args[1])];
    int64_t out;
    return i.math == OpKind::kAdd   ? __builtin_add_overflow(a, b, &out)
           : i.math == OpKind::kSub ? __builtin_sub_overflow(a, b, &out)
                                    : __builtin_mul_overflow(a, b, &out);
  };
  for (int32_t l = begin; l < end; ++l)
    if ((i.uniform || m.bits[l] != 0) && overflows(l))
      fail(g, ErrorCode::kIndexOverflow, i.uniform ? m.begin : l,
           is_narrow ? std::to_string(r[l]) + " does not fit 32 bits" : "a result does not fit 64 bits");
}

// Multiplies and shifts, as a GPU does.
void Machine::prepared_div(Group& g, const Instruction& i) {
  const Mask& m = g.mask();
  const int64_t *a = index_at(g, i.args[0]), *prepared = index_at(g, i.args[1]);
  auto* to = reinterpret_cast<int64_t*>(at(g, i.dst));
  const int64_t step = stride(i.args[0]), prepared_step = stride(i.args[1]);
  const int32_t begin = i.uniform ? 0 : m.begin, end = i.uniform ? 1 : m.end;
  for (int32_t l = begin; l < end; ++l) to[l] = prepared_quotient(a[l * step], prepared[l * prepared_step]);
}

void Machine::philox(Group& g, const Instruction& i) {
  const Mask& m = g.mask();
  const auto words = [&](size_t k) { return reinterpret_cast<const uint64_t*>(at(g, i.args[k])); };
  const uint64_t *seeds = words(0), *offsets = words(1);
  const int64_t* elements = index_at(g, i.args[2]);
  auto* to = reinterpret_cast<uint32_t*>(at(g, i.dst));
  const int64_t seed_step = stride(i.args[0]), offset_step = stride(i.args[1]), step = stride(i.args[2]);
  const auto stream = static_cast<uint32_t>(i.immediate);
  const int32_t begin = i.uniform ? 0 : m.begin, end = i.uniform ? 1 : m.end;
  for (int32_t l = begin; l < end; ++l)
    to[l] = exact::philox(seeds[l * seed_step], offsets[l * offset_step], elements[l * step], stream);
}

void Machine::welford(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  const Mask& m = g.mask();
  WelfordCall c;
  for (uint32_t k = 0; k < 3; ++k) c.to[k] = at(g, code_.lists[i.results.begin + k]);
  for (uint32_t k = 0; k < 6; ++k) {
    const uint32_t r = code_.lists[i.values.begin + k];
    c.from[k] = at(g, r);
    c.stride[k] = stride(r);
  }
  c.begin = i.uniform ? 0 : m.begin;
  c.end = i.uniform ? 1 : m.end;
  f.welford(c);
}

Status Machine::run(Group& g) {
  set_clock(g);
  if (thread_instructions > options_.step_limit) fail_at_limit(g, 0);
  for (;;) {
    // Most instructions are calls of lane functions, which change neither masks nor control flow.
    const int32_t begin = g.mask().begin, end = g.mask().end, count = g.mask().count;
    uint32_t pc = g.pc;
    for (Call* call = g.calls + pc; call->function; ++call, ++pc) {
      if (call->counts) thread_instructions += count;
      if (!call->uniform) call->lanes.begin = begin, call->lanes.end = end;
      call->lanes.bad = 0;
      call->function(call->lanes);
      if (call->checks_always || (call->checks_bad && call->lanes.bad != 0)) {
        at_ = pc;
        check_index(g, code_.code[pc], call->lanes.bad);
      }
    }
    instructions += pc - g.pc;
    g.pc = at_ = pc;
    const Instruction& i = code_.code[g.pc];
    const LaneProgram::Functions& f = program_.functions[g.pc];
    ++g.pc;
    ++instructions;
    if (i.counts) thread_instructions += g.mask().count;
    switch (i.opcode) {
      case Opcode::kMath:
      case Opcode::kConvert:
        break;  // the loop above has done them
      case Opcode::kWelford:
        welford(g, i, f);
        break;
      case Opcode::kThreadIndex: {
        const auto axis = static_cast<size_t>(i.parallel) -
                          static_cast<size_t>(is_grid(i.parallel) ? ParallelType::kGridX : ParallelType::kBlockX);
        auto* to = reinterpret_cast<int64_t*>(at(g, i.dst));
        if (i.uniform)
          *to = g.block[axis];
        else
          std::memcpy(to, thread_index_[axis].data(), static_cast<size_t>(geometry_.lanes) * sizeof(int64_t));
        break;
      }
      case Opcode::kThreadCount: {
        const bool is_of_grid = is_grid(i.parallel);
        const auto axis = static_cast<size_t>(i.parallel) -
                          static_cast<size_t>(is_of_grid ? ParallelType::kGridX : ParallelType::kBlockX);
        *reinterpret_cast<int64_t*>(at(g, i.dst)) = is_of_grid ? geometry_.grid[axis] : geometry_.block[axis];
        break;
      }
      case Opcode::kPreparedDiv:
        prepared_div(g, i);
        break;
      case Opcode::kPhilox:
        philox(g, i);
        break;
      case Opcode::kAllocate:
        allocate(g, i);
        break;
      case Opcode::kLoad:
        load(g, i, *f.memory);
        break;
      case Opcode::kStore:
        store(g, i, *f.memory);
        break;
      case Opcode::kCopy:
        copy(g, i, *f.memory);
        break;
      case Opcode::kWithin:
        check_within(g, i);
        break;
      case Opcode::kIf:
        if (!begin_if(g, i)) g.pc = i.target;
        break;
      case Opcode::kElse: {
        const Mask& outer = g.masks[static_cast<size_t>(g.depth) - 1];
        g.mask() = narrowed(g, outer, reinterpret_cast<const uint8_t*>(at(g, i.args[0])), 1, g.mask().bits);
        if (g.mask().count == 0) g.pc = i.target;
        break;
      }
      case Opcode::kEndIf:
        --g.depth;
        break;
      case Opcode::kJump:
        g.pc = i.target;
        break;
      case Opcode::kFor:
        if (!begin_for(g, i)) g.pc = i.target;
        break;
      case Opcode::kEndFor:
        if (next_for(g, i)) g.pc = i.target;
        break;
      case Opcode::kBarrier:
        expect_whole(g, "barrier");
        advance(g);
        break;
      case Opcode::kGridBarrier:
        expect_whole(g, "grid barrier");
        if (i.from != kNoBuffer) check_counter(g, i.from, i.immediate);
        return Status::kWaits;
      case Opcode::kGridReduce:
        expect_whole(g, "grid reduction");
        if (!i.all) {
          reduce_in_last_block(g, i, f);
          break;
        }
        check_counter(g, i.from, i.immediate);
        stage(g, i, f);
        g.came_last = arrive(g, i);
        return Status::kWaits;
      case Opcode::kClusterArrive:
        expect_whole(g, "arrival in the cluster");
        cluster_arrive(g);
        break;
      case Opcode::kClusterWait:
        expect_whole(g, "wait for the cluster");
        if (g.arrived_epoch == 0) fail(g, ErrorCode::kDivergentBarrier, 0, "a wait for the cluster without an arrival");
        return Status::kWaits;
      case Opcode::kClusterReduce:
        expect_whole(g, "reduction in the cluster");
        stage_in_cluster(g, i, f);
        return Status::kWaits;
      case Opcode::kBlockReduce:
        expect_whole(g, "block reduction");
        block_reduce(g, i, f);
        break;
      case Opcode::kWarpReduce:
        expect_whole(g, "warp reduction");
        warp_reduce(g, i, f);
        break;
      case Opcode::kBlockBroadcast:
        expect_whole(g, "block broadcast");
        block_broadcast(g, i);
        break;
      case Opcode::kEnd:
        if (g.arrived_epoch != 0)
          fail(g, ErrorCode::kDivergentBarrier, 0, "the block ends without a wait for its arrival in the cluster");
        return Status::kEnded;
    }
  }
}

}  // namespace fusebox::host
