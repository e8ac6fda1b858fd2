// Memory for launches that a stream captures into a graph. The graph and what is instantiated from it keep a piece of it
// as long as they live, and no other capture gets the same piece before.
//
//   auto memory = std::make_shared<CapturedMemory>();
//   auto piece = memory->take(bytes, allocate);
//   cuUserObjectCreate(&object, piece.release(), CapturedMemory::give_back, …)   // and the graph retains the object
//
// Nobody may call the driver where a graph ends, so pieces are not freed, but used again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "replay/device/cuda_api.h"

namespace fusebox {

class CapturedMemory : public std::enable_shared_from_this<CapturedMemory> {
 public:
  struct Piece {
    std::shared_ptr<CapturedMemory> of;
    CudaPointer memory = 0;
    int64_t bytes = 0;
  };

  // A piece of at least so many bytes, with what an ended graph left in it. `allocate` takes a number of bytes.
  template <class Allocate>
  std::unique_ptr<Piece> take(int64_t bytes, Allocate&& allocate) {
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

  // Ends a piece, given by its address.
  static void give_back(void* piece) {
    const std::unique_ptr<Piece> ended(static_cast<Piece*>(piece));
    const std::lock_guard lock(ended->of->taking_);
    ended->of->free_.emplace(ended->bytes, ended->memory);
  }

 private:
  std::mutex taking_;
  std::multimap<int64_t, CudaPointer> free_;  // by size
};

}  // namespace fusebox
