// Collectives, in the order of codegen/runtime/reduce.cuh, which only the launch's dimensions decide. Threads are numbered
// within their group (rank), and the groups are numbered (index). Values are combined as rows of consecutive elements,
// with the rank outermost, so that a step combines the values of many ranks and groups at once.
#include <algorithm>
#include <bit>
#include <cstring>

#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

constexpr bool is_reduced(const Instruction& i, ParallelType first, size_t axis) {
  return (i.threads >> (static_cast<size_t>(first) + axis) & 1) != 0;
}

// The step of the first pairwise round: the largest power of two below `size`.
int64_t first_step(int64_t size) {
  return size <= 1 ? 0 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size - 1)));
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void Machine::Member::add(bool is_combined, int64_t coordinate, int64_t extent) {
  (is_combined ? rank : index) += coordinate * (is_combined ? size : count);
  (is_combined ? size : count) *= extent;
}

Machine::Member Machine::thread_member(const Instruction& i, int32_t lane) const {
  Member m;
  const auto at = geometry_.thread_at(lane);
  for (size_t a = 0; a < 3; ++a) m.add(is_reduced(i, ParallelType::kBlockX, a), at[a], geometry_.block[a]);
  return m;
}

Machine::Member Machine::block_member(const Instruction& i, const Group& g) const {
  Member m;
  for (size_t a = 0; a < 3; ++a) m.add(is_reduced(i, ParallelType::kGridX, a), g.block[a], geometry_.grid[a]);
  return m;
}

// The dtypes of the values that are combined: one, or the three of a welford.
std::vector<Dtype> Machine::exchanged(const Instruction& i) const {
  std::vector<Dtype> dtypes;
  if (i.opcode == Opcode::kGridReduce || i.opcode == Opcode::kClusterReduce)
    for (uint32_t k = 0; k < i.workspaces.count / 3; ++k)
      dtypes.push_back(code_.buffers[code_.lists[i.workspaces.begin + k]].dtype);
  else
    for (uint32_t k = 0; k < i.results.count; ++k) dtypes.push_back(info(code_.lists[i.results.begin + k]).dtype);
  return dtypes;
}

// Combines `count` elements of each row of `a`, the left operands, with those of `b`, and keeps the results in `a`.
void Machine::combine(const Group& g, const Instruction& i, const LaneProgram::Functions& f, const Rows& a,
                      const Rows& b, int64_t count) {
  const std::vector<Dtype> dtypes = exchanged(i);
  const int64_t row = 16 * (count + 1);
  scratch_.resize(static_cast<size_t>(row) * 12);
  const auto scratch = [&](size_t k) { return scratch_.data() + static_cast<size_t>(row) * k; };
  const auto bytes = [&](size_t k) { return static_cast<size_t>(count * size_bytes(register_dtype(dtypes[k]))); };
  if (i.reduce != ReduceOp::kWelford) {
    LaneCall c;
    c.to = scratch(0);
    c.from[0] = a[0];
    c.from[1] = b[0];
    c.stride[0] = c.stride[1] = 1;
    c.end = static_cast<int32_t>(count);
    f.lane(c);
    if (c.bad != 0) fail(g, ErrorCode::kIndexOverflow, 0, "a reduction leaves the index type");
    if (f.round) {
      c.from[0] = c.to;
      f.round(c);
    }
    std::memcpy(a[0], scratch(0), bytes(0));
    return;
  }
  // An integer count of a set is combined as an integer.
  const Dtype compute = compute_dtype(i.dtype);
  WelfordCall w;
  w.end = static_cast<int32_t>(count);
  for (size_t side = 0; side < 2; ++side)
    for (size_t v = 0; v < 3; ++v) {
      const size_t k = side * 3 + v;
      const Dtype combined = v == 2 ? i.to : compute;
      w.from[k] = side == 0 ? a[v] : b[v];
      w.stride[k] = 1;
      if (register_dtype(dtypes[v]) == combined) continue;
      LaneCall c;
      c.to = scratch(3 + k);
      c.from[0] = w.from[k];
      c.end = w.end;
      find_conversion(dtypes[v], combined)(c);
      w.from[k] = c.to;
    }
  for (size_t v = 0; v < 3; ++v) w.to[v] = scratch(v);
  f.welford(w);
  for (size_t v = 0; v < 3; ++v) {
    const Dtype combined = v == 2 ? i.to : compute;
    if (register_dtype(dtypes[v]) == combined && !is_reduced_float(dtypes[v])) {
      std::memcpy(a[v], scratch(v), bytes(v));
      continue;
    }
    LaneCall c;
    c.to = a[v];
    c.from[0] = scratch(v);
    c.end = w.end;
    find_conversion(combined, dtypes[v])(c);
  }
}

Machine::Rows Machine::row_at(const Instruction& i, const Rows& rows, int64_t element) const {
  Rows result = rows;
  const std::vector<Dtype> dtypes = exchanged(i);
  for (size_t k = 0; k < dtypes.size(); ++k) result[k] += element * size_bytes(register_dtype(dtypes[k]));
  return result;
}

