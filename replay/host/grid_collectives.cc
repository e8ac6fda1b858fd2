// Collectives of blocks. A block hands in its part, counts its arrival, and continues; if it comes last, it has the
// result. With `all`, the block waits until every block has the result. The parts are combined in the order of block
// numbers, so the order in which blocks come cannot change a bit.
#include <algorithm>
#include <cstring>

#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

// The place of a row in a block's part. A part has, for each element of the arrays and each of the exchanged values,
// the value of each group of threads.
size_t Machine::part_offset(const Instruction& i, int64_t element, size_t value, int64_t groups) const {
  int64_t before = 0, all = 0;
  const std::vector<Dtype> dtypes = exchanged(i);
  for (size_t k = 0; k < dtypes.size(); ++k) {
    const int64_t bytes = size_bytes(register_dtype(dtypes[k]));
    if (k < value) before += bytes;
    all += bytes;
  }
  return static_cast<size_t>((element * all + before) * groups);
}

// The memory in which the threads of a block combine their arrays before blocks do.
void Machine::use_shared_workspaces(Group& g, const Instruction& i) {
  const uint32_t n = i.workspaces.count / 3;
  if (thread_member(i, 0).size == 1 || g.buffers[code_.lists[i.workspaces.begin]].elements == 0) return;
  // The threads share as many elements at once as 16 bytes hold.
  int64_t at_once = 16;
  for (const Dtype d : exchanged(i)) at_once = std::min(at_once, 16 / size_bytes(d));
  const int64_t used = at_once * geometry_.threads;
  for (uint32_t k = 0; k < n; ++k) use_workspace(g, code_.lists[i.workspaces.begin + 2 * n + k], 0, used, used);
}

// Takes the block's part of a reduction across the grid.
void Machine::stage(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  advance(g);
  const uint32_t n = i.workspaces.count / 3;
  const Member threads = thread_member(i, 0), blocks = block_member(i, g);
  const int64_t elements = g.buffers[code_.lists[i.workspaces.begin]].elements, used = elements * threads.count;
  for (uint32_t k = 0; k < n; ++k)
    use_workspace(g, code_.lists[i.workspaces.begin + n + k], g.block_linear * used, used,
                  (geometry_.blocks + (i.all ? blocks.count : 0)) * used);
  use_shared_workspaces(g, i);
  take_part(g, i, f);
  advance(g);
}

// Keeps the values of the thread's arrays, reduced in the block, as its part.
void Machine::take_part(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  const uint32_t n = i.workspaces.count / 3;
  const Member threads = thread_member(i, 0);
  const int64_t elements = g.buffers[code_.lists[i.workspaces.begin]].elements;
  g.part.resize(part_offset(i, elements, 0, threads.count));
  const auto size = static_cast<size_t>(geometry_.lanes) * 16;
  g.staged.resize(size * n);
  for (int64_t e = 0; e < elements; ++e) {
    Rows rows{};
    for (uint32_t k = 0; k < n; ++k) {
      const uint32_t buffer = code_.lists[i.workspaces.begin + k];
      const BufferState& b = g.buffers[buffer];
      const int64_t bytes = size_bytes(register_dtype(code_.buffers[buffer].dtype)), lanes = geometry_.lanes;
      for (int32_t l = 0; l < geometry_.threads; ++l)
        if (b.local_written[e * lanes + l] == 0 && options_.checks.unwritten)
          fail(g, ErrorCode::kUnwrittenRead, l, "a read of an element that nothing wrote", buffer, e);
      rows[k] = g.staged.data() + size * k;
      std::memcpy(rows[k], b.data + e * lanes * bytes, static_cast<size_t>(geometry_.threads * bytes));
    }
    reduce_block(g, i, f, rows);
    for (uint32_t k = 0; k < n; ++k)
      std::memcpy(g.part.data() + part_offset(i, e, k, threads.count), rows[k],
                  part_offset(i, e, k + 1, threads.count) - part_offset(i, e, k, threads.count));
  }
}

// Whether the block is the last of `count` that come to the counter, which is 0 before the first and after the last.
bool Machine::comes_last(Group& g, uint32_t buffer, int64_t slot, int64_t count) {
  if (!counted_.contains({buffer, slot})) check_counter(g, buffer, slot);
  counted_.insert({buffer, slot});
  uint32_t arrived = 0;
  std::byte* counter = g.buffers[buffer].data + slot * g.buffers[buffer].element_bytes;
  std::memcpy(&arrived, counter, sizeof arrived);
  const bool is_last = arrived == count - 1;
  arrived = arrived >= count - 1 ? 0 : arrived + 1;
  std::memcpy(counter, &arrived, sizeof arrived);
  return is_last;
}

// Hands in the block's part. Whether the block comes last at every node on its way to the root.
bool Machine::arrive(Group& g, const Instruction& i) {
  const Member threads = thread_member(i, 0), blocks = block_member(i, g);
  auto& parts = parts_[{at_, blocks.index}];
  parts.resize(static_cast<size_t>(blocks.size));
  parts[static_cast<size_t>(blocks.rank)] = g.part;
  const int64_t branches = kBranches * threads.size;
  int64_t counter = i.immediate * geometry_.blocks + blocks.index * blocks.size, rank = blocks.rank;
  for (int64_t nodes = blocks.size; nodes > 1; nodes = ceil_div(nodes, branches)) {
    rank /= branches;
    if (!comes_last(g, i.buffer, counter + rank, std::min(branches, nodes - rank * branches))) return false;
    counter += ceil_div(nodes, branches);
  }
  return true;
}

