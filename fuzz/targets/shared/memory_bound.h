// Limits the memory of one execution to 64 bytes for each byte of its input plus 1 MiB. While a bound exists, every
// allocation counts. The allocation that exceeds it aborts, so that its stack is visible.
//
//   MemoryBound bound(size);
//   decode_module(bytes);                 // aborts if more than 64 · size + 1 MiB live at once
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusebox::fuzz {

class MemoryBound {
 public:
  explicit MemoryBound(size_t input_bytes);
  ~MemoryBound();
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

  // The most that lived at once since the bound was made, not counting what lived before.
  static int64_t peak();
};

}  // namespace fusebox::fuzz
