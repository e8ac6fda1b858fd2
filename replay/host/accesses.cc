// Loads, stores and copies. Every element that a thread touches is checked first, then moved. Usually consecutive
// threads touch consecutive elements; these are checked and moved as one stretch. If a stretch breaks a rule, it is
// walked again, lane by lane, to say where.
#include <algorithm>
#include <cstring>

#include "replay/host/bank_conflicts.h"
#include "replay/host/launch_observer.h"
#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

// Whether lane l has index[begin] + l − begin.
bool are_consecutive(const int64_t* __restrict index, int32_t begin, int32_t end) {
  const int64_t base = index[begin] - begin;
  if (index[end - 1] - (end - 1) != base) return false;
  int64_t differences = 0;
  for (int32_t l = begin; l < end; ++l) differences |= (index[l] - l) ^ base;
  return differences == 0;
}

std::string width_text(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

// -- one element
void Machine::read_element(Group& g, uint32_t buffer, int64_t element, int32_t lane) {
  const BufferState& b = g.buffers[buffer];
  if (static_cast<uint64_t>(element) >= static_cast<uint64_t>(b.elements))
    fail(g, ErrorCode::kOutOfBounds, lane, "a read beyond the buffer's " + std::to_string(b.elements) + " elements",
         buffer, element);
  if (!b.writers) {
    if (b.written && b.written[element] == 0 && options_.checks.unwritten)
      fail(g, ErrorCode::kUnwrittenRead, lane, "a read of an element that holds no value", buffer, element);
    return;
  }
  const Clock& c = clock_of(b);
  const int32_t me = c.now + lane;
  for (int64_t k = element * b.granules, end = k + b.granules; k < end; ++k) {
    const int32_t w = b.writers[k];
    if (!may_read(w, me, c))
      fail(g, ErrorCode::kRace, lane, "a read that is not ordered after another thread's store", buffer, element);
    if (!holds_value(w, c))
      fail(g, ErrorCode::kUnwrittenRead, lane, "a read of an element that nothing wrote", buffer, element);
    b.readers[k] = after_read(b.readers[k], me, c);
  }
}

void Machine::write_element(Group& g, uint32_t buffer, int64_t element, int32_t lane) {
  const BufferState& b = g.buffers[buffer];
  if (static_cast<uint64_t>(element) >= static_cast<uint64_t>(b.elements))
    fail(g, ErrorCode::kOutOfBounds, lane, "a store beyond the buffer's " + std::to_string(b.elements) + " elements",
         buffer, element);
  const Clock& c = clock_of(b);
  const int32_t me = c.now + lane;
  for (int64_t k = element * b.granules, end = k + b.granules; k < end; ++k) {
    if (!may_read(b.writers[k], me, c))
      fail(g, ErrorCode::kDoubleStore, lane, "another thread stores it too", buffer, element);
    if (!may_write_after_reads(b.readers[k], me, c))
      fail(g, ErrorCode::kRace, lane, "a store that is not ordered after another thread's read", buffer, element);
    b.writers[k] = me;
  }
}

// Every active lane reads one element.
void Machine::read_by_all(Group& g, uint32_t buffer, int64_t element, const Mask& m) {
  const BufferState& b = g.buffers[buffer];
  const bool is_tracked = b.writers != nullptr && static_cast<uint64_t>(element) < static_cast<uint64_t>(b.elements);
  if (is_tracked && m.count > 1) {
    // A writer of this epoch is another thread than at least one reader; the finding names that reader.
    const Clock& c = clock_of(b);
    for (int64_t k = element * b.granules, end = k + b.granules; k < end; ++k) {
      if (may_read(b.writers[k], c.now + kManyThreads, c)) continue;
      int32_t lane = m.begin;
      while (lane < m.end && (m.bits[lane] == 0 || may_read(b.writers[k], c.now + lane, c))) ++lane;
      fail(g, ErrorCode::kRace, std::min(lane, m.end - 1), "a read that is not ordered after another thread's store",
           buffer, element);
    }
  }
  read_element(g, buffer, element, m.begin);
  if (is_tracked && m.count > 1) {
    const Clock& c = clock_of(b);
    for (int64_t k = element * b.granules, end = k + b.granules; k < end; ++k)
      b.readers[k] = after_read(b.readers[k], c.now + kManyThreads, c);
  }
}

// An index from data has to lie inside its axis, even if the buffer goes on beside it.
void Machine::check_within(Group& g, const Instruction& i) {
  const int64_t* index = index_at(g, i.args[0]);
  const int64_t index_stride = stride(i.args[0]);
  const bool is_argument = i.buffer != kNoBuffer;
  const int64_t* extent = is_argument ? g.buffers[i.buffer].extents + i.immediate : index_at(g, i.args[1]);
  const int64_t extent_stride = is_argument ? 0 : stride(i.args[1]);
  const Mask& m = g.mask();
  const int32_t end = i.uniform ? m.begin + 1 : m.end;
  for (int32_t l = m.begin; l < end; ++l) {
    const int64_t at = index[l * index_stride], below = extent[l * extent_stride];
    if (options_.observer && m.bits[l] != 0)
      options_.observer->within({g.block_linear, at_}, {.lane = l, .index = at, .extent = below});
    if (m.bits[l] == 0 || (at >= (i.from_end ? -below : 0) && at < below)) continue;
    fail(g, ErrorCode::kIndexOutOfRange, l,
         "an index of " + std::to_string(at) + " lies outside an axis of " + std::to_string(below) + " elements",
         i.buffer, at);
  }
}

// -- all active lanes
Machine::Pattern Machine::check_read(Group& g, uint32_t buffer, const int64_t* index, uint8_t stride, const Mask& m) {
  if (stride == 0) {
    read_by_all(g, buffer, *index, m);
    return Pattern::kOne;
  }
  const BufferState& b = g.buffers[buffer];
  const bool is_consecutive = m.is_full_range() && are_consecutive(index, m.begin, m.end);
  const int64_t first = index[m.begin];
  if (is_consecutive && first >= 0 && first <= b.elements - m.count) {
    bool good;
    if (!b.writers)
      good = !b.written || !options_.checks.unwritten ||
             std::memchr(b.written + first, 0, static_cast<size_t>(m.count)) == nullptr;
    else
      good = b.granules == 1 &&
             read_consecutive(b.writers + first, b.readers + first, clock_of(b).now + m.begin, m.count, clock_of(b));
    if (good) return Pattern::kConsecutive;
  }
  for (int32_t l = m.begin; l < m.end; ++l)
    if (m.bits[l] != 0) read_element(g, buffer, index[l], l);
  return is_consecutive ? Pattern::kConsecutive : Pattern::kScattered;
}

Machine::Pattern Machine::check_write(Group& g, uint32_t buffer, const int64_t* index, uint8_t stride, const Mask& m) {
  if (stride == 0) {
    for (int32_t l = m.begin; l < m.end; ++l)
      if (m.bits[l] != 0) write_element(g, buffer, *index, l);
    return Pattern::kOne;
  }
  const BufferState& b = g.buffers[buffer];
  const bool is_consecutive = m.is_full_range() && are_consecutive(index, m.begin, m.end);
  const int64_t first = index[m.begin];
  if (is_consecutive && b.granules == 1 && first >= 0 && first <= b.elements - m.count &&
      write_consecutive(b.writers + first, b.readers + first, clock_of(b).now + m.begin, m.count, clock_of(b)))
    return Pattern::kConsecutive;
  for (int32_t l = m.begin; l < m.end; ++l)
    if (m.bits[l] != 0) write_element(g, buffer, index[l], l);
  return is_consecutive ? Pattern::kConsecutive : Pattern::kScattered;
}

// Counts an access to shared memory that broke no rule.
void Machine::count_banks(Group& g, uint32_t buffer, uint32_t reg, const Mask& m, int64_t width, bool is_store) {
  const BufferState& b = g.buffers[buffer];
  if (b.memory != MemoryType::kShared) return;
  const int64_t* index = index_at(g, reg);
  const uint8_t index_stride = stride(reg);
  addresses_.assign(static_cast<size_t>(geometry_.threads), -1);
  for (int32_t l = m.begin; l < m.end; ++l)
    if (m.bits[l] != 0)
      addresses_[static_cast<size_t>(l)] = b.data - g.shared + index[l * index_stride] * b.element_bytes;
  options_.banks->add(at_, is_store, addresses_, width * b.element_bytes);
}

void Machine::tell_access(Group& g, uint32_t buffer, uint32_t reg, const Mask& m, bool is_store) {
  const int64_t* index = index_at(g, reg);
  const int64_t index_stride = stride(reg);
  for (int32_t l = m.begin; l < m.end; ++l)
    if (m.bits[l] != 0)
      options_.observer->access(
          {g.block_linear, at_},
          {.lane = l, .buffer = buffer, .element = index[l * index_stride], .is_store = is_store});
}

// -- instructions
void Machine::allocate(Group& g, const Instruction& i) {
  BufferState& b = g.buffers[i.buffer];
  const BytecodeBuffer& info = code_.buffers[i.buffer];
  if (b.memory == MemoryType::kLocal) {
    if (options_.observer) options_.observer->allocate({g.block_linear, at_}, b.elements, 0);
    // Inactive threads cannot use a buffer of this scope, so all lanes are reset.
    std::memset(b.local_written, 0, static_cast<size_t>(b.elements) * static_cast<size_t>(geometry_.lanes));
    return;
  }
  const int32_t lane = g.mask().begin;
  const int64_t elements = *index_at(g, i.args[0]);
  const int64_t offset = i.args[1] == kNoRegister ? 0 : *index_at(g, i.args[1]);
  if (options_.observer) options_.observer->allocate({g.block_linear, at_}, elements, offset);
  if (elements < 0 || offset < 0 || elements > geometry_.shared_bytes ||
      offset > geometry_.shared_bytes - elements * b.element_bytes)
    fail(g, ErrorCode::kOutOfBounds, lane,
         "a buffer of " + std::to_string(elements) + " elements at byte " + std::to_string(offset) + " of " +
             std::to_string(geometry_.shared_bytes) + " bytes of shared memory",
         i.buffer, elements);
  if (offset % info.align != 0 || offset % b.element_bytes != 0)
    fail(g, ErrorCode::kMisaligned, lane,
         "shared byte " + std::to_string(offset) + " is not aligned to " + width_text(info.align), i.buffer, 0);
  check_internal(b.element_bytes % static_cast<int32_t>(code_.shared_granule) == 0,
                 "a shared element is no whole number of granules");
  const int64_t granule = offset / code_.shared_granule;
  b.granules = b.element_bytes / static_cast<int32_t>(code_.shared_granule);
  b.data = g.shared + offset;
  b.elements = elements;
  b.writers = g.shared_writers + granule;
  b.readers = g.shared_readers + granule;
  for (int64_t k = 0; k < elements * b.granules; ++k) b.writers[k] |= kFlag;
}

void Machine::load(Group& g, const Instruction& i, const MemoryFunctions& f) {
  const BufferState& b = g.buffers[i.buffer];
  const Mask base = g.mask();
  const Mask m = predicated(g, i.args[1]);
  std::byte* to = at(g, i.dst);
  const int32_t begin = i.uniform ? 0 : base.begin, end = i.uniform ? 1 : base.end;
  const int64_t register_bytes = f.register_bytes;
  const std::byte zero[16] = {};
  if (m.count != 0) {
    if (options_.observer) tell_access(g, i.buffer, i.args[0], m, false);
    if (b.memory == MemoryType::kLocal) {
      load_local(g, i, m, f);
    } else {
      const int64_t* index = index_at(g, i.args[0]);
      const Pattern pattern = check_read(g, i.buffer, index, stride(i.args[0]), m);
      if (options_.banks) count_banks(g, i.buffer, i.args[0], m, 1, false);
      switch (pattern) {
        case Pattern::kOne: {
          alignas(16) std::byte one[16];
          f.load(one, b.data + *index * b.element_bytes, 1);
          f.fill(i.uniform ? to : to + m.begin * register_bytes, one, i.uniform ? 1 : m.end - m.begin);
          break;
        }
        case Pattern::kConsecutive:
          f.load(to + m.begin * register_bytes, b.data + index[m.begin] * b.element_bytes, m.count);
          break;
        case Pattern::kScattered:
          f.gather(to, b.data, index, m.bits, m.begin, m.end);
          break;
      }
    }
    if (m.count == base.count) {
      if (i.check_index) check_index(g, i, 0);
      return;
    }
  }
  // A lane whose predicate is false gets the other value, or zero.
  const std::byte* other = i.args[2] == kNoRegister ? zero : at(g, i.args[2]);
  const uint8_t other_stride = i.args[2] == kNoRegister ? 0 : stride(i.args[2]);
  if (m.count == 0) {
    for (int32_t l = begin; l < end; ++l)
      std::memcpy(to + l * register_bytes, other + l * other_stride * register_bytes,
                  static_cast<size_t>(register_bytes));
  } else {
    f.merge(to, other, other_stride, m.bits, base.begin, base.end);
  }
  if (i.check_index) check_index(g, i, 0);
}

void Machine::store(Group& g, const Instruction& i, const MemoryFunctions& f) {
  const Mask m = predicated(g, i.args[2]);
  if (m.count == 0) return;
  if (options_.observer) tell_access(g, i.buffer, i.args[0], m, true);
  const BufferState& b = g.buffers[i.buffer];
  if (b.memory == MemoryType::kLocal) return store_local(g, i, m, f);
  const int64_t* index = index_at(g, i.args[0]);
  const std::byte* value = at(g, i.args[1]);
  const uint8_t value_stride = stride(i.args[1]);
  const uint8_t index_stride = stride(i.args[0]);
  const Pattern pattern = check_write(g, i.buffer, index, index_stride, m);
  if (options_.banks) count_banks(g, i.buffer, i.args[0], m, 1, true);
  if (pattern == Pattern::kConsecutive && value_stride != 0)
    f.store(b.data + index[m.begin] * b.element_bytes, value + m.begin * f.register_bytes, m.count);
  else
    f.scatter(b.data, index, index_stride, value, value_stride, m.bits, m.begin, m.end);
}

// -- local memory: a row of lanes for each element, in register dtype
void Machine::load_local(Group& g, const Instruction& i, const Mask& m, const MemoryFunctions& f) {
  const BufferState& b = g.buffers[i.buffer];
  const int64_t* index = index_at(g, i.args[0]);
  const uint8_t index_stride = stride(i.args[0]);
  const int64_t lanes = geometry_.lanes, bytes = f.register_bytes;
  std::byte* to = at(g, i.dst);
  const auto check = [&](int64_t e, int32_t l) {
    if (static_cast<uint64_t>(e) >= static_cast<uint64_t>(b.elements))
      fail(g, ErrorCode::kOutOfBounds, l, "a read beyond the buffer's " + std::to_string(b.elements) + " elements",
           i.buffer, e);
    if (b.local_written[e * lanes + l] == 0 && options_.checks.unwritten)
      fail(g, ErrorCode::kUnwrittenRead, l, "a read of an element that nothing wrote", i.buffer, e);
  };
  if (index_stride == 0 && m.is_full_range()) {
    const int64_t e = *index;
    check(e, m.begin);
    if (std::memchr(b.local_written + e * lanes + m.begin, 0, static_cast<size_t>(m.count)))
      for (int32_t l = m.begin; l < m.end; ++l) check(e, l);
    std::memcpy(to + m.begin * bytes, b.data + (e * lanes + m.begin) * bytes, static_cast<size_t>(m.count * bytes));
    return;
  }
  for (int32_t l = m.begin; l < m.end; ++l) {
    if (m.bits[l] == 0) continue;
    const int64_t e = index[l * index_stride];
    check(e, l);
    std::memcpy(to + l * bytes, b.data + (e * lanes + l) * bytes, static_cast<size_t>(bytes));
  }
}

void Machine::store_local(Group& g, const Instruction& i, const Mask& m, const MemoryFunctions& f) {
  const BufferState& b = g.buffers[i.buffer];
  const int64_t* index = index_at(g, i.args[0]);
  const uint8_t index_stride = stride(i.args[0]), value_stride = stride(i.args[1]);
  const int64_t lanes = geometry_.lanes, bytes = f.register_bytes;
  const std::byte* value = at(g, i.args[1]);
  const auto check = [&](int64_t e, int32_t l) {
    if (static_cast<uint64_t>(e) >= static_cast<uint64_t>(b.elements))
      fail(g, ErrorCode::kOutOfBounds, l, "a store beyond the buffer's " + std::to_string(b.elements) + " elements",
           i.buffer, e);
  };
  if (index_stride == 0 && m.is_full_range()) {
    const int64_t e = *index;
    check(e, m.begin);
    std::memset(b.local_written + e * lanes + m.begin, 1, static_cast<size_t>(m.count));
    std::byte* row = b.data + (e * lanes + m.begin) * bytes;
    if (value_stride != 0)
      std::memcpy(row, value + m.begin * bytes, static_cast<size_t>(m.count * bytes));
    else
      f.fill(row, value, m.count);
    return;
  }
  for (int32_t l = m.begin; l < m.end; ++l) {
    if (m.bits[l] == 0) continue;
    const int64_t e = index[l * index_stride];
    check(e, l);
    b.local_written[e * lanes + l] = 1;
    std::memcpy(b.data + (e * lanes + l) * bytes, value + l * value_stride * bytes, static_cast<size_t>(bytes));
  }
}

}  // namespace fusebox::host
