// Ranges of host time for NVIDIA's profilers (NVTX), on request: FUSEBOX_NVTX=1 puts one around every call and launch.
//
// The library is loaded at first use: libnvtx3interop or libnvToolsExt, or the file that FUSEBOX_NVTX names. If it is
// not there, a note on standard error says so once, and nothing else changes.
//
//   const NvtxRange range("softmax");   // until the end of the scope
#pragma once

namespace fusebox {

class NvtxRange {
 public:
  // Does nothing without FUSEBOX_NVTX, and for an empty name.
  explicit NvtxRange(const char* name);
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange();

 private:
  const bool is_open_;
};

}  // namespace fusebox
