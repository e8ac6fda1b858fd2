#include "serde/features.h"

#include <algorithm>

#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "serde/reader.h"

namespace fusebox {
namespace {

constexpr FeatureRow kRows[] = {
#define FUSEBOX_FEATURE(name, text, bit, since) {Feature::name, text, bit, since},
#include "serde/feature_table.inc"
#undef FUSEBOX_FEATURE
};

const FeatureRow* row_of_bit(uint64_t bit) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const FeatureRow& r) { return r.bit == bit; });
  return row == std::end(kRows) ? nullptr : row;
}

uint32_t version_for(uint64_t features) {
  uint32_t version = 1;
  for (const FeatureRow& row : kRows)
    if (features >> row.bit & 1) version = std::max(version, row.since);
  return version;
}

bool is_of_facts(const Op& op) {
  return op.kind == OpKind::kAssume || op.kind == OpKind::kLaunchBound || op.kind == OpKind::kPreparedDiv ||
         op.kind == OpKind::kPrepareDiv || op.attrs.has(AttrKey::kAssumed);
}

// A function or a triangle of complex numbers. The graph may be one that no reader accepts.
bool is_of_complex(const Graph& g, const Op& op) {
  const auto is_complex_value = [&](ValueId v) {
    return v && v.index < g.values.size() && static_cast<size_t>(g[v].dtype) < dtype_rows().size() &&
           is_complex(g[v].dtype);
  };
  if (static_cast<size_t>(op.kind) >= op_rows().size() || op.operands.empty() || !is_complex_value(op.operands[0]))
    return false;
  return op.kind == OpKind::kTriu || (is_library(op.kind, g[op.operands[0]].dtype) && !demands(op.kind, kLibrary));
}

// Whether an op that needs this feature stands in a graph.
bool is_of(Feature feature, const Graph& g, const Op& op) {
  switch (feature) {
    case Feature::kModule:
    case Feature::kRecord:
    case Feature::kExactInputs:
    case Feature::kArtifacts:
    case Feature::kRecords:
    case Feature::kLaunchRecords:
      return false;
    case Feature::kIndexChecks:
      return op.kind == OpKind::kWithin;
    case Feature::kFacts:
      return is_of_facts(op);
    case Feature::kPrecision:
      return op.attrs.has(AttrKey::kFast);
    case Feature::kArrivals:
      return op.kind == OpKind::kGridReduce;
    case Feature::kRandom:
      return is_random(op.kind) || op.kind == OpKind::kPhilox;
    case Feature::kLibraryOps:
      return demands(op.kind, kLibrary);
    case Feature::kAtenResults:
      return op.kind == OpKind::kRunAten && !op.results.empty();
    case Feature::kClusters:
      return op.kind == OpKind::kCluster;
    case Feature::kLanes:
      return op.kind == OpKind::kWarpReduce;
    case Feature::kDependentLaunches:
      return op.kind == OpKind::kDependentLaunch;
    case Feature::kComplexFunctions:
      return op.kind == OpKind::kScatterAdd || op.kind == OpKind::kScaledMm || is_of_complex(g, op);
  }
  return false;
}

bool is_of(Feature feature, const Step& s) {
  if (feature == Feature::kFacts) return s.kind == StepKind::kAssume || s.kind == StepKind::kBoundLaunch;
  if (feature == Feature::kClusters) return s.kind == StepKind::kCluster;
  if (feature == Feature::kDependentLaunches) return s.kind == StepKind::kDependentLaunch;
  return feature == Feature::kPrecision && s.kind == StepKind::kPrecision;
}

bool have(const std::vector<Step>& steps, Feature feature) {
  return std::ranges::any_of(steps, [&](const Step& s) { return is_of(feature, s); });
}

bool uses(const Module& m, Feature feature) {
  if (feature == Feature::kModule) return true;
  const auto in_graph = [&](const Graph& g) {
    return std::ranges::any_of(g.ops, [&](const Op& op) { return is_of(feature, g, op); });
  };
  return std::ranges::any_of(m.graphs, in_graph) ||
         std::ranges::any_of(m.step_lists, [&](const StepList& l) { return have(l.steps, feature); }) ||
         std::ranges::any_of(m.segmentations, [&](const Segmentation& s) {
           return std::ranges::any_of(s.segments, [&](const Segment& part) { return have(part.steps, feature); });
         });
}

bool needs_launch(const KernelImage& image) {
  return image.is_cooperative || image.opts_in_shared || image.is_dependent;
}
bool has_launch(const CacheRecord& r) {
  if (r.image) return needs_launch(*r.image);
  if (!r.compiled) return false;
  return r.compiled->launch || r.compiled->signature != InputSignature() ||
         std::ranges::any_of(r.compiled->images, needs_launch);
}

bool uses(const CacheRecord& r, Feature feature) {
  if (feature == Feature::kLaunchRecords) return has_launch(r);
  if (feature == Feature::kModule || feature == Feature::kRecords) return true;
  if (feature == Feature::kDependentLaunches && r.image && r.image->is_dependent) return true;
  return r.compiled && (uses(r.compiled->program, feature) || uses(r.compiled->scheduled, feature) ||
                        uses(r.compiled->code, feature));
}

