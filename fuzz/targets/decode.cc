// fuzz_decode: any bytes are a module, a bundle, or a coded error; what decodes encodes to what decodes to the same.
#include "serde/decode.h"

#include <cstdlib>

#include "fuzz/target.h"
#include "serde/encode.h"

using namespace fusebox;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  fuzz::expect_coded([&] {
    if (is_bundle(bytes)) {
      const Bundle b = decode_bundle(bytes);
      if (!(decode_bundle(bytes_of(encode(b))) == b)) std::abort();
    } else {
      const Module m = decode_module(bytes);
      if (!(decode_module(bytes_of(encode(m))) == m)) std::abort();
    }
  });
  return 0;
}
