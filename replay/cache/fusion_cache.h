// The cache of compiled fusions, and below it of kernels' binaries. A fusion that is found is neither segmented nor
// scheduled nor lowered, and its kernels are not compiled.
//
// Invariants: a hit has the very bytes of the wanted key. A record that is torn, damaged, foreign or of another version
// is a miss. No call throws because of a record or a disk. Calls may come from any thread.
//
//   FusionCache cache(store);
//   if (auto found = cache.find(request)) run(*found->compiled); else cache.keep(request, compile(…), {});
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/cache/cache_key.h"
#include "replay/cache/record_store.h"

namespace fusebox {

struct FusionCacheOptions {
  std::function<void(const std::string&)> log = {};  // one line for each thing that happens
  Defects defects = {};                              // seeded, in keys and in reading
};

struct FoundFusion {
  std::shared_ptr<const Compiled> compiled;
  std::optional<LaunchRecord> launch;
  std::vector<KernelImage> images;
};

class FusionCache : public KernelImages {
 public:
  explicit FusionCache(std::shared_ptr<RecordStore> store, FusionCacheOptions options = {});

  // Never finds a program with seeded defects, because these may read the sizes.
  std::optional<FoundFusion> find(const FusionRequest& request);
  // The options must be those that `compiled` was made with.
  void keep(const FusionRequest& request, const Compiled& compiled, std::span<const KernelImage> images);

  std::optional<KernelImage> find(const ImageRequest& request) override;
  void keep(const ImageRequest& request, const KernelImage& image) override;

  struct Counts {
    int64_t hits = 0, misses = 0;  // of fusions
    int64_t kernel_hits = 0, kernel_misses = 0;
    int64_t written = 0;  // records
  };
  Counts counts() const;
  RecordStore& store() { return *store_; }

 private:
  std::optional<CacheRecord> read(const CacheKey& key, std::string_view suffix, std::string& why);
  void write(const CacheRecord& record, std::string_view suffix, const std::string& what);
  void log(const std::string& line) const;

  std::shared_ptr<RecordStore> store_;
  FusionCacheOptions options_;
  std::atomic<int64_t> hits_ = 0, misses_ = 0, kernel_hits_ = 0, kernel_misses_ = 0, written_ = 0;
};

// A program, from the cache if it is there, else compiled.
struct PlannedFusion {
  std::shared_ptr<const Compiled> compiled;
  std::optional<LaunchRecord> launch = {};  // of the host program; none if it does not fit into a record
  std::vector<KernelImage> images;
  bool is_from_cache = false;
};
struct PlanFusionOptions {
  bool only_cached = false;  // throws kNotCached instead of compiling
};
// With no cache, compiles.
PlannedFusion plan_fusion(FusionCache* cache, const FusionRequest& request, const PlanFusionOptions& options = {});

}  // namespace fusebox
