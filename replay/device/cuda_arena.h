// Memory for the tensors of one small program after another: one block of a GPU's memory, from whose front tensors are
// handed out, with a margin before and after each.
//
// Invariants: what is handed out, and each margin, holds kUnwrittenByte, whatever programs before did; so a result does
// not depend on them, and a store beside a tensor is found.
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

// A pattern that no result has makes a missing store show.
inline constexpr uint8_t kUnwrittenByte = 0xa5;

class CudaArena {
 public:
  CudaArena(CudaSession& session, int64_t bytes);
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;
  ~CudaArena();

  // 0 where there is no room.
  CudaPointer allocate(int64_t bytes);
  // All that was handed out is given back.
  void begin();
  // Where a margin was written since `begin`; empty: nowhere. Waits for what runs.
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
  int64_t patterned_ = 0;  // what comes behind was never handed out
  CudaPointer base_;
  std::vector<Span> spans_;
};

}  // namespace fusebox
