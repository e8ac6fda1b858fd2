#include "replay/cache/user_cache.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

#include "ir/table/error.h"
#include "replay/cache/log.h"

namespace fusebox {
namespace {

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::shared_ptr<FusionCache> open_user_cache() {
  try {
    const CacheSettings settings = cache_settings();
    if (settings.folder.empty() || settings.limit_bytes == 0) return nullptr;
    return cache_in({.folder = settings.folder, .limit_bytes = settings.limit_bytes});
  } catch (const Error& e) {
    // A disk that cannot be written is no fault of the run.
    const bool is_worth_a_line = e.code != ErrorCode::kFileWrite || log_of("cache") != nullptr;
    if (is_worth_a_line)
      std::fputs(
          fmt::format("fusebox: {} {}: {}; this run has no cache\n", code_text(e.code), e.place, e.what()).c_str(),
          stderr);
    return nullptr;
  }
}

}  // namespace

CacheSettings cache_settings() {
  CacheSettings settings;
  settings.folder = environment("FUSEBOX_CACHE_DIR");
  if (settings.folder.empty()) {
    const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
    // The base directory specification has relative paths ignored.
    if (cache.starts_with("/"))
      settings.folder = cache + "/fusebox";
    else if (!home.empty())
      settings.folder = home + "/.cache/fusebox";
  }
  if (const std::string bytes = environment("FUSEBOX_CACHE_BYTES"); !bytes.empty()) {
    char* end = nullptr;
    errno = 0;
    settings.limit_bytes = std::strtoll(bytes.c_str(), &end, 10);
    if (*end != '\0' || errno != 0 || settings.limit_bytes < 0)
      throw Error(ErrorCode::kUsage, "FUSEBOX_CACHE_BYTES is a number of bytes, such as 1073741824; 0 means no cache",
                  bytes);
  }
  return settings;
}

std::shared_ptr<FusionCache> cache_in(const FolderStoreOptions& options) {
  FusionCacheOptions cache;
  cache.log = log_of("cache");
  return std::make_shared<FusionCache>(std::make_shared<FolderStore>(options), std::move(cache));
}

std::shared_ptr<FusionCache> user_cache(CacheUse use) {
  // Asked first, because opening a cache makes its folder.
  static const bool is_named = !environment("FUSEBOX_CACHE_DIR").empty();
  if (use == CacheUse::kHost && !is_named) return nullptr;
  static const std::shared_ptr<FusionCache> cache = open_user_cache();
  return cache;
}

}  // namespace fusebox
