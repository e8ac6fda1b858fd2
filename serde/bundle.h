// `Bundle` is the content of a `.fuse` file: one run as data, so that it can be repeated, compared and shrunk
// elsewhere.
//
// Invariants (`encode` and `decode` check them): stages ascend, each at most once. Names of digests, and keys of
// options and of an environment, are unique. An input has as many bytes as its shape and dtype say. A failure's code
// is in the error table. Records are as cache_record.h says.
//
//   Bundle b;
//   b.stages.push_back({Stage::kFusion, module});
//   b.digests.push_back({"fusion", digest});
//   b.ranks.emplace_back().inputs.push_back({spec, std::nullopt});
//   decode_bundle(bytes_of(encode(b))) == b;          // encode.h, decode.h
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/module/module.h"
#include "ir/table/error.h"
#include "serde/cache_record.h"

namespace fusebox {

enum class Stage : uint8_t {
#define FUSEBOX_STAGE(name, text) name,
#include "serde/stage_table.inc"
#undef FUSEBOX_STAGE
};
std::span<const std::string_view> stage_texts();
inline std::string_view text(Stage stage) { return stage_texts()[static_cast<size_t>(stage)]; }

struct StageRecord {
  Stage stage = Stage::kFusion;
  Module module;
  bool operator==(const StageRecord&) const = default;
};

// The digest of a stage, or of what a run made otherwise, such as `source` and `outputs`.
struct StageDigest {
  std::string name;
  Digest digest;
  bool operator==(const StageDigest&) const = default;
};

struct KeyValue {
  std::string key;
  std::string value;
  bool operator==(const KeyValue&) const = default;
};

// An input as it was before the run. `bytes` holds the elements in row-major order of the shape, little-endian,
// size_bytes(dtype) each. Without `bytes`, the spec's generator and seed make them. A scalar is in `spec.value`.
struct InputRecord {
  InputSpec spec;
  std::optional<std::vector<uint8_t>> bytes;
  bool operator==(const InputRecord&) const = default;
};

struct OutputRecord {
  std::string name;
  Dtype dtype = Dtype::kFloat;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  Digest digest;                 // of the defined elements
  bool operator==(const OutputRecord&) const = default;
};

struct Failure {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string place;
  bool operator==(const Failure&) const = default;
};

// The layout that a tensor had when it crossed a segment's border.
struct CrossingLayout {
  std::string segment;
  std::string value;
  Dtype dtype = Dtype::kFloat;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  bool operator==(const CrossingLayout&) const = default;
};

struct Rank {
  std::string executor;  // cuda, host, aten
  std::vector<InputRecord> inputs;
  std::vector<OutputRecord> outputs;
  std::optional<Failure> failure;  // why there are no outputs, or not all
  std::vector<CrossingLayout> crossings;
  std::vector<KeyValue> environment;  // gpu, driver, toolkit, compiler, versions
  bool operator==(const Rank&) const = default;
};

// Code of a kernel. It is shown, compared and hashed; it runs only when a person says so.
struct Artifact {
  std::string kernel;
  std::string architecture;  // of the binary, such as sm_90a; empty: text only
  std::string cuda;          // CUDA C++ text, or empty
  std::vector<uint8_t> binary;
  bool operator==(const Artifact&) const = default;
};

struct Bundle {
  std::string program;  // the name of the fusion
  std::vector<StageRecord> stages;
  std::vector<StepList> steps;
  std::vector<KeyValue> options;  // seeded defects too
  std::vector<StageDigest> digests;
  std::vector<Rank> ranks;
  std::vector<Artifact> artifacts;
  std::vector<CacheRecord>
      records;  // compiled fusions and kernels to ship with an application; used only when imported
  bool operator==(const Bundle&) const = default;
};

const Module* find_stage(const Bundle& b, Stage stage);
const Digest* find_digest(const Bundle& b, std::string_view name);
const std::string* find_value(const std::vector<KeyValue>& list, std::string_view key);

}  // namespace fusebox
