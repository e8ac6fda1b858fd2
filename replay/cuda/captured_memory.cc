#include "replay/cuda/captured_memory.h"

#include <utility>

namespace fusebox {

std::unique_ptr<CapturedMemory::Piece> CapturedMemory::take(int64_t bytes,
                                                            const std::function<CudaPointer(int64_t)>& allocate) {
  constexpr int64_t kGranularity = 256;
  bytes = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  auto piece = std::make_unique<Piece>(Piece{shared_from_this(), 0, bytes});
  {
    const std::lock_guard lock(taking_);
    if (const auto it = free_.find(bytes); it != free_.end()) {
      piece->memory = it->second;
      free_.erase(it);
    }
  }
  if (piece->memory == 0) piece->memory = allocate(bytes);
  return piece;
}

void CapturedMemory::give_back(void* piece) {
  const std::unique_ptr<Piece> ended(static_cast<Piece*>(piece));
  const std::lock_guard lock(ended->of->taking_);
  ended->of->free_.emplace(ended->bytes, ended->memory);
}

}  // namespace fusebox
