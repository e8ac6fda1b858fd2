#include "replay/device/cuda_arena.h"

#include <algorithm>

#include "ir/table/error.h"

namespace fusebox {

CudaArena::CudaArena(CudaSession& session, int64_t bytes)
    : session_(session), bytes_(bytes), base_(session.allocate(bytes)) {}

CudaArena::~CudaArena() {
  try {
    session_.free(base_);
  } catch (const Error&) {
    // A failed device has lost its memory already.
  }
}

CudaPointer CudaArena::allocate(int64_t bytes) {
  if (bytes > bytes_ - top_ - kMargin - kAlign) return 0;
  const int64_t begin = top_;
  top_ = (begin + bytes + kMargin + kAlign - 1) / kAlign * kAlign;
  if (top_ > patterned_) {
    const int64_t end = std::min(bytes_, top_ + kStride);
    session_.fill(base_ + static_cast<CudaPointer>(patterned_), kUnwrittenByte, end - patterned_);
    patterned_ = end;
  }
  spans_.push_back({begin, bytes});
  return base_ + static_cast<CudaPointer>(begin);
}

void CudaArena::begin() {
  session_.fill(base_, kUnwrittenByte, std::min(top_, patterned_));
  top_ = kMargin;
  spans_.clear();
}

std::string CudaArena::strayed() {
  if (spans_.empty()) return {};
  std::vector<uint8_t> all(static_cast<size_t>(top_));
  session_.copy_to_host(all.data(), base_, top_);
  int64_t at = 0;
  for (size_t i = 0; i <= spans_.size(); ++i) {
    const int64_t stop = i < spans_.size() ? spans_[i].begin : top_;
    for (; at < stop; ++at)
      if (all[static_cast<size_t>(at)] != kUnwrittenByte) return describe(at);
    if (i < spans_.size()) at += spans_[i].bytes;
  }
  return {};
}

std::string CudaArena::describe(int64_t at) const {
  size_t before = 0;
  while (before < spans_.size() && spans_[before].begin < at) ++before;
  if (before == 0)
    return "a byte was written " + std::to_string(spans_[0].begin - at) + " bytes before the first tensor in memory";
  const Span& s = spans_[before - 1];
  return "a byte was written " + std::to_string(at - s.begin - s.bytes) + " bytes behind the end of tensor " +
         std::to_string(before - 1) + " in memory, which has " + std::to_string(s.bytes) + " bytes";
}

}  // namespace fusebox
