// An input signature is what a plan may depend on in the arguments of a call: dtypes, ranks, which strides are 0 or 1, the
// classes of sizes, strides and addresses, and facts. Two calls with one signature can share a plan; a memory cache is keyed by
// signatures (replay/cache/plan_memory.h).
//
// Invariants: a signature says nothing that is not true of the arguments. A class that no plan of the program depends on is
// kAny.
//
//   InputSignature s = signature_of(fusion, inputs, options);   // passes/pipeline/signature.h
//   text(s)             // "%x f32 [up to 40 by 8 stride by 64, up to 128 by 64 stride 1] aligned to 16\n"
//   difference(a, b)    // "%x.1: up to 160, was up to 128"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/table/dtype.h"

namespace fusebox {

inline constexpr int64_t kAny = -1;

struct SignatureAxis {
  int64_t most = kAny;            // the extent is at most this
  int64_t divisor = kAny;         // the largest power of two, up to 64, that divides the extent
  int64_t stride = kAny;          // 0 or 1; kAny also for every other stride
  int64_t stride_divisor = kAny;  // the largest power of two, up to 64, that divides the stride
  bool operator==(const SignatureAxis&) const = default;
};

struct SignatureInput {
  std::string name;
  Dtype dtype = Dtype::kFloat;
  bool is_scalar = false;
  int64_t most = kAny, divisor = kAny;  // of a scalar that is an integer
  int64_t align = kAny;                 // of a tensor's address, in bytes: a power of two, up to 16
  std::vector<SignatureAxis> axes;
  bool operator==(const SignatureInput&) const = default;
};

// A fact that a plan was made under: what symbolic axes became, the width of indices.
struct SignatureFact {
  std::string name;
  std::string value;
  bool operator==(const SignatureFact&) const = default;
};

struct InputSignature {
  std::vector<SignatureInput> inputs;  // in the order of the program
  std::vector<SignatureFact> facts;    // with different names
  bool operator==(const InputSignature&) const = default;
};

// One line for each input and fact. Not parsed.
std::string text(const InputSignature& signature);

// The first member in which a signature differs from an earlier one, in words; empty if they are equal.
std::string difference(const InputSignature& now, const InputSignature& before);

}  // namespace fusebox
