#include "serde/cache_record.h"

#include <algorithm>

#include "serde/encode.h"

namespace fusebox {

std::string key_bytes(const CacheKey& key) {
  // Lengths come first, so that no two keys give the same bytes.
  std::string all;
  const auto add = [&](const auto& bytes) {
    all += std::to_string(bytes.size()) + ":";
    all.append(bytes.begin(), bytes.end());
  };
  for (const KeyPart& part : key) {
    add(part.name);
    add(part.bytes);
  }
  return all;
}

std::string_view part_of(const CacheKey& key, std::string_view name) {
  const auto it = std::ranges::find(key, name, &KeyPart::name);
  if (it == key.end()) return {};
  return {reinterpret_cast<const char*>(it->bytes.data()), it->bytes.size()};
}

KeyPart key_part(std::string_view name, std::string_view bytes) {
  return {std::string(name), std::vector<uint8_t>(bytes.begin(), bytes.end())};
}

Digest digest(const CompiledFusion& compiled) {
  return digest_bytes(encode({.key = {}, .compiled = compiled, .image = {}}));
}

Digest digest(const KernelImage& image) { return digest_bytes(encode({.key = {}, .compiled = {}, .image = image})); }

}  // namespace fusebox
