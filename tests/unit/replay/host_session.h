// A GPU session in host memory, for tests without a GPU.
#pragma once

#include <cstring>

#include "replay/device/cuda_api.h"

namespace fusebox::testing {

// Allocates, copies and fills, but runs nothing.
class HostSession : public CudaSession {
 public:
  const CudaDevice& device() const override { return device_; }
  CudaPointer allocate(int64_t bytes) override {
    memory_.assign(static_cast<size_t>(bytes) + 256, 0x11);
    return (address(memory_.data()) + 255) / 256 * 256;
  }
  void free(CudaPointer) override { is_freed = true; }
  void copy_to_device(CudaPointer to, const void* from, int64_t bytes, CudaStream) override {
    std::memcpy(pointer(to), from, static_cast<size_t>(bytes));
  }
  void copy_to_host(void* to, CudaPointer from, int64_t bytes, CudaStream) override {
    std::memcpy(to, pointer(from), static_cast<size_t>(bytes));
  }
  void copy_on_device(CudaPointer to, CudaPointer from, int64_t bytes, CudaStream) override {
    std::memcpy(pointer(to), pointer(from), static_cast<size_t>(bytes));
  }
  void fill(CudaPointer to, uint8_t byte, int64_t bytes, CudaStream) override {
    if (bytes > 0) std::memset(pointer(to), byte, static_cast<size_t>(bytes));
  }
  std::vector<CudaKernel> load_all(std::string_view, std::span<const std::string>) override { return {}; }
  void unload(const CudaKernel&) override {}
  int64_t resident_blocks(const CudaKernel&, int64_t, int64_t) override { return 0; }
  void launch(const CudaKernel&, const CudaLaunch&) override {}
  CudaReadyLaunch ready(const CudaKernel&, const CudaLaunch&) override { return {}; }
  void start(const CudaReadyLaunch&, void**, CudaStream) override {}
  void* enter() override { return nullptr; }
  void leave(void*) override {}
  CudaStream create_stream() override { return nullptr; }
  void destroy_stream(CudaStream) override {}
  bool is_captured(CudaStream) override { return false; }
  uint64_t stream_number(CudaStream stream) override { return reinterpret_cast<uint64_t>(stream); }
  std::optional<uint64_t> capture_number(CudaStream) override { return std::nullopt; }
  void keep_for_graph(CudaStream, std::shared_ptr<void>) override {}
  void end_later(std::shared_ptr<void>) override {}
  CudaPointer zeroed_for_capture(CudaStream, int64_t) override { return 0; }
  void synchronize(CudaStream) override {}
  void opt_in_shared(CudaKernel&) override {}
  void synchronize() override {}
  CudaEvent create_event() override { return nullptr; }
  void destroy_event(CudaEvent) override {}
  void record(CudaEvent, CudaStream) override {}
  void wait(CudaStream, CudaEvent) override {}
  double elapsed_us(CudaEvent, CudaEvent) override { return 0; }

  static uint8_t* pointer(CudaPointer p) { return reinterpret_cast<uint8_t*>(p); }
  static CudaPointer address(const void* p) { return reinterpret_cast<CudaPointer>(p); }
  bool is_freed = false;

 private:
  CudaDevice device_;
  std::vector<uint8_t> memory_;
};

}  // namespace fusebox::testing