bool uses(const Bundle& b, Feature feature) {
  switch (feature) {
    case Feature::kModule:
    case Feature::kRecord:
      return true;
    case Feature::kRecords:
      return !b.records.empty();
    case Feature::kExactInputs:
      return std::any_of(b.ranks.begin(), b.ranks.end(), [](const Rank& rank) {
        return std::any_of(rank.inputs.begin(), rank.inputs.end(),
                           [](const InputRecord& i) { return i.bytes.has_value(); });
      });
    case Feature::kArtifacts:
      return !b.artifacts.empty();
    case Feature::kIndexChecks:
    case Feature::kFacts:
    case Feature::kPrecision:
    case Feature::kArrivals:
    case Feature::kRandom:
    case Feature::kLibraryOps:
    case Feature::kAtenResults:
    case Feature::kLaunchRecords:
    case Feature::kComplexFunctions:
    case Feature::kClusters:
    case Feature::kDependentLaunches:
    case Feature::kLanes:
      return std::ranges::any_of(b.steps, [&](const StepList& l) { return have(l.steps, feature); }) ||
             std::ranges::any_of(b.stages, [&](const StageRecord& s) { return uses(s.module, feature); }) ||
             std::ranges::any_of(b.records, [&](const CacheRecord& r) { return uses(r, feature); });
  }
  return false;
}

template <class T>
uint64_t used_by(const T& value) {
  uint64_t features = 0;
  for (const FeatureRow& row : kRows)
    if (uses(value, row.feature)) features |= bit_of(row.feature);
  return features;
}

[[noreturn]] void newer(const std::string& what, const Place& place) {
  throw Error(ErrorCode::kNewerVersion,
              "the file needs " + what + "; this version reads format " + std::to_string(format_version()) +
                  ", so read the file with a newer one",
              place.text());
}

// A name from the file, cut short and without control characters.
std::string quoted(std::string_view name) {
  constexpr size_t kLongest = 64;
  std::string text(name.substr(0, kLongest));
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return "'" + text + "'";
}

}  // namespace

std::span<const FeatureRow> feature_rows() { return kRows; }

uint32_t format_version() {
  return std::max_element(std::begin(kRows), std::end(kRows),
                          [](const auto& a, const auto& b) { return a.since < b.since; })
      ->since;
}

uint64_t features_of(const Module& m) { return used_by(m); }
uint64_t features_of(const Bundle& b) { return used_by(b); }
uint64_t features_of(const CacheRecord& r) { return used_by(r); }

flatbuffers::Offset<wire::Header> write_header(Writer& w, uint64_t features) {
  std::vector<flatbuffers::Offset<wire::Feature>> names;
  for (uint8_t bit = 0; bit < 64; ++bit)
    if (features >> bit & 1) {
      const FeatureRow& row = *row_of_bit(bit);
      const auto name = w.b.CreateString(row.text.data(), row.text.size());
      names.push_back(wire::CreateFeature(w.b, bit, row.since, name));
    }
  const auto list = w.b.CreateVector(names);
  return wire::CreateHeader(w.b, version_for(features), features, list);
}

uint64_t check_header(const wire::Header& header, const Place& place) {
  const uint32_t version = Reader::present(header.version(), Place(place, "version"));
  const Place names(place, "names");
  uint64_t named = 0;
  const uint32_t count = header.names() ? header.names()->size() : 0;
  Reader::at_most(count, 64, names);
  for (uint32_t i = 0; i < count; ++i) {
    const wire::Feature& feature = *header.names()->Get(i);
    const Place at(names, i);
    const uint8_t bit = Reader::present(feature.bit(), Place(at, "bit"));
    if (bit >= 64 || named >> bit != 0) invalid_field(Place(at, "bit"), "bits have to ascend, below 64");
    named |= uint64_t{1} << bit;
    const FeatureRow* row = row_of_bit(bit);
    if (!row)
      newer("feature " + quoted(feature.name()->string_view()) + " of format " + std::to_string(feature.since()),
            Place(place, "features"));
    if (row->text != feature.name()->string_view()) invalid_field(Place(at, "name"), "the feature has another name");
    if (row->since != feature.since()) invalid_field(Place(at, "since"), "the feature is of another version");
  }
  for (uint64_t bit = 0; bit < 64; ++bit)
    if (header.features() >> bit & ~(named >> bit) & 1 && !row_of_bit(bit))
      newer("feature " + std::to_string(bit), Place(place, "features"));
  if (named != header.features()) invalid_field(Place(place, "features"), "the bits and the names differ");
  if (version > format_version()) newer("format " + std::to_string(version), Place(place, "version"));
  if (version != version_for(header.features()))
    invalid_field(Place(place, "version"), "the features are of another version");
  return header.features();
}

}  // namespace fusebox
