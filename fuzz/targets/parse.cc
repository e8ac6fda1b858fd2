// fuzz_parse: any text is a module or a coded error. A parsed module that verifies survives printing and parsing.
#include "ir/text/parse.h"

#include <cstdlib>

#include "fuzz/bytes/mutate_text.h"
#include "fuzz/case_bytes/target.h"
#include "fuzz/targets/shared/memory_bound.h"
#include "fuzz/targets/shared/mutator.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace {

using namespace fusebox;

// Only reading counts against the bound.
Module bounded(std::string_view text) {
  const fuzz::MemoryBound bound(text.size());
  return parse_module(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_coded([&] {
    const Module m = bounded(fuzz::text_of(data, size));
    if (find_error(m)) return;
    const std::string again = print(m);
    const Module back = bounded(again);
    // A NaN does not equal itself, so if values differ, compare their texts.
    if (!(back == m) && print(back) != again) std::abort();
  });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  if (random.one_in(4)) return LLVMFuzzerMutate(data, size, max_size);
  return fuzz::put(fuzz::mutate_text(random, fuzz::text_of(data, size)), data, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  return fuzz::put(fuzz::cross_text(random, fuzz::text_of(a, a_size), fuzz::text_of(b, b_size)), out, max_size);
}
