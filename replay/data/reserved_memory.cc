#include "replay/data/reserved_memory.h"

#include <algorithm>
#include <string>
#include <sys/mman.h>

#include "ir/table/error.h"

namespace fusebox {

std::shared_ptr<std::byte> reserve_zeroed(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  // Mapped as shared, with nobody: a limit of data (RLIMIT_DATA) counts private pages, touched or not.
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::kOutOfMemory,
                "there is no room for a tensor that spans " + std::to_string(bytes) + " bytes; use smaller strides");
  return {static_cast<std::byte*>(memory), [size](std::byte* at) { ::munmap(at, size); }};
}

}  // namespace fusebox
