// Memory for launches that a stream captures into a graph. The graph and what is instantiated from it keep a piece of it
// as long as they live, and no other capture gets the same piece before.
//
//   auto memory = std::make_shared<CapturedMemory>();
//   auto piece = memory->take(bytes, allocate);
//   cuUserObjectCreate(&object, piece.release(), CapturedMemory::give_back, …)   // and the graph retains the object
//
// A driver lets nobody call it where a graph ends, so pieces are not freed, but used again.
#pragma once

#include <cstdint>
#include <functional>
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

  // A piece of at least so many bytes, as the graph in front left it. `allocate` takes a number of bytes.
  std::unique_ptr<Piece> take(int64_t bytes, const std::function<CudaPointer(int64_t)>& allocate);
  // Ends a piece, given by its address.
  static void give_back(void* piece);

 private:
  std::mutex taking_;
  std::multimap<int64_t, CudaPointer> free_;  // by size
};

}  // namespace fusebox