// The result of a group of blocks, laid out like a part. All its blocks must have handed in their parts.
std::vector<std::byte> Machine::combine_parts(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  const Member threads = thread_member(i, 0), blocks = block_member(i, g);
  const auto found = parts_.extract({at_, blocks.index});
  const auto& parts = found.mapped();
  for (size_t b = 0; b < parts.size(); ++b)
    if (parts[b].size() != g.part.size())
      fail(g, ErrorCode::kUnwrittenRead, 0, "the part of block " + std::to_string(b) + " has not come",
           code_.lists[i.workspaces.begin + i.workspaces.count / 3], static_cast<int64_t>(b));
  const std::vector<Dtype> dtypes = exchanged(i);
  const int64_t elements = g.buffers[code_.lists[i.workspaces.begin]].elements, branches = kBranches * threads.size;
  std::vector<std::byte> result(g.part.size());
  std::array<std::vector<std::byte>, 3> level;
  for (int64_t e = 0; e < elements; ++e) {
    Rows rows{};
    for (size_t k = 0; k < dtypes.size(); ++k) {
      const size_t from = part_offset(i, e, k, threads.count), bytes = part_offset(i, e, k + 1, threads.count) - from;
      level[k].resize(bytes * parts.size());
      for (size_t b = 0; b < parts.size(); ++b) std::memcpy(level[k].data() + bytes * b, parts[b].data() + from, bytes);
      rows[k] = level[k].data();
    }
    for (int64_t nodes = blocks.size; nodes > 1; nodes = ceil_div(nodes, branches))
      for (int64_t node = 0; node * branches < nodes; ++node) {
        const int64_t size = std::min(branches, nodes - node * branches), ranks = std::min(size, threads.size);
        const Rows first = row_at(i, rows, node * branches * threads.count);
        for (int64_t part = threads.size; part < size; part += threads.size)
          combine(g, i, f, first, row_at(i, first, part * threads.count),
                  std::min(threads.size, size - part) * threads.count);
        reduce_ranks(g, i, f, first, ranks, threads.count);
        const Rows to = row_at(i, rows, node * threads.count);
        for (size_t k = 0; k < dtypes.size(); ++k)
          std::memmove(to[k], first[k], part_offset(i, e, k + 1, threads.count) - part_offset(i, e, k, threads.count));
      }
    for (size_t k = 0; k < dtypes.size(); ++k) {
      const size_t to = part_offset(i, e, k, threads.count);
      std::memcpy(result.data() + to, rows[k], part_offset(i, e, k + 1, threads.count) - to);
    }
  }
  return result;
}

// Gives the thread's arrays the result of its group, or, without one, no value.
void Machine::give(Group& g, const Instruction& i, const std::vector<std::byte>* result) {
  for (uint32_t k = 0; k < i.workspaces.count / 3; ++k) {
    const uint32_t buffer = code_.lists[i.workspaces.begin + k];
    const BufferState& b = g.buffers[buffer];
    const int64_t bytes = size_bytes(register_dtype(code_.buffers[buffer].dtype)), lanes = geometry_.lanes;
    for (int64_t e = 0; e < b.elements; ++e)
      for (int32_t l = 0; l < geometry_.threads; ++l) {
        b.local_written[e * lanes + l] = result ? 1 : 0;
        if (!result) continue;
        const Member m = thread_member(i, l);
        std::memcpy(b.data + (e * lanes + l) * bytes,
                    result->data() + part_offset(i, e, k, m.count) + static_cast<size_t>(m.index * bytes),
                    static_cast<size_t>(bytes));
      }
  }
  if (i.dst != kNoRegister) *reinterpret_cast<uint8_t*>(at(g, i.dst)) = result ? 1 : 0;
}

// A reduction whose result the last block alone gets. Nobody waits.
void Machine::reduce_in_last_block(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  stage(g, i, f);
  if (!arrive(g, i)) return give(g, i, nullptr);
  const std::vector<std::byte> result = combine_parts(g, i, f);
  give(g, i, &result);
}

void Machine::grid_reduce(std::span<Group> groups, const Instruction& i, const LaneProgram::Functions& f) {
  std::map<int64_t, std::vector<std::byte>> results;  // by group of blocks
  for (Group& g : groups)
    if (g.came_last) results[block_member(i, g).index] = combine_parts(g, i, f);
  for (Group& g : groups) {
    const auto found = results.find(block_member(i, g).index);
    if (found == results.end())
      fail(g, ErrorCode::kUnwrittenRead, 0, "no block came last to the reduction", i.buffer, 0);
    give(g, i, &found->second);
  }
}

// The instruction at which all of the blocks wait. `message` says that one of them waits at another.
const Instruction& Machine::awaited(std::span<Group> groups, std::string_view message) {
  at_ = groups[0].pc - 1;
  for (const Group& g : groups)
    if (g.pc != groups[0].pc) refuse_wait(g, std::string(message));
  return code_.code[at_];
}

void Machine::synchronize_grid(std::span<Group> groups) {
  const Instruction& i = awaited(groups, "other blocks wait at another synchronisation of the grid");
  if (i.opcode == Opcode::kGridReduce) grid_reduce(groups, i, program_.functions[at_]);
  phase_epoch_ = ++epoch_;
}

}  // namespace fusebox::host
