// Memory for launches that a stream captures into a graph. The graph and what is instantiated from it keep a piece of it
// as long as they live, and no other capture gets the same piece before.
//
//   auto memory = std::make_shared<CapturedMemory>();
//   auto piece = memory->take(bytes, allocate);   // the graph keeps the piece
//
// Nobody may call the driver where a graph ends, so pieces are not freed, but used again. The session frees those that
// no graph has when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "replay/device/cuda_api.h"

namespace fusebox {

class CapturedMemory : public std::enable_shared_from_this<CapturedMemory> {
 public:
  // When it ends, its memory waits for the next one.
  class Piece {
   public:
    Piece(std::shared_ptr<CapturedMemory> of, int64_t bytes) : bytes(bytes), of_(std::move(of)) {}
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    ~Piece() {
      if (memory != 0) of_->give_back(*this);
    }

    CudaPointer memory = 0;
    const int64_t bytes;

   private:
    std::shared_ptr<CapturedMemory> of_;
  };

  // A piece of at least so many bytes, with what an ended graph left in it. `allocate` takes a number of bytes.
  template <class Allocate>
  std::unique_ptr<Piece> take(int64_t bytes, Allocate&& allocate) {
    constexpr int64_t kGranularity = 256;
    bytes = (bytes + kGranularity - 1) / kGranularity * kGranularity;
    auto piece = std::make_unique<Piece>(shared_from_this(), bytes);
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

  // The memory that no piece has. It is the caller's from now on.
  std::vector<CudaPointer> give_up() {
    const std::lock_guard lock(taking_);
    std::vector<CudaPointer> all;
    for (const auto& [bytes, memory] : free_) all.push_back(memory);
    free_.clear();
    return all;
  }

 private:
  void give_back(const Piece& ended) {
    const std::lock_guard lock(taking_);
    free_.emplace(ended.bytes, ended.memory);
  }

  std::mutex taking_;
  std::multimap<int64_t, CudaPointer> free_;  // by size
};

}  // namespace fusebox
