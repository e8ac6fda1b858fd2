#include "replay/cache/fusion_cache.h"

#include "ir/table/error.h"
#include "passes/pipeline/signature.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cache/compiled_record.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox {
namespace {

std::string label(const FusionRequest& request) { return "@" + request.fusion.name + " for " + request.target; }

// Whether a fusion's record serves all sizes for which `serves` says so.
bool has_any_sizes(const Compiled& compiled, const CompileOptions& options) {
  return !compiled.automatic && (options.index_bits != 0 || compiled.index_bits == 32);
}

}  // namespace

FusionCache::FusionCache(std::shared_ptr<RecordStore> store, FusionCacheOptions options)
    : store_(std::move(store)), options_(std::move(options)) {}

FusionCache::Counts FusionCache::counts() const { return {hits_, misses_, kernel_hits_, kernel_misses_, written_}; }

void FusionCache::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

std::optional<CacheRecord> FusionCache::read(const CacheKey& key, std::string_view suffix, std::string& why) {
  const auto bytes = store_->read(record_name(key, suffix));
  if (!bytes) {
    why = "not there";
    return std::nullopt;
  }
  try {
    CacheRecord record = decode_record(bytes_of(*bytes), options_.defects);
    if (record.key == key || options_.defects.has(Defect::kCacheDigestOnly)) return record;
    why = "the record has another key of this digest";
  } catch (const Error& e) {
    why = e.what();
  } catch (const std::bad_alloc&) {
    why = "no memory to read the record";
  }
  return std::nullopt;
}

void FusionCache::write(const CacheRecord& record, std::string_view suffix, const std::string& what) {
  try {
    const std::string name = record_name(record.key, suffix), bytes = encode(record);
    const bool is_kept = store_->write(name, bytes);
    if (is_kept) ++written_;
    log((is_kept ? "keep " : "cannot keep ") + what + ", " + std::to_string(bytes.size()) + " bytes as " + name);
  } catch (const Error& e) {
    log("cannot keep " + what + ": " + e.what());
  }
}

std::optional<FoundFusion> FusionCache::find(const FusionRequest& request) {
  if (!request.options.defects.empty()) return std::nullopt;
  std::string why;
  try {
    for (const KeySizes sizes : {KeySizes::kAny, KeySizes::kExact}) {
      const CacheKey key = fusion_key(request, sizes, options_.defects);
      auto record = read(key, kFusionSuffix, why);
      if (!record || !record->compiled) continue;
      auto compiled = std::make_shared<Compiled>(compiled_of(*record->compiled));
      if (compiled->automatic) {
        // The key has these very sizes, so their classes are those that the plan was made for.
        const Bindings sizes_here = rebind(request.fusion, request.bindings, compiled->concretized);
        compiled->automatic->sizes = SizeClasses(compiled->concretized, sizes_here);
        compiled->automatic->memory = memory_classes(request.fusion, request.options.inputs);
      }
      if (sizes == KeySizes::kAny && !serves(*compiled, request.fusion, request.bindings, request.options) &&
          !options_.defects.has(Defect::kCacheServesAll)) {
        why = "the record does not serve these sizes";
        continue;
      }
      if (const std::string other =
              difference(signature_of(request.fusion, request.options), record->compiled->signature);
          !other.empty()) {
        why = "the record is of another signature: " + other;
        continue;
      }
      ++hits_;
      log("hit " + label(request) + ", " + record_name(key, kFusionSuffix));
      return FoundFusion{std::move(compiled), std::move(record->compiled->launch), std::move(record->compiled->images)};
    }
  } catch (const Error& e) {
    why = e.what();  // the sizes do not fit; `compile` says so
  }
  ++misses_;
  log("miss " + label(request) + ": " + why);
  return std::nullopt;
}

void FusionCache::keep(const FusionRequest& request, const Compiled& compiled, std::span<const KernelImage> images) {
  if (!request.options.defects.empty()) return;
  const bool is_any = has_any_sizes(compiled, request.options);
  // Without the inputs' sizes and strides there is no key that tells when 64 bits are needed.
  if (!is_any && request.options.inputs.empty() && !inputs(request.fusion).empty()) return;
  try {
    const CacheKey key = fusion_key(request, is_any ? KeySizes::kAny : KeySizes::kExact, options_.defects);
    write({.key = key,
           .compiled = compiled_fusion(compiled, images, signature_of(request.fusion, request.options)),
           .image = {}},
          kFusionSuffix, label(request));
  } catch (const Error& e) {
    log("cannot keep " + label(request) + ": " + e.what());
  }
}

std::optional<KernelImage> FusionCache::find(const ImageRequest& request) {
  std::string why;
  auto record = read(image_key(request, options_.defects), kKernelSuffix, why);
  if (record && record->image && fits(*record->image, request, options_.defects)) {
    ++kernel_hits_;
    log("hit a kernel for " + request.architecture);
    return std::move(record->image);
  }
  ++kernel_misses_;
  log("miss a kernel for " + request.architecture + ": " + (why.empty() ? "the binary is another kernel's" : why));
  return std::nullopt;
}

void FusionCache::keep(const ImageRequest& request, const KernelImage& image) {
  const CacheKey key = image_key(request, options_.defects);
  write({.key = key, .compiled = {}, .image = image}, kKernelSuffix, "a kernel for " + request.architecture);
}

PlannedFusion plan_fusion(FusionCache* cache, const FusionRequest& request, const PlanFusionOptions& options) {
  if (cache)
    if (auto found = cache->find(request))
      return {std::move(found->compiled), std::move(found->launch), std::move(found->images), true};
  if (options.only_cached)
    throw Error(ErrorCode::kNotCached,
                "the cache has no program for this fusion, its steps and sizes; run it once without --cache-only, or "
                "import it",
                "@" + request.fusion.name);
  auto compiled = std::make_shared<const Compiled>(compile(request.fusion, request.bindings, request.options));
  std::optional<LaunchRecord> launch = launch_record(*compiled);
  return {std::move(compiled), std::move(launch), {}, false};
}

}  // namespace fusebox
