// Shared by the mutators of the targets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

// libFuzzer's own mutation with its dictionary, or that of the standalone driver.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace fusebox::fuzz {

// Copies a mutator's result to libFuzzer's buffer, cut to the space there. Returns its size, which is never 0.
template <class Container>
size_t put(const Container& made, uint8_t* out, size_t max_size) {
  const size_t size = std::min(made.size(), max_size);
  std::copy_n(made.begin(), size, out);
  if (size == 0) out[0] = 0;
  return std::max<size_t>(size, 1);
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace fusebox::fuzz
