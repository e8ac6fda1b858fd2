// Collectives. A reduction combines along one axis after another, the innermost first: element k with element k +
// ⌈n/2⌉, until one is left. Only the launch's dimensions decide the order. The error grows with the logarithm of the
// size.
#include <algorithm>
#include <cstring>

#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

constexpr bool is_reduced(const Instruction& i, ParallelType first, size_t axis) {
  return (i.threads >> (static_cast<size_t>(first) + axis) & 1) != 0;
}

}  // namespace

std::array<Machine::Axis, 3> Machine::block_axes(const Instruction& i) const {
  std::array<Axis, 3> axes;
  for (size_t a = 0; a < 3; ++a) axes[a] = {geometry_.block[a], is_reduced(i, ParallelType::kBlockX, a)};
  return axes;
}

// Reduces in place. The results are at the places where every reduced coordinate is 0. `axes` has the innermost first;
// `values` are contiguous, in register dtype.
void Machine::reduce(const Group& g, const Instruction& i, const LaneProgram::Functions& f,
                     std::span<std::byte* const> values, std::span<const Axis> axes) {
  int64_t total = 1;
  for (const Axis& a : axes) total *= a.extent;
  std::array<int64_t, 3> bytes{};
  for (size_t v = 0; v < values.size(); ++v)
    bytes[v] = size_bytes(register_dtype(info(code_.lists[i.results.begin + v]).dtype));
  const Dtype compute = compute_dtype(i.dtype);
  const bool is_welford = i.reduce == ReduceOp::kWelford;
  // An integer count of a set is combined as an integer.
  std::array<LaneFunction, 3> widen{}, narrow{};
  if (is_welford)
    for (size_t v = 0; v < 3; ++v) {
      const Dtype d = info(code_.lists[i.results.begin + v]).dtype;
      const Dtype combined = v == 2 ? i.to : compute;
      if (register_dtype(d) != combined) widen[v] = find_conversion(d, combined);
      if (register_dtype(d) != combined || is_reduced_float(d)) narrow[v] = find_conversion(combined, d);
    }
  const int64_t row = 16 * ((total + 1) / 2 + 1);
  scratch_.resize(static_cast<size_t>(row) * 12);
  const auto scratch = [&](size_t k) { return scratch_.data() + static_cast<size_t>(row) * k; };

  int64_t inner = 1;
  for (const Axis& axis : axes) {
    for (int64_t n = axis.is_reduced ? axis.extent : 1; n > 1;) {
      const int64_t half = (n + 1) / 2;
      const auto count = static_cast<int32_t>((n - half) * inner);
      for (int64_t outer = 0; outer < total; outer += axis.extent * inner) {
        if (!is_welford) {
          LaneCall c;
          c.to = scratch(0);
          c.from[0] = values[0] + outer * bytes[0];
          c.from[1] = values[0] + (outer + half * inner) * bytes[0];
          c.stride[0] = c.stride[1] = 1;
          c.end = count;
          f.lane(c);
          if (c.bad != 0) fail(g, ErrorCode::kIndexOverflow, 0, "a reduction leaves the index type");
          if (f.round) {
            c.from[0] = c.to;
            f.round(c);
          }
          std::memcpy(values[0] + outer * bytes[0], scratch(0), static_cast<size_t>(count * bytes[0]));
          continue;
        }
        WelfordCall w;
        w.end = count;
        for (size_t side = 0; side < 2; ++side)
          for (size_t v = 0; v < 3; ++v) {
            const size_t k = side * 3 + v;
            w.from[k] = values[v] + (outer + static_cast<int64_t>(side) * half * inner) * bytes[v];
            w.stride[k] = 1;
            if (!widen[v]) continue;
            LaneCall c;
            c.to = scratch(3 + k);
            c.from[0] = w.from[k];
            c.end = count;
            widen[v](c);
            w.from[k] = c.to;
          }
        for (size_t v = 0; v < 3; ++v) w.to[v] = scratch(v);
        f.welford(w);
        for (size_t v = 0; v < 3; ++v) {
          std::byte* to = values[v] + outer * bytes[v];
          if (narrow[v]) {
            LaneCall c;
            c.to = to;
            c.from[0] = scratch(v);
            c.end = count;
            narrow[v](c);
          } else {
            std::memcpy(to, scratch(v), static_cast<size_t>(count * bytes[v]));
          }
        }
      }
      n = half;
    }
    inner *= axis.extent;
  }
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

// Copies results from the places whose reduced coordinates are 0 to the threads that get a result. This block's
// elements begin at `first` of `from`. Other threads get all bits set, so that a program that uses an unspecified value
// shows it.
void Machine::distribute(Group& g, const Instruction& i, uint32_t value, const std::byte* from,
                         std::span<const Axis> axes, int64_t first) {
  const uint32_t r = code_.lists[i.results.begin + value];
  const int64_t bytes = size_bytes(register_dtype(info(r).dtype));
  std::byte* to = at(g, r);
  const int unspecified = is_boolean(info(r).dtype) ? 1 : 0xff;
  for (int32_t l = 0; l < geometry_.threads; ++l) {
    int64_t rest = first + l, source = 0, inner = 1;
    bool is_origin = true;
    for (const Axis& a : axes) {
      const int64_t coordinate = rest % a.extent;
      rest /= a.extent;
      if (a.is_reduced)
        is_origin &= coordinate == 0;
      else
        source += coordinate * inner;
      inner *= a.extent;
    }
    if (i.all || is_origin)
      std::memcpy(to + l * bytes, from + source * bytes, static_cast<size_t>(bytes));
    else
      std::memset(to + l * bytes, unspecified, static_cast<size_t>(bytes));
  }
}

// Collectives keep their values elsewhere. A workspace is checked for its size, and its contents are lost.
void Machine::use_workspaces(Group& g, const Instruction& i, int64_t first, int64_t needed) {
  for (uint32_t k = 0; k < i.workspaces.count; ++k) {
    const uint32_t buffer = code_.lists[i.workspaces.begin + k];
    const BufferState& b = g.buffers[buffer];
    if (b.memory == MemoryType::kLocal || b.elements < needed)
      fail(g, ErrorCode::kOutOfBounds, 0,
           "a workspace of fewer than " + std::to_string(needed) + " shared or global elements", buffer, b.elements);
    const Clock& c = clock_of(b);
    for (int32_t l = 0; l < geometry_.threads; ++l)
      for (int32_t s = 0; s < b.granules; ++s) {
        const int64_t at = (first + l) * b.granules + s;
        if (!may_read(b.writers[at], c.now + l, c) || !may_write_after_reads(b.readers[at], c.now + l, c))
          fail(g, ErrorCode::kRace, l, "a workspace that another block uses in the same phase", buffer, first + l);
        b.writers[at] = (c.now + l) | kFlag;
      }
  }
}

void Machine::check_counters(Group& g, const Instruction& i) {
  if (i.from == kNoBuffer) return;
  const BufferState& b = g.buffers[i.from];
  {
    const int64_t slot = i.immediate;
    if (slot < 0 || slot >= b.elements)
      fail(g, ErrorCode::kOutOfBounds, 0, "a counter slot beyond " + std::to_string(b.elements) + " elements", i.from,
           slot);
    const std::byte* counter = b.data + slot * b.element_bytes;
    const bool is_written =
        b.writers ? holds_value(b.writers[slot * b.granules], clock_of(b)) : !b.written || b.written[slot] != 0;
    const bool is_zero = std::all_of(counter, counter + b.element_bytes, [](std::byte x) { return x == std::byte{0}; });
    if (!is_written || !is_zero)
      fail(g, ErrorCode::kUnwrittenRead, 0, "a counter that was not set to zero", i.from, slot);
  }
}

void Machine::block_reduce(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  advance(g);
  use_workspaces(g, i, 0, geometry_.threads);
  const auto size = static_cast<size_t>(geometry_.lanes) * 16;
  g.staged.resize(size * i.values.count);
  std::array<std::byte*, 3> values{};
  for (uint32_t k = 0; k < i.values.count; ++k) {
    values[k] = g.staged.data() + size * k;
    participate(g, i, k, values[k]);
  }
  const auto axes = block_axes(i);
  reduce(g, i, f, std::span(values.data(), i.values.count), axes);
  for (uint32_t k = 0; k < i.values.count; ++k) distribute(g, i, k, values[k], axes, 0);
  advance(g);
}

void Machine::block_broadcast(Group& g, const Instruction& i) {
  advance(g);
  use_workspaces(g, i, 0, geometry_.threads);
  g.staged.resize(static_cast<size_t>(geometry_.lanes) * 16);
  Instruction to_all = i;
  to_all.all = true;
  for (uint32_t k = 0; k < i.values.count; ++k) {
    participate(g, to_all, k, g.staged.data());
    distribute(g, to_all, k, g.staged.data(), block_axes(i), 0);
  }
  advance(g);
}

// -- the whole grid
void Machine::stage(Group& g, const Instruction& i) {
  advance(g);
  use_workspaces(g, i, g.block_linear * geometry_.threads, geometry_.blocks * geometry_.threads);
  const auto size = static_cast<size_t>(geometry_.lanes) * 16;
  g.staged.resize(size * i.values.count);
  for (uint32_t k = 0; k < i.values.count; ++k) participate(g, i, k, g.staged.data() + size * k);
}

void Machine::grid_reduce(std::span<Group> groups, const Instruction& i, const LaneProgram::Functions& f) {
  std::array<Axis, 6> axes;
  const auto inner = block_axes(i);
  for (size_t a = 0; a < 3; ++a) {
    axes[a] = inner[a];
    axes[a + 3] = {geometry_.grid[a], is_reduced(i, ParallelType::kGridX, a)};
  }
  const auto size = static_cast<size_t>(geometry_.lanes) * 16;
  std::vector<std::vector<std::byte>> gathered(i.values.count);
  std::array<std::byte*, 3> values{};
  for (uint32_t k = 0; k < i.values.count; ++k) {
    const uint32_t r = code_.lists[i.results.begin + k];
    const size_t row = static_cast<size_t>(geometry_.threads * size_bytes(register_dtype(info(r).dtype)));
    gathered[k].resize(row * groups.size());
    for (size_t b = 0; b < groups.size(); ++b)
      std::memcpy(gathered[k].data() + row * b, groups[b].staged.data() + size * k, row);
    values[k] = gathered[k].data();
  }
  reduce(groups[0], i, f, std::span(values.data(), i.values.count), axes);
  for (Group& g : groups)
    for (uint32_t k = 0; k < i.values.count; ++k)
      distribute(g, i, k, values[k], axes, g.block_linear * geometry_.threads);
}

void Machine::synchronize_grid(std::span<Group> groups) {
  at_ = groups[0].pc - 1;
  for (const Group& g : groups)
    if (g.pc != groups[0].pc) {
      at_ = g.pc - 1;
      fail(g, ErrorCode::kDivergentBarrier, 0, "other blocks wait at another synchronisation of the grid");
    }
  const Instruction& i = code_.code[at_];
  if (i.opcode == Opcode::kGridReduce) grid_reduce(groups, i, program_.functions[at_]);
  phase_epoch_ = ++epoch_;
}

}  // namespace fusebox::host