// Combines `size` rows of `count` elements pairwise, into the first.
void Machine::reduce_ranks(const Group& g, const Instruction& i, const LaneProgram::Functions& f, const Rows& rows,
                           int64_t size, int64_t count) {
  for (int64_t step = first_step(size); step > 0; step /= 2)
    combine(g, i, f, rows, row_at(i, rows, step * count), std::min(step, size - step) * count);
}

// Reduces the values of a block's threads, in the order of lanes. `rows` then begin with the result of each group.
void Machine::reduce_block(const Group& g, const Instruction& i, const LaneProgram::Functions& f, const Rows& rows) {
  const std::vector<Dtype> dtypes = exchanged(i);
  const Member whole = thread_member(i, 0);
  if (whole.size == 1) return;
  for (size_t k = 0; k < dtypes.size(); ++k) {
    const int64_t bytes = size_bytes(register_dtype(dtypes[k]));
    ordered_.resize(static_cast<size_t>(geometry_.threads * bytes));
    for (int32_t l = 0; l < geometry_.threads; ++l) {
      const Member m = thread_member(i, l);
      std::memcpy(ordered_.data() + (m.rank * m.count + m.index) * bytes, rows[k] + l * bytes,
                  static_cast<size_t>(bytes));
    }
    std::memcpy(rows[k], ordered_.data(), ordered_.size());
  }
  if (!is_reduced(i, ParallelType::kBlockX, 0) || geometry_.block[0] % 32 != 0)
    return reduce_ranks(g, i, f, rows, whole.size, whole.count);
  for (int64_t warp = 0; warp < whole.size / 32; ++warp) {
    const Rows first = row_at(i, rows, warp * 32 * whole.count);
    for (int64_t distance = 16; distance > 0; distance /= 2)
      combine(g, i, f, first, row_at(i, first, distance * whole.count), distance * whole.count);
    for (size_t k = 0; k < dtypes.size() && warp > 0; ++k) {
      const int64_t bytes = whole.count * size_bytes(register_dtype(dtypes[k]));
      std::memcpy(rows[k] + warp * bytes, first[k], static_cast<size_t>(bytes));
    }
  }
  reduce_ranks(g, i, f, rows, whole.size / 32, whole.count);
}

// The value of each thread of the block, or the initial value for a thread that takes no part.
void Machine::participate(Group& g, const Instruction& i, uint32_t value, std::byte* to) {
  const uint32_t v = code_.lists[i.values.begin + value];
  const int64_t bytes = size_bytes(register_dtype(info(v).dtype));
  const MemoryFunctions& f = memory_functions(info(v).dtype);
  const std::byte* from = at(g, v);
  if (stride(v) != 0)
    std::memcpy(to, from, static_cast<size_t>(geometry_.threads * bytes));
  else
    f.fill(to, from, geometry_.threads);
  if (i.args[0] == kNoRegister) return;
  const uint32_t init = code_.lists[i.inits.begin + value];
  const auto* takes_part = reinterpret_cast<const uint8_t*>(at(g, i.args[0]));
  if (stride(i.args[0]) != 0)
    f.merge(to, at(g, init), stride(init), takes_part, 0, geometry_.threads);
  else if (*takes_part == 0)
    for (int32_t l = 0; l < geometry_.threads; ++l)
      std::memcpy(to + l * bytes, at(g, init) + l * stride(init) * bytes, static_cast<size_t>(bytes));
}

// Copies the result of each group, in `from`, to the threads that get it. Other threads get all bits set, so that a
// program that uses an unspecified value shows it.
void Machine::distribute(Group& g, const Instruction& i, uint32_t value, const std::byte* from) {
  const uint32_t r = code_.lists[i.results.begin + value];
  const int64_t bytes = size_bytes(register_dtype(info(r).dtype));
  std::byte* to = at(g, r);
  const int unspecified = is_boolean(info(r).dtype) ? 1 : 0xff;
  for (int32_t l = 0; l < geometry_.threads; ++l) {
    const Member m = thread_member(i, l);
    if (i.all || m.rank == 0)
      std::memcpy(to + l * bytes, from + m.index * bytes, static_cast<size_t>(bytes));
    else
      std::memset(to + l * bytes, unspecified, static_cast<size_t>(bytes));
  }
}

// Collectives keep their values elsewhere. A workspace is checked for its size, and the contents of the elements that
// the block uses are lost.
void Machine::use_workspace(Group& g, uint32_t buffer, int64_t first, int64_t used, int64_t needed) {
  const BufferState& b = g.buffers[buffer];
  if (b.memory == MemoryType::kLocal || b.elements < needed)
    fail(g, ErrorCode::kOutOfBounds, 0,
         "a workspace of fewer than " + std::to_string(needed) + " shared or global elements", buffer, b.elements);
  const Clock& c = clock_of(b);
  for (int64_t e = 0; e < used; ++e)
    for (int32_t s = 0; s < b.granules; ++s) {
      const int64_t at = (first + e) * b.granules + s;
      const auto l = static_cast<int32_t>(e % geometry_.threads);
      if (!may_read(b.writers[at], c.now + l, c) || !may_write_after_reads(b.readers[at], c.now + l, c))
        fail(g, ErrorCode::kRace, l, "a workspace that another block uses in the same phase", buffer, first + e);
      b.writers[at] = (c.now + l) | kFlag;
    }
}

