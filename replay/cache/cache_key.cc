#include "replay/cache/cache_key.h"

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/module/device_numbers.h"
#include "passes/schedule/size_classes.h"
#include "replay/cache/build_digest.h"
#include "serde/encode.h"

namespace fusebox {
namespace {

// Live ops in canonical order, with their names.
std::string fusion_bytes(const Graph& fusion, const Defects& defects) {
  Module m;
  m.graphs.push_back(canonical_order(fusion));
  if (defects.has(Defect::kCacheKeyConstants))
    for (Value& v : m.graphs[0].values)
      if (v.constant) v.constant = ConstantBits{};
  return encode_unchecked(m);
}

std::string segmentation_bytes(const Segmentation& s) {
  Module m;
  m.segmentations.push_back(s);
  return encode_unchecked(m);
}

// For each value of the fusion, whether it is a scalar on which a plan may depend: a size, or an integer that given steps
// may name. Any other scalar is data, such as a learning rate, and its plan serves every number.
std::vector<bool> planned_scalars(const Graph& fusion, const CompileOptions& options) {
  std::vector<bool> planned = shaping_scalars(fusion);
  if (is_automatic(fusion, options)) return planned;
  for (const ValueId v : inputs(fusion))
    if (is_integer(fusion[v].dtype)) planned[v.index] = true;
  return planned;
}

std::string exact_sizes(const Graph& fusion, const CompileOptions& options) {
  const std::vector<bool> planned = planned_scalars(fusion, options);
  const std::vector<ValueId> names = inputs(fusion);
  std::string all;
  const auto add = [&](const std::vector<int64_t>& numbers) {
    all += "[";
    for (int64_t n : numbers) all += std::to_string(n) + ",";
    all += "]";
  };
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    const BoundInput& input = options.inputs[i];
    all += input.is_scalar ? "s" : "t";
    if (input.is_scalar && (i >= names.size() || planned[names[i].index]))
      all += std::to_string(input.bits.low) + "," + std::to_string(input.bits.high);
    add(input.shape);
    add(input.strides);
    all += "/" + std::to_string(input.align) + ";";
  }
  return all;
}

std::string device_bytes(const DeviceProperties& d) {
  std::string all = d.name + " " + d.architecture;
  for (const auto number : kDeviceNumbers) all += " " + std::to_string(d.*number);
  return all;
}

}  // namespace

CacheKey program_key(const FusionRequest& request, const Defects& defects) {
  // A new member of CompileOptions fails to compile here. Add it below if a program depends on it; if it makes the plan
  // depend on sizes, such programs need KeySizes::kExact in fusion_cache.cc.
  // `known`, `others` and `digest_plans` change no program. The inputs' sizes are `fusion_key`'s.
  const auto& [steps, device, segmentation, index_bits, sizes, heuristics, others, broken, digest_plans, infer, known] =
      request.options;
  CacheKey key;
  key.push_back(key_part("build", build_digest()));
  if (!defects.has(Defect::kCacheKeyNumerics)) key.push_back(key_part("numerics", std::to_string(request.numerics)));
  if (!defects.has(Defect::kCacheKeyTarget)) key.push_back(key_part("target", request.target));
  key.push_back(key_part("program", request.fusion.name));
  key.push_back(key_part("fusion", fusion_bytes(request.fusion, defects)));
  if (steps && !defects.has(Defect::kCacheKeySteps)) key.push_back(key_part("steps", canonical_bytes(*steps)));
  if (device) key.push_back(key_part("device", device_bytes(*device)));
  for (const auto& [segment, given] : heuristics)
    key.push_back(key_part("heuristics of " + segment, text(given.chosen) + "; " + text(given.taken)));
  if (segmentation) key.push_back(key_part("segmentation", segmentation_bytes(*segmentation)));
  if (!defects.has(Defect::kCacheKeyWidth)) key.push_back(key_part("index_bits", std::to_string(index_bits)));
  // Inferred layouts are kept with the program, and `serves` infers them again.
  key.push_back(key_part("infer", infer ? "1" : "0"));
  if (!broken.empty()) key.push_back(key_part("defects", join(broken)));
  return key;
}

CacheKey fusion_key(const FusionRequest& request, KeySizes sizes, const Defects& defects) {
  CacheKey key = program_key(request, defects);
  key.push_back(
      key_part("concretize", canonical_bytes(plan_concretization(request.fusion, request.bindings, request.options))));
  if (sizes == KeySizes::kExact) key.push_back(key_part("sizes", exact_sizes(request.fusion, request.options)));
  return key;
}

CacheKey image_key(const ImageRequest& request, const Defects& defects) {
  CacheKey key;
  key.push_back(key_part("build", build_digest()));
  key.push_back(key_part("numerics", std::to_string(request.numerics)));
  key.push_back(key_part("architecture", request.architecture));
  if (!defects.has(Defect::kCacheKeyOptions)) key.push_back(key_part("options", request.options));
  key.push_back(key_part("compiler", request.compiler));
  key.push_back(key_part("entry", request.entry));
  key.push_back(key_part("text", request.text));
  return key;
}

std::string record_name(const CacheKey& key, std::string_view suffix) {
  return text(digest_bytes(key_bytes(key))).append(suffix);
}

}  // namespace fusebox
