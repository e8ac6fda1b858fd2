// fuzz_parse: any text is a module or a coded error; what parses and verifies prints to what parses to the same.
#include "ir/parse.h"

#include <cstdlib>

#include "fuzz/target.h"
#include "ir/print.h"
#include "ir/verify.h"

using namespace fusebox;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_coded([&] {
    const Module m = parse_module({reinterpret_cast<const char*>(data), size});
    if (!find_error(m) && !(parse_module(print(m)) == m)) std::abort();
  });
  return 0;
}
