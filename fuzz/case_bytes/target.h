// Turns a libFuzzer input into a case, mutates it, and checks that only coded errors that are not internal are thrown.
// A target prints why and aborts.
//
// An input is the bundle of a case: program, schedule, inputs and lineage, as `fusebox reduce` takes it. Any other
// bytes are choices from which a case is generated, so every input is valid. A mutation is a row of mutation_table.inc.
//
//   std::optional<Case> c = case_of_bytes({data, size}, options);
//   Bytes next = mutate_case_bytes(random, {data, size}, options, max_size);
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "fuzz/bytes/mutate_wire.h"
#include "fuzz/generate/case.h"
#include "ir/table/error.h"

namespace fusebox::fuzz {

template <class F>
void expect_coded(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (row_of(e.code).outcome != Outcome::kInternal) return;
    std::fprintf(stderr, "%s %s: %s\n", code_text(e.code).c_str(), e.place.c_str(), e.what());
    std::abort();
  }
}

// Returns nothing if the bytes are a bundle that holds no case or too large a case. A case from choices may fail to
// compile. Throws coded errors.
std::optional<Case> case_of_bytes(std::span<const uint8_t> bytes, const CaseOptions& options);
Bytes bytes_of_case(const Case& c);

// Mutates the case of these bytes, or generates a new one. Returns random choices if that would take more than
// `max_size`.
Bytes mutate_case_bytes(RandomSource& random, std::span<const uint8_t> bytes, const CaseOptions& options,
                        size_t max_size);
// Combines the first case's fusion and inputs with steps of both schedules.
Bytes cross_case_bytes(RandomSource& random, std::span<const uint8_t> a, std::span<const uint8_t> b,
                       const CaseOptions& options, size_t max_size);

// Judges the case of these bytes by the named oracles and aborts at the first finding, after printing the program.
// Skips bytes that make no valid case.
void judge_bytes(std::span<const uint8_t> bytes, const CaseOptions& options, std::string_view oracles, bool scheduled);

}  // namespace fusebox::fuzz
