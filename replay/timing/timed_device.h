// A device that passes a program's work on to another one, and tells how long each launch took by the wall clock. It is
// for devices that are done when a launch returns.
//
//   TimedDevice timed(*host, [](const std::string& kernel, double us) { … });
//   run_host_program(host_program, kernels, timed, arguments);
#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "replay/device/device.h"

namespace fusebox {

class TimedDevice : public Device {
 public:
  using Told = std::function<void(const std::string& kernel, double us)>;
  // `inner` must outlive this device.
  TimedDevice(Device& inner, Told told) : inner_(inner), told_(std::move(told)) {}

  std::string_view name() const override { return inner_.name(); }
  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) override {
    return inner_.allocate(dtype, std::move(shape), std::move(strides), zeroed);
  }
  RunTensor upload(const TensorData& t) override { return inner_.upload(t); }
  TensorData download(const RunTensor& t, const std::string& place) override { return inner_.download(t, place); }
  void copy(const RunTensor& to, const RunTensor& from) override { inner_.copy(to, from); }
  int64_t alignment(const RunTensor& t) override { return inner_.alignment(t); }
  // A kernel is made ready once, however many runs there are.
  size_t prepare(const Graph& kernel, const KernelUse& use) override {
    const auto [it, is_new] = prepared_.try_emplace({&kernel, use.reads_apart}, 0);
    if (is_new) {
      it->second = inner_.prepare(kernel, use);
      names_[it->second] = kernel.name;
    }
    return it->second;
  }
  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override {
    const auto start = std::chrono::steady_clock::now();
    inner_.launch(kernel, dims, arguments);
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    told_(names_[kernel], taken.count());
  }
  void synchronize() override { inner_.synchronize(); }
  AtenPlace aten_place() const override { return inner_.aten_place(); }

 private:
  Device& inner_;
  Told told_;
  std::map<std::pair<const Graph*, bool>, size_t> prepared_;
  std::map<size_t, std::string> names_;
};

}  // namespace fusebox
