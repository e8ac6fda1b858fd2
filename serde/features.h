// Format versions and features. A file names every feature that it uses, so that a reader that is too old can say
// which one it lacks. A file's version is the oldest that has all its features.
//
//   features_of(Module{}) == bit_of(Feature::kModule)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "serde/bundle.h"
#include "serde/place.h"
#include "serde/writer.h"

namespace fusebox {

enum class Feature : uint8_t {
#define FUSEBOX_FEATURE(name, text, bit, since) name,
#include "serde/feature_table.inc"
#undef FUSEBOX_FEATURE
};

struct FeatureRow {
  Feature feature;
  std::string_view text;
  uint8_t bit;
  uint32_t since;
};
std::span<const FeatureRow> feature_rows();
inline const FeatureRow& row_of(Feature feature) { return feature_rows()[static_cast<size_t>(feature)]; }
inline uint64_t bit_of(Feature feature) { return uint64_t{1} << row_of(feature).bit; }

// The newest version that this library reads.
uint32_t format_version();

uint64_t features_of(const Module& m);
uint64_t features_of(const Bundle& b);
uint64_t features_of(const CacheRecord& r);

flatbuffers::Offset<wire::Header> write_header(Writer& w, uint64_t features);
// Returns the features. Throws kNewerVersion for a feature that this library lacks, kInvalidField for a header that
// contradicts itself.
uint64_t check_header(const wire::Header& header, const Place& place);

}  // namespace fusebox
