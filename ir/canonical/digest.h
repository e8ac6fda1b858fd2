// 128-bit digests of bytes. A digest names a state of a program. A cache that finds a digest still compares the bytes.
//
// Invariants: a digest is the XXH3-128 of the bytes, the same on every machine. Its text is 32 lower-case hex digits,
// the high half first.
//
//   text(digest_bytes("")) == "99aa06d3014798d86001c324468d497f"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusebox {

struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const Digest&) const = default;
};

Digest digest_bytes(const void* data, size_t size);
inline Digest digest_bytes(std::string_view bytes) { return digest_bytes(bytes.data(), bytes.size()); }
std::string text(const Digest& d);
std::optional<Digest> parse_digest(std::string_view text);

}  // namespace fusebox