void Machine::check_counter(Group& g, uint32_t buffer, int64_t slot) {
  const BufferState& b = g.buffers[buffer];
  if (slot < 0 || slot >= b.elements)
    fail(g, ErrorCode::kOutOfBounds, 0, "a counter slot beyond " + std::to_string(b.elements) + " elements", buffer,
         slot);
  const std::byte* counter = b.data + slot * b.element_bytes;
  const bool is_written =
      b.writers ? holds_value(b.writers[slot * b.granules], clock_of(b)) : !b.written || b.written[slot] != 0;
  const bool is_zero = std::all_of(counter, counter + b.element_bytes, [](std::byte x) { return x == std::byte{0}; });
  if (!is_written || !is_zero)
    fail(g, ErrorCode::kUnwrittenRead, 0, "a counter that was not set to zero", buffer, slot);
}

void Machine::block_reduce(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  advance(g);
  const int64_t used = geometry_.threads * i.immediate;
  for (uint32_t k = 0; k < i.workspaces.count; ++k)
    use_workspace(g, code_.lists[i.workspaces.begin + k], 0, used, used);
  const auto size = static_cast<size_t>(geometry_.lanes) * 16;
  g.staged.resize(size * i.values.count);
  Rows rows{};
  for (uint32_t k = 0; k < i.values.count; ++k) {
    rows[k] = g.staged.data() + size * k;
    participate(g, i, k, rows[k]);
  }
  reduce_block(g, i, f, rows);
  for (uint32_t k = 0; k < i.values.count; ++k) distribute(g, i, k, rows[k]);
  advance(g);
}

// Each `width` neighbouring lanes combine their values, without memory and without a barrier. A shuffle takes all lanes
// of a warp, so the last warp must be full.
void Machine::warp_reduce(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  constexpr int64_t kWarp = 32;
  const int64_t threads = geometry_.threads, width = i.immediate, groups = threads / width;
  if (threads % kWarp != 0)
    fail(g, ErrorCode::kDivergentBarrier, 0,
         "a warp reduction takes all lanes of each warp, and the last warp has " + std::to_string(threads % kWarp));
  const auto size = static_cast<size_t>(geometry_.lanes) * 16;
  g.staged.resize(size * i.values.count);
  const std::vector<Dtype> dtypes = exchanged(i);
  const auto bytes_of = [&](uint32_t k) { return size_bytes(register_dtype(dtypes[k])); };
  Rows rows{};
  for (uint32_t k = 0; k < i.values.count; ++k) {
    const int64_t bytes = bytes_of(k);
    rows[k] = g.staged.data() + size * k;
    participate(g, i, k, rows[k]);
    ordered_.resize(static_cast<size_t>(threads * bytes));
    for (int64_t l = 0; l < threads; ++l)
      std::memcpy(ordered_.data() + (l % width * groups + l / width) * bytes, rows[k] + l * bytes,
                  static_cast<size_t>(bytes));
    std::memcpy(rows[k], ordered_.data(), ordered_.size());
  }
  reduce_ranks(g, i, f, rows, width, groups);
  for (uint32_t k = 0; k < i.values.count; ++k) {
    const int64_t bytes = bytes_of(k);
    std::byte* to = at(g, code_.lists[i.results.begin + k]);
    for (int64_t l = 0; l < threads; ++l)
      std::memcpy(to + l * bytes, rows[k] + l / width * bytes, static_cast<size_t>(bytes));
  }
}

void Machine::block_broadcast(Group& g, const Instruction& i) {
  advance(g);
  for (uint32_t k = 0; k < i.workspaces.count; ++k)
    use_workspace(g, code_.lists[i.workspaces.begin + k], 0, geometry_.threads, geometry_.threads);
  g.staged.resize(static_cast<size_t>(geometry_.lanes) * 16);
  Instruction to_all = i;
  to_all.all = true;
  for (uint32_t k = 0; k < i.values.count; ++k) {
    const int64_t bytes = size_bytes(register_dtype(info(code_.lists[i.results.begin + k]).dtype));
    participate(g, to_all, k, g.staged.data());
    // The values of rank 0 go to the front.
    for (int32_t l = 0; l < geometry_.threads; ++l)
      if (const Member m = thread_member(i, l); m.rank == 0)
        std::memmove(g.staged.data() + m.index * bytes, g.staged.data() + l * bytes, static_cast<size_t>(bytes));
    distribute(g, to_all, k, g.staged.data());
  }
  advance(g);
}

}  // namespace fusebox::host
