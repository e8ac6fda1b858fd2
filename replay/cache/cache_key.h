// The keys of a cache: every fact that a compiled fusion, or the binary of a kernel, depends on. A fact that is missing
// here is a wrong hit, so a member of CompileOptions that cache_key.cc does not know fails to compile.
//
// A compiled fusion depends on the sizes in two ways only (pipeline.h): the steps that resolve symbolic axes, which are
// in the key, and the index width. So its key has no sizes, and whoever finds it asks `serves`. A fusion that needed 64
// bits for its sizes, although it was free to take 32, has these sizes and strides in its key instead, and so has an
// automatic plan; of scalars it has the numbers of those that sizes follow from. The rest of an input's signature (dtype,
// rank, order, contiguity, which axes are broadcast) stands in the fusion. Names are part of the key, because host
// programs, errors and listings carry them.
//
//   const CacheKey key = fusion_key({.fusion = f, .bindings = b, .options = o, .target = "host"}, KeySizes::kAny);
//   record_name(key, ".fusion")   // "1f0c….fusion"
#pragma once

#include <string>

#include "codegen/same_bits.h"
#include "ir/table/defect.h"
#include "passes/pipeline/pipeline.h"
#include "replay/device/kernel_images.h"
#include "serde/cache_record.h"

namespace fusebox {

struct FusionRequest {
  const Graph& fusion;
  const Bindings& bindings;
  const CompileOptions& options;
  std::string target;  // `host`, or `cuda` and an architecture
  int64_t numerics = kNumericsVersion;
};

enum class KeySizes : uint8_t { kAny, kExact };

// Throws as `compile` does if the sizes do not fit.
CacheKey fusion_key(const FusionRequest& request, KeySizes sizes, const Defects& defects = {});
// The parts of the key that do not depend on the sizes: what the plans of one program have in common.
CacheKey program_key(const FusionRequest& request, const Defects& defects = {});
CacheKey image_key(const ImageRequest& request, const Defects& defects = {});

// The name of the key's record in a store.
std::string record_name(const CacheKey& key, std::string_view suffix);
inline constexpr std::string_view kFusionSuffix = ".fusion", kKernelSuffix = ".kernel";

}  // namespace fusebox
