// Large memory of which few pages are used. It is reserved as a whole, and a page takes memory when it is touched.
//
//   std::shared_ptr<std::byte> memory = reserve_zeroed(int64_t{1} << 33);   // costs nothing yet
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fusebox {

// Zeroed memory at a multiple of the page size. A limit of the process' data does not count it. Throws kOutOfMemory.
std::shared_ptr<std::byte> reserve_zeroed(int64_t bytes);

}  // namespace fusebox
