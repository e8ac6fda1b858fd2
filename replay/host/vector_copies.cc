// Vector copies. If consecutive threads copy one vector each, and the vectors lie one after another in memory or at one
// place of every thread's local buffer, they are checked and moved as one stretch. Any other copy, and a copy that
// breaks a rule, goes lane by lane.
#include <bit>
#include <cstring>

#include "replay/host/launch_observer.h"
#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

std::string width_text(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

// Whether lane l has index[begin] + (l − begin)·width.
bool are_dense(const int64_t* index, int32_t begin, int32_t end, int64_t width) {
  const int64_t base = index[begin] - begin * width;
  for (int32_t l = begin; l < end; ++l)
    if (index[l] - l * width != base) return false;
  return true;
}

// Moves elements of 1, 2, 4, 8 or 16 bytes between vectors, one a lane, and rows of lanes.
template <class U>
void to_rows(std::byte* rows, int64_t lanes, const std::byte* vectors, int64_t width, int32_t count) {
  U* to = reinterpret_cast<U*>(rows);
  const U* from = reinterpret_cast<const U*>(vectors);
  for (int64_t k = 0; k < width; ++k)
    for (int32_t l = 0; l < count; ++l) to[k * lanes + l] = from[l * width + k];
}
template <class U>
void from_rows(const std::byte* rows, int64_t lanes, std::byte* vectors, int64_t width, int32_t count) {
  const U* from = reinterpret_cast<const U*>(rows);
  U* to = reinterpret_cast<U*>(vectors);
  for (int64_t k = 0; k < width; ++k)
    for (int32_t l = 0; l < count; ++l) to[l * width + k] = from[k * lanes + l];
}
struct Wide16 {
  uint64_t parts[2];
};
void to_rows(int64_t bytes, std::byte* rows, int64_t lanes, const std::byte* vectors, int64_t width, int32_t count) {
  static constexpr decltype(&to_rows<Wide16>) kBySize[] = {to_rows<uint8_t>, to_rows<uint16_t>, to_rows<uint32_t>,
                                                           to_rows<uint64_t>, to_rows<Wide16>};
  kBySize[std::countr_zero(static_cast<uint64_t>(bytes))](rows, lanes, vectors, width, count);
}
void from_rows(int64_t bytes, const std::byte* rows, int64_t lanes, std::byte* vectors, int64_t width, int32_t count) {
  static constexpr decltype(&from_rows<Wide16>) kBySize[] = {
      from_rows<uint8_t>, from_rows<uint16_t>, from_rows<uint32_t>, from_rows<uint64_t>, from_rows<Wide16>};
  kBySize[std::countr_zero(static_cast<uint64_t>(bytes))](rows, lanes, vectors, width, count);
}

}  // namespace

// The element at which lane m.begin's vector begins, or −1 if the vectors of these lanes are no legal stretch.
int64_t Machine::dense_place(Group& g, uint32_t buffer, uint32_t reg, const Mask& m, int64_t width) {
  const BufferState& b = g.buffers[buffer];
  const int64_t* index = index_at(g, reg);
  const int64_t bytes = width * b.element_bytes;
  if (b.memory == MemoryType::kLocal) {
    const bool is_good = stride(reg) == 0 && *index >= 0 && *index <= b.elements - width && *index % width == 0 &&
                         code_.buffers[buffer].align >= bytes;
    return is_good ? *index : -1;
  }
  if (stride(reg) == 0 || b.granules != 1 || !are_dense(index, m.begin, m.end, width)) return -1;
  const int64_t first = index[m.begin];
  if (first < 0 || first > b.elements - m.count * width) return -1;
  return reinterpret_cast<uint64_t>(b.data + first * b.element_bytes) % static_cast<uint64_t>(bytes) == 0 ? first : -1;
}

bool Machine::copy_dense(Group& g, const Instruction& i, const Mask& m, const MemoryFunctions& f) {
  const int64_t width = i.immediate, lanes = geometry_.lanes, register_bytes = f.register_bytes;
  if (!m.is_full_range()) return false;
  const int64_t from = dense_place(g, i.from, i.args[1], m, width);
  const int64_t to = from < 0 ? -1 : dense_place(g, i.buffer, i.args[0], m, width);
  if (to < 0) return false;
  const BufferState& source = g.buffers[i.from];
  const BufferState& target = g.buffers[i.buffer];
  const bool from_local = source.memory == MemoryType::kLocal, to_local = target.memory == MemoryType::kLocal;
  const auto count = static_cast<size_t>(m.count);
  bool is_good = true;
  if (from_local) {
    for (int64_t k = 0; k < width; ++k)
      is_good &= std::memchr(source.local_written + (from + k) * lanes + m.begin, 0, count) == nullptr;
    is_good |= !options_.checks.unwritten;
  } else if (source.writers) {
    const Clock& c = clock_of(source);
    is_good = read_consecutive(source.writers + from, source.readers + from, c.now + m.begin, m.count, c,
                               static_cast<int32_t>(width));
  } else if (source.written && options_.checks.unwritten) {
    is_good = std::memchr(source.written + from, 0, count * static_cast<size_t>(width)) == nullptr;
  }
  if (is_good && !to_local) {
    const Clock& c = clock_of(target);
    is_good = write_consecutive(target.writers + to, target.readers + to, c.now + m.begin, m.count, c,
                                static_cast<int32_t>(width));
  }
  if (!is_good) return false;

  scratch_.resize(count * static_cast<size_t>(width * register_bytes));
  if (from_local)
    from_rows(register_bytes, source.data + (from * lanes + m.begin) * register_bytes, lanes, scratch_.data(), width,
              m.count);
  else
    f.load(scratch_.data(), source.data + from * source.element_bytes, m.count * width);
  if (to_local) {
    to_rows(register_bytes, target.data + (to * lanes + m.begin) * register_bytes, lanes, scratch_.data(), width,
            m.count);
    for (int64_t k = 0; k < width; ++k) std::memset(target.local_written + (to + k) * lanes + m.begin, 1, count);
  } else {
    f.store(target.data + to * target.element_bytes, scratch_.data(), m.count * width);
  }
  return true;
}

