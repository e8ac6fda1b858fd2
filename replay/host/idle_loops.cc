#include "replay/host/idle_loops.h"

#include <algorithm>

#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

// Whether the instruction computes scalars or decides which lanes go on, and no more.
bool is_scalar(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMath:
    case Opcode::kConvert:
    case Opcode::kThreadIndex:
    case Opcode::kThreadCount:
    case Opcode::kPreparedDiv:
    case Opcode::kPhilox:
    case Opcode::kWelford:
    case Opcode::kIf:
    case Opcode::kElse:
    case Opcode::kEndIf:
    case Opcode::kJump:
    case Opcode::kFor:
    case Opcode::kEndFor:
      return true;
    case Opcode::kAllocate:
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kCopy:
    case Opcode::kBarrier:
    case Opcode::kGridBarrier:
    case Opcode::kBlockReduce:
    case Opcode::kGridReduce:
    case Opcode::kBlockBroadcast:
    case Opcode::kWarpReduce:
    case Opcode::kClusterArrive:
    case Opcode::kClusterWait:
    case Opcode::kClusterReduce:
    case Opcode::kWithin:
    case Opcode::kEnd:
      return false;
  }
  return false;
}

}  // namespace

IdleLoops::IdleLoops(const Bytecode& code) {
  find_writes(code);
  find_loops(code);
  const auto is_empty = [](uint32_t, uint32_t) { return true; };
  for (const Loop& loop : loops_) may_idle_[loop.end] = !loop.inner.empty() && is_idle(loop, loop, is_empty);
}

void IdleLoops::find_writes(const Bytecode& code) {
  last_write_.assign(code.registers.size(), -1);
  for (size_t k = 0; k < code.code.size(); ++k) {
    const Instruction& i = code.code[k];
    if (i.dst != kNoRegister) last_write_[i.dst] = static_cast<int64_t>(k);
    for (uint32_t r = 0; r < i.results.count; ++r)
      last_write_[code.lists[i.results.begin + r]] = static_cast<int64_t>(k);
  }
}

void IdleLoops::find_loops(const Bytecode& code) {
  of_end_.assign(code.code.size(), 0);
  may_idle_.assign(code.code.size(), 0);
  std::vector<uint32_t> open;
  for (uint32_t k = 0; k < code.code.size(); ++k) {
    const Instruction& i = code.code[k];
    if (i.opcode == Opcode::kFor) {
      open.push_back(static_cast<uint32_t>(loops_.size()));
      loops_.push_back({.begin = k, .start = i.args[0], .stop = i.args[1]});
    } else if (i.opcode == Opcode::kEndFor) {
      const uint32_t ended = open.back();
      open.pop_back();
      loops_[ended].end = k;
      of_end_[k] = ended;
      if (!open.empty() && (loops_[ended].acts || !loops_[ended].inner.empty()))
        loops_[open.back()].inner.push_back(ended);
    } else if (!open.empty()) {
      loops_[open.back()].acts |= !is_scalar(i.opcode);
    }
  }
}

void Machine::skip_idle(Group& g, const Instruction& i) {
  const Mask& m = g.mask();
  const auto each_lane = [&](auto&& holds) {
    if (m.count == 0) return true;
    for (int32_t l = m.begin; l < m.end; ++l)
      if (m.bits[l] != 0 && !holds(l)) return false;
    return true;
  };
  const bool is_idle = program_.idle.is_idle(at_, [&](uint32_t start, uint32_t stop) {
    const int64_t *from = index_at(g, start), *to = index_at(g, stop);
    if (stride(start) == 0 && stride(stop) == 0) return *from >= *to;
    return each_lane([&](int32_t l) { return from[l * stride(start)] >= to[l * stride(stop)]; });
  });
  if (!is_idle) return;
  auto* index = reinterpret_cast<int64_t*>(at(g, i.dst));
  const int64_t *stop = index_at(g, i.args[1]), *by = index_at(g, i.args[2]);
  const auto skip = [&](int32_t l) {
    const int64_t step = by[l * stride(i.args[2])];
    const uint64_t left = distance(index[l], stop[l * stride(i.args[1])]) / static_cast<uint64_t>(step);
    if (left > kManyIdle) index[l] += static_cast<int64_t>(left - 1) * step;
    return true;
  };
  if (i.uniform)
    skip(0);
  else
    each_lane(skip);
}

}  // namespace fusebox::host
