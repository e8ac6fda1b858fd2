// Compiled fusions as values: what a cache keeps, and what an application ships with.
//
// Invariants (`encode` and `decode` check them): a record holds a compiled fusion or the image of one kernel, not both.
// The names of a key's parts are unique. The graphs of a compiled fusion go by segment, as those of `Compiled`
// (passes/pipeline/pipeline.h) do: as many scheduled graphs as segments; the host program first in `code`, then a kernel
// and a launch for each segment that is a kernel. The launch record numbers its kernels by segment.
//
//   CacheRecord r{.key = {{"fusion", …}, {"steps", …}}, .compiled = compiled_fusion};
//   decode_record(bytes_of(encode(r))) == r          // encode.h, decode.h
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/module/input_signature.h"
#include "ir/module/launch_record.h"
#include "ir/module/module.h"

namespace fusebox {

// The binary of one kernel, with everything that it depends on and everything that an executor must know to launch it.
struct KernelImage {
  Digest kernel;             // of the kernel program
  Digest source;             // of the CUDA text
  std::string entry;         // the function's name in the binary
  std::string architecture;  // such as sm_90a
  std::string options;       // compile options, with a blank between two
  std::string compiler;      // such as nvrtc 13.0
  int64_t numerics = 0;      // the version of the numerics (codegen/same_bits.h)
  int64_t registers = 0;     // of a thread
  int64_t local_bytes = 0;   // of a thread's stack and spills
  int64_t shared_bytes = 0;  // static
  std::vector<uint8_t> binary;
  bool is_cooperative = false;  // blocks wait for one another, so a launch needs all of them on the GPU at once
  bool opts_in_shared =
      false;  // launches give it shared memory, which may be more than the driver allows without being asked
  bool is_dependent = false;  // it waits for the launches in front, so its own may begin before they have ended
  bool operator==(const KernelImage&) const = default;
};

// A program that is ready to run. See `Compiled` for the parts.
struct CompiledFusion {
  Module
      program;  // the concretized fusion, the steps that concretized it, those of the automatic plan if it is one, and its segmentation
  Module scheduled;  // by segment
  Module code;       // the host program, the kernels, their launches
  std::vector<Digest> plans;
  int index_bits = 64;
  std::vector<KernelImage> images;     // none on an executor that interprets
  InputSignature signature;            // of the inputs that it was made for
  std::optional<LaunchRecord> launch;  // the host program as code; none if it does not fit into a record
  bool operator==(const CompiledFusion&) const = default;
};

// One fact that a cached value depends on.
struct KeyPart {
  std::string name;
  std::vector<uint8_t> bytes;
  bool operator==(const KeyPart&) const = default;
};
using CacheKey = std::vector<KeyPart>;

struct CacheRecord {
  CacheKey key;
  std::optional<CompiledFusion> compiled;
  std::optional<KernelImage> image;
  bool operator==(const CacheRecord&) const = default;
};

// The key as one sequence of bytes: equal exactly if the keys are.
std::string key_bytes(const CacheKey& key);
// A part's bytes as text; empty if the key has no such part.
std::string_view part_of(const CacheKey& key, std::string_view name);
KeyPart key_part(std::string_view name, std::string_view bytes);

// Digests of all members, of the encoded bytes.
Digest digest(const CompiledFusion& compiled);
Digest digest(const KernelImage& image);

}  // namespace fusebox
