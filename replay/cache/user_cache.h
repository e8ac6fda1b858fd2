// The cache of this user, as the environment says: FUSEBOX_CACHE_DIR is its folder, by default fusebox in the user's
// cache folder; FUSEBOX_CACHE_BYTES its size, 0 for no cache; with FUSEBOX_LOG=cache each hit, miss and write is a line on
// standard error.
//
//   if (FusionCache* cache = user_cache(CacheUse::kGpu)) …
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "replay/cache/folder_store.h"
#include "replay/cache/fusion_cache.h"

namespace fusebox {

struct CacheSettings {
  std::string folder;  // empty: there is no home folder either
  int64_t limit_bytes = kCacheBytes;
};
// Throws kUsage if FUSEBOX_CACHE_BYTES is no number.
CacheSettings cache_settings();

// Programs for the host executor take less time to plan than a record takes to write. They use the cache only where
// FUSEBOX_CACHE_DIR names it.
enum class CacheUse : uint8_t { kGpu, kHost };

// The process's cache, or null: it is switched off, or the folder cannot be used, which a line on standard error says
// once. Reads the environment at the first call.
std::shared_ptr<FusionCache> user_cache(CacheUse use);

// A cache in a folder. Throws as FolderStore does.
std::shared_ptr<FusionCache> cache_in(const FolderStoreOptions& options);

}  // namespace fusebox
