// fuzz_decode: any bytes are a module, a bundle, a record or a coded error. A decoded value survives encoding and decoding.
#include "serde/decode.h"

#include <algorithm>
#include <cstdlib>

#include "fuzz/bytes/mutate_wire.h"
#include "fuzz/case_bytes/target.h"
#include "fuzz/targets/shared/memory_bound.h"
#include "fuzz/targets/shared/mutator.h"
#include "serde/encode.h"
#include "serde/record_file.h"

namespace {

using namespace fusebox;

// Only reading counts against the bound.
Bundle bounded_bundle(std::span<const uint8_t> bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  return decode_bundle(bytes);
}
CacheRecord bounded_record(std::span<const uint8_t> bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  return decode_record(bytes);
}
Module bounded_module(std::span<const uint8_t> bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  return decode_module(bytes);
}

}  // namespace

// A NaN does not equal itself, so if values differ, compare their bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  fuzz::expect_coded([&] {
    if (is_bundle(bytes)) {
      const Bundle b = bounded_bundle(bytes);
      const std::string again = encode(b);
      const Bundle back = bounded_bundle(bytes_of(again));
      if (!(back == b) && encode(back) != again) std::abort();
    } else if (is_record(bytes)) {
      // A checksum that fits comes by chance never, so the fuzzer's payload gets one.
      const auto payload = bytes.subspan(std::min<size_t>(bytes.size(), 32));
      const std::string file = record_file({reinterpret_cast<const char*>(payload.data()), payload.size()});
      const CacheRecord r = bounded_record(bytes_of(file));
      const std::string again = encode(r);
      if (!(bounded_record(bytes_of(again)) == r) && encode(r) != again) std::abort();
    } else {
      const Module m = bounded_module(bytes);
      const std::string again = encode(m);
      const Module back = bounded_module(bytes_of(again));
      if (!(back == m) && encode(back) != again) std::abort();
    }
  });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  if (size < 8 || random.one_in(4)) return LLVMFuzzerMutate(data, size, max_size);
  return fuzz::put(fuzz::mutate_wire(random, {data, size}), data, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  return fuzz::put(fuzz::cross_wire(random, {a, a_size}, {b, b_size}), out, max_size);
}
