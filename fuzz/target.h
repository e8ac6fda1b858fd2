// What the libFuzzer targets share: bytes judged as a case, and the rule that what is thrown is a coded error that is
// not internal. A target stops by aborting, after it has printed why.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/case.h"
#include "ir/error.h"

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

// A case of these bytes through these oracles; aborts at the first finding, with the program. Bytes of which nothing
// valid is made are passed over.
void judge_bytes(const uint8_t* data, size_t size, const CaseOptions& options, std::string_view oracles,
                 bool scheduled);

}  // namespace fusebox::fuzz
