#include "ir/canonical/digest.h"

#include <xxhash.h>

namespace fusebox {

Digest digest_bytes(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.low64, hash.high64};
}

std::string text(const Digest& d) {
  std::string result;
  for (uint64_t half : {d.high, d.low})
    for (int shift = 60; shift >= 0; shift -= 4) result += "0123456789abcdef"[(half >> shift) & 15];
  return result;
}

std::optional<Digest> parse_digest(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  uint64_t halves[2] = {0, 0};
  for (size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
    if (!digit && !letter) return std::nullopt;
    halves[i / 16] = halves[i / 16] << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return Digest{halves[1], halves[0]};
}

}  // namespace fusebox
