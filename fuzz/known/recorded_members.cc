// The file tests of members: those of a module with one byte changed, and bundles and records with one member changed.
#include <algorithm>
#include <fmt/format.h>

#include "fuzz/field_laws/changes.h"
#include "fuzz/known/file_kinds.h"
#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "passes/pipeline/signature.h"
#include "replay/cache/compiled_record.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/features.h"

namespace fusebox::fuzz {
namespace {

// Most changes of one member: those of a graph's are spread over the graphs.
constexpr size_t kMostChanges = 5;

std::string sum_of(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.text();
}

KernelImage image_of(const Graph& kernel) {
  return {.kernel = digest(kernel),
          .source = {1, 2},
          .entry = "fusebox_kernel",
          .architecture = "sm_90a",
          .options = "-O3 -G",
          .compiler = "nvrtc 13.0",
          .numerics = 3,
          .registers = 40,
          .local_bytes = 16,
          .shared_bytes = 48,
          .binary = {1, 2, 3}};
}

// The program as a cache keeps it.
CacheRecord record_of(const Module& m) {
  const Graph& g = main_graph(m);
  const Compiled c = compiled_for_host(m, {});
  const CompileOptions options{.inputs = bound_inputs(host_arguments(m, g)), .digest_plans = true};
  const std::vector<KernelImage> images = {image_of(c.kernels.at(0))};
  return {.key = {key_part("a", "1"), key_part("b", "")},
          .compiled = compiled_fusion(c, images, signature_of(g, options)),
          .image = {}};
}

// A bundle in which every part has something.
Bundle whole_bundle(const Module& m) {
  Bundle b;
  b.program = main_graph(m).name;
  b.stages = {{static_cast<Stage>(0), m}, {static_cast<Stage>(1), m}};
  b.steps = m.step_lists;
  b.options = {{"defect", "none"}, {"planner", "steps"}};
  b.digests = {{"fusion", {1, 2}}, {"source.k0", {3, 4}}};
  Rank& rank = b.ranks.emplace_back();
  rank.executor = "cuda";
  InputRecord& input = rank.inputs.emplace_back();
  input.spec = host_specs(m, main_graph(m)).specs.at(0);
  input.spec.shape = {2, 3};
  input.spec.strides = {};
  input.bytes = std::vector<uint8_t>(static_cast<size_t>(6 * size_bytes(input.spec.dtype)), 7);
  rank.outputs.push_back({"y", Dtype::kFloat, {2, 3}, {3, 1}, {5, 6}});
  rank.failure = Failure{ErrorCode::kRace, "two threads", "%y"};
  rank.crossings.push_back({"s0", "t", Dtype::kHalf, {2, 3}, {3, 1}});
  rank.environment = {{"gpu", "none"}, {"compiler", "none"}};
  b.artifacts.push_back({"k0", "sm_90a", "text", {1, 2, 3}});
  b.records.push_back(record_of(m));
  b.records.push_back({.key = {key_part("image", "1")}, .compiled = {}, .image = b.records[0].compiled->images[0]});
  return b;
}

std::string feature_names(uint64_t features) {
  std::string out;
  for (const FeatureRow& row : feature_rows())
    if (features & bit_of(row.feature)) out += (out.empty() ? "" : " ") + std::string(row.text);
  return out;
}

}  // namespace

std::string recorded_byte_changes(const Module& m) {
  const std::string bytes = encode(m);
  OutcomeList all;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto was = static_cast<uint8_t>(bytes[i]);
    for (const int wanted : {was + 1, was - 1, 0, 0xff}) {
      if (static_cast<uint8_t>(wanted) == was) continue;
      std::string changed = bytes;
      changed[i] = static_cast<char>(wanted);
      all.add(fmt::format("byte {} is {}", i, static_cast<uint8_t>(wanted)),
              [&] { return sum_of(encode(decode_module(bytes_of(changed)))); });
    }
  }
  for (size_t i = 0; i < bytes.size(); i += 4)
    all.add(fmt::format("{} bytes", i), [&] { return sum_of(encode(decode_module(bytes_of(bytes.substr(0, i))))); });
  return fmt::format("{} bytes: {}\n", bytes.size(), feature_names(features_of(m))) + all.text();
}

std::string recorded_bundle_changes(const Module& m) {
  const Bundle whole = whole_bundle(m);
  // What writing says, and what reading says of the bytes, be they written or not.
  OutcomeList written, read;
  const ChangeNames names = names_of(main_graph(m));
  const ChangeCounts counts = count_changes(whole, names);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    const size_t step = std::max<size_t>(1, counts[kind] / kMostChanges);
    for (size_t i = 0; i < counts[kind]; i += step) {
      Bundle changed = whole;
      const std::string what = text(make_change(changed, kind, i, names));
      std::string bytes;
      if (!written.add(what, [&] { return sum_of(bytes = encode(changed)); })) bytes = encode_unchecked(changed);
      read.add(what, [&] { return decode_bundle(bytes_of(bytes)) == changed ? "the same" : "another"; });
    }
  }
  std::string out =
      fmt::format("features: {}\nwritten\n{}read\n{}", feature_names(features_of(whole)), written.text(), read.text());
  // What a file of one record says that its reader must know.
  const auto tell = [&](std::string_view what, auto change) {
    CacheRecord r = whole.records[0];
    r.compiled->images.clear();
    change(r);
    out += fmt::format("{}: {}\n", what, outcome_text([&] {
                         const std::string bytes = encode(r);
                         return fmt::format("{} bytes, {}, {}{}", bytes.size(), sum_of(bytes),
                                            feature_names(features_of(r)),
                                            decode_record(bytes_of(bytes)) == r ? "" : ", comes back as another");
                       }));
  };
  const KernelImage image = whole.records[1].image.value();
  const auto alone = [&](CacheRecord& r, const KernelImage& of) { r.compiled.reset(), r.image = of; };
  tell("a record", [](CacheRecord&) {});
  tell("without launch", [](CacheRecord& r) { r.compiled->launch.reset(); });
  tell("without signature", [](CacheRecord& r) { r.compiled->signature = {}; });
  tell("without launch and signature", [](CacheRecord& r) { r.compiled->launch.reset(), r.compiled->signature = {}; });
  for (bool KernelImage::* flag :
       {&KernelImage::is_cooperative, &KernelImage::opts_in_shared, &KernelImage::is_dependent}) {
    KernelImage flagged = image;
    flagged.*flag = true;
    tell("with an image that needs more", [&](CacheRecord& r) {
      r.compiled->launch.reset(), r.compiled->signature = {}, r.compiled->images = {flagged};
    });
    tell("an image that needs more", [&](CacheRecord& r) { alone(r, flagged); });
  }
  tell("an image", [&](CacheRecord& r) { alone(r, image); });
  tell("neither", [](CacheRecord& r) { r.compiled.reset(); });
  tell("both", [&](CacheRecord& r) { r.image = image; });
  return out;
}

}  // namespace fusebox::fuzz
