// Tests that need a GPU. Without one they skip and say why.
//
//   class Copies : public GpuTest {};
//   TEST_F(Copies, …) { Device x = device(bytes); run(kernel, {8, 1, 1}, {128, 1, 1}, {&x, …}); }
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "codegen/cuda.h"
#include "ir/table/error.h"
#include "replay/device/cuda_loader.h"

namespace fusebox::testing {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      session_ = cuda_backend().open(0);
      cuda_backend().compiler_version();
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  void TearDown() override {
    if (!session_) return;
    for (const CudaPointer p : memory_) session_->free(p);
  }

  CudaPointer upload(const void* bytes, size_t size) {
    const CudaPointer p = session_->allocate(static_cast<int64_t>(size));
    memory_.push_back(p);
    session_->copy_to_device(p, bytes, static_cast<int64_t>(size));
    return p;
  }
  template <class T>
  CudaPointer upload(const std::vector<T>& values) {
    return upload(values.data(), values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> download(CudaPointer from, size_t count) {
    std::vector<T> values(count);
    session_->copy_to_host(values.data(), from, static_cast<int64_t>(count * sizeof(T)));
    return values;
  }

  struct Launch {
    std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
    int64_t shared_bytes = 0;
    bool is_cooperative = false;
  };
  // Each argument is 64 bits: a pointer, or an index of a kernel with 64-bit indices.
  void run(const std::string& text, const std::string& entry, const Launch& launch, std::vector<uint64_t> arguments) {
    const CudaBinary binary = cuda_backend().compile({.text = text,
                                                      .headers = cuda_headers(),
                                                      .architecture = session_->device().architecture,
                                                      .options = cuda_compile_options()});
    const CudaKernel kernel = session_->load(binary.bytes, entry);
    std::vector<void*> pointers;
    for (uint64_t& a : arguments) pointers.push_back(&a);
    session_->launch(kernel, {.grid = launch.grid,
                              .block = launch.block,
                              .shared_bytes = launch.shared_bytes,
                              .is_cooperative = launch.is_cooperative,
                              .arguments = pointers});
    session_->synchronize();
    session_->unload(kernel);
  }
  void run(const Graph& kernel, const Launch& launch, std::vector<uint64_t> arguments) {
    const CudaSource source = emit_cuda(kernel);
    run(source.text, source.entry, launch, std::move(arguments));
  }

  std::unique_ptr<CudaSession> session_;
  std::vector<CudaPointer> memory_;
};

}  // namespace fusebox::testing
