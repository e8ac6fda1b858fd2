// Memory that one execution may take: 64 bytes for each byte of its input and 1 MiB. Every allocation of the program is
// counted while a bound stands; the one that goes over it aborts, so that its stack is seen.
//
//   MemoryBound bound(size);
//   decode_module(bytes);                 // aborts where more than 64 · size + 1 MiB live at once
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

  // The most that lived at once since the bound was made, beyond what lived then.
  static int64_t peak();
};

}  // namespace fusebox::fuzz
