// Memory for the tensors of one small program after another: one block of a GPU's memory. It hands out tensors from the
// front, with a margin before and after each.
//
// Invariants: a new tensor, and each margin, holds kUnwrittenByte, whatever earlier programs did. So a result does not
// depend on them, and a store beside a tensor is found.
//
//   CudaArena arena(session, 1 << 26);
//   arena.begin();
//   CudaPointer p = arena.allocate(100);      // 256-byte aligned
//   arena.strayed()                           // "", or `a byte was written 3 bytes behind the end of tensor 0 …`
#pragma once

#include <string>
#include <vector>

#include "replay/device/cuda_api.h"

namespace fusebox {

// Results do not have this pattern, so a missing store shows.
inline constexpr uint8_t kUnwrittenByte = 0xa5;

class CudaArena {
 public:
  CudaArena(CudaSession& session, int64_t bytes);
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;
  ~CudaArena();

  // Returns 0 if there is no room.
  CudaPointer allocate(int64_t bytes);
  // Takes back all tensors.
  void begin();
  // Says which margin was written since `begin`; empty: none. Waits for running work.
  std::string strayed();

 private:
  static constexpr int64_t kMargin = 512, kAlign = 256, kStride = int64_t{1} << 18;
  struct Span {
    int64_t begin = 0, bytes = 0;
  };

  std::string describe(int64_t at) const;

  CudaSession& session_;
  int64_t bytes_;
  int64_t top_ = kMargin;
  int64_t patterned_ = 0;  // memory behind it was never handed out
  CudaPointer base_;
  std::vector<Span> spans_;
};

}  // namespace fusebox
