// The modules that a device loaded. They are unloaded when the last owner lets go: the device, and every CUDA graph that captured
// a launch of their kernels, for a graph has no more of a kernel than its address.
//
//   auto modules = std::make_shared<LoadedModules>(session);
//   modules->add(session->load(binary, entry));
//   session->keep_for_graph(stream, modules);     // while the stream is captured
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ir/table/error.h"
#include "replay/device/cuda_api.h"

namespace fusebox {

class LoadedModules {
 public:
  explicit LoadedModules(std::shared_ptr<CudaSession> session) : session_(std::move(session)) {}
  LoadedModules(const LoadedModules&) = delete;
  LoadedModules& operator=(const LoadedModules&) = delete;
  ~LoadedModules() {
    for (const CudaKernel& one : modules_) try {
        session_->unload(one);
      } catch (const Error&) {
        // The device failed before; there is nothing left to unload from.
      }
  }

  // Any kernel of the module.
  void add(const CudaKernel& one) { modules_.push_back(one); }
  bool empty() const { return modules_.empty(); }

 private:
  std::shared_ptr<CudaSession> session_;
  std::vector<CudaKernel> modules_;
};

}  // namespace fusebox