void Machine::tell_copy(Group& g, const Instruction& i, const Mask& m) {
  const LaunchObserver::At at{g.block_linear, at_};
  for (int32_t l = m.begin; l < m.end; ++l) {
    if (m.bits[l] == 0) continue;
    const int64_t from = index_at(g, i.args[1])[l * stride(i.args[1])];
    const int64_t to = index_at(g, i.args[0])[l * stride(i.args[0])];
    options_.observer->access(at,
                              {.lane = l, .buffer = i.from, .element = from, .width = i.immediate, .is_store = false});
    options_.observer->access(at,
                              {.lane = l, .buffer = i.buffer, .element = to, .width = i.immediate, .is_store = true});
  }
}

void Machine::copy(Group& g, const Instruction& i, const MemoryFunctions& f) {
  const Mask m = predicated(g, i.args[2]);
  if (m.count == 0) return;
  if (options_.observer) tell_copy(g, i, m);
  if (!copy_dense(g, i, m, f))
    for (int32_t l = m.begin; l < m.end; ++l)
      if (m.bits[l] != 0) copy_lane(g, i, l, f);
  if (!options_.banks) return;
  count_banks(g, i.buffer, i.args[0], m, i.immediate, true);
  count_banks(g, i.from, i.args[1], m, i.immediate, false);
}

void Machine::copy_lane(Group& g, const Instruction& i, int32_t lane, const MemoryFunctions& f) {
  const int64_t width = i.immediate, lanes = geometry_.lanes;
  const int64_t register_bytes = f.register_bytes;
  const auto place = [&](uint32_t buffer, uint32_t reg) {
    const BufferState& b = g.buffers[buffer];
    const int64_t e = index_at(g, reg)[lane * stride(reg)];
    const int64_t bytes = width * b.element_bytes;
    if (e < 0 || e > b.elements - width)
      fail(g, ErrorCode::kOutOfBounds, lane,
           "a vector of " + std::to_string(width) + " in a buffer of " + std::to_string(b.elements) + " elements",
           buffer, e);
    const bool is_local = b.memory == MemoryType::kLocal;
    const auto address = is_local ? static_cast<uint64_t>(e * b.element_bytes)
                                  : reinterpret_cast<uint64_t>(b.data + e * b.element_bytes);
    const bool is_placed = !is_local || code_.buffers[buffer].align >= bytes;
    if (address % static_cast<uint64_t>(bytes) != 0 || !is_placed)
      fail(g, ErrorCode::kMisaligned, lane,
           "a vector of " + width_text(bytes) + " does not stand at a multiple of that", buffer, e);
    return e;
  };
  const int64_t from = place(i.from, i.args[1]);
  const int64_t to = place(i.buffer, i.args[0]);
  const BufferState& source = g.buffers[i.from];
  const BufferState& target = g.buffers[i.buffer];
  alignas(16) std::byte elements[16 * 16];  // in register dtype
  if (source.memory == MemoryType::kLocal) {
    for (int64_t k = 0; k < width; ++k) {
      if (source.local_written[(from + k) * lanes + lane] == 0 && options_.checks.unwritten)
        fail(g, ErrorCode::kUnwrittenRead, lane, "a read of an element that nothing wrote", i.from, from + k);
      std::memcpy(elements + k * register_bytes, source.data + ((from + k) * lanes + lane) * register_bytes,
                  static_cast<size_t>(register_bytes));
    }
  } else {
    for (int64_t k = 0; k < width; ++k) read_element(g, i.from, from + k, lane);
    f.load(elements, source.data + from * source.element_bytes, width);
  }
  if (target.memory == MemoryType::kLocal) {
    for (int64_t k = 0; k < width; ++k) {
      target.local_written[(to + k) * lanes + lane] = 1;
      std::memcpy(target.data + ((to + k) * lanes + lane) * register_bytes, elements + k * register_bytes,
                  static_cast<size_t>(register_bytes));
    }
  } else {
    for (int64_t k = 0; k < width; ++k) write_element(g, i.buffer, to + k, lane);
    f.store(target.data + to * target.element_bytes, elements, width);
  }
}

}  // namespace fusebox::host
