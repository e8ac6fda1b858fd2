// What the libFuzzer targets share: an input as a case, its mutations, and the rule that what is thrown is a coded
// error that is not internal. A target stops by aborting, after it has printed why.
//
// An input is the bundle of a case (its program, schedule, inputs and lineage: what `fusebox reduce` takes), or else
// the choices that a case is generated from. So any bytes are an input, and a mutation is one of mutation_table.inc.
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

// Nothing where the bytes are a bundle of no case, or of one that is too large; a case of choices may be one that does
// not compile. Throws coded errors.
std::optional<Case> case_of_bytes(std::span<const uint8_t> bytes, const CaseOptions& options);
Bytes bytes_of_case(const Case& c);

// Another case, mutated from the one of these bytes or new; choices where it would take more than `max_size`.
Bytes mutate_case_bytes(RandomSource& random, std::span<const uint8_t> bytes, const CaseOptions& options,
                        size_t max_size);
// The first's fusion and inputs with steps of both schedules.
Bytes cross_case_bytes(RandomSource& random, std::span<const uint8_t> a, std::span<const uint8_t> b,
                       const CaseOptions& options, size_t max_size);

// A case of these bytes through these oracles; aborts at the first finding, with the program. Bytes of which nothing
// valid is made are passed over.
void judge_bytes(std::span<const uint8_t> bytes, const CaseOptions& options, std::string_view oracles, bool scheduled);

}  // namespace fusebox::fuzz
