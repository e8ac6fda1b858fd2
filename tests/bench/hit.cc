// A hit in memory from C++, beside the bare work: `cuLaunchKernel` of the same kernel and an `at::empty` for each output. Both run in
// one process, in rounds that alternate, so that the difference is what Fusebox adds: reading the tensors, finding the call,
// packing the arguments. Times are host times; the GPU is waited for between rounds.
//
//   bench_hit             prints one line for 1, 2, 3, 4, 8 and 32 tensors; exit code 1 if up to 4 tensors cost 2 µs more, or 32 over 15 µs
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/cache/compiled_record.h"
#include "replay/device/device.h"
#include "replay/run/launch_machine.h"
#include "replay/torch/call_table.h"

namespace fusebox {
namespace {

constexpr int64_t kElements = 1024;
constexpr int kRounds = 21, kCalls = 2000;

// The sum of `count` tensors in one kernel.
std::string text_of(int count) {
  std::string text = "fusion @sum_of_many {\n  %n = size\n";
  for (int i = 0; i < count; ++i) text += "  %x" + std::to_string(i) + " = input f32[%n] contiguous\n";
  std::string last = "%x0";
  for (int i = 1; i < count; ++i) {
    text += "  %s" + std::to_string(i) + " = add " + last + ", %x" + std::to_string(i) + "\n";
    last = "%s" + std::to_string(i);
  }
  return text + "  %y = neg " + last + "\n  output %y\n}\n" +
         "steps @sum_of_many {\n  split %y.i0 by 128 -> o, t\n  parallelize %y.o on grid.x\n  parallelize %y.t on "
         "block.x\n  transform_like %y to []\n  parallelize_like %y to []\n  inline_most of []\n}\n";
}

using LaunchKernel = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                             void**);

LaunchKernel launch_kernel() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  return driver ? reinterpret_cast<LaunchKernel>(::dlsym(driver, "cuLaunchKernel")) : nullptr;
}

double per_call_us(const std::function<void()>& call) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() / kCalls;
}
double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

struct Cost {
  double hit_us = 0, bare_us = 0;
};

Cost measure(int count, LaunchKernel bare_launch) {
  const Module m = parse_module(text_of(count));
  const Graph& f = m.graphs[0];
  const auto options_on_gpu = at::TensorOptions(c10::Device(c10::kCUDA, 0)).dtype(at::kFloat);
  std::vector<at::Tensor> inputs;
  std::vector<Argument> arguments;
  std::vector<uint64_t> addresses;
  for (int i = 0; i < count; ++i) {
    inputs.push_back(at::ones({kElements}, options_on_gpu));
    addresses.push_back(reinterpret_cast<uint64_t>(inputs.back().const_data_ptr()));
    arguments.push_back(Argument::of(
        external_tensor(Dtype::kFloat, reinterpret_cast<void*>(addresses.back()), {kElements}, {1}, nullptr)));
  }
  CompileOptions options;
  options.steps = m.step_lists[0].steps;
  options.inputs = bound_inputs(arguments);
  const auto compiled = std::make_shared<const Compiled>(compile(f, bind_sizes(f, options.inputs), options));
  const std::shared_ptr<Device> device = make_cuda_device();
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < compiled->kernels.size(); ++i)
    kernels.push_back({compiled->segmentation.segments[i].name, &compiled->kernels[i]});
  const ResolvedCall resolved = evaluate_launch(*launch_record(*compiled), arguments, addresses);
  const std::shared_ptr<FastCall> call = make_fast_call(resolved, kernels, arguments, device);
  if (!call) throw Error(ErrorCode::kInternal, "the program has no fast call");
  call->is_stale = std::make_shared<const bool>(false);

  CallTable<std::shared_ptr<FastCall>> table;
  const auto read = [&] {
    table.begin();
    for (const at::Tensor& t : inputs) table.read(t);
  };
  if (!table.accept(*call)) throw Error(ErrorCode::kInternal, "the table takes no call of this kind");
  read();
  table.add({call, call.get()});
  const auto hit = [&] {
    read();
    const auto* entry = table.find();
    return entry ? table.run(*entry, nullptr) : std::vector<at::Tensor>();
  };

  // The bare launch packs nothing: its arguments are those of the first call.
  const ResolvedStep& step = resolved.steps.back();
  const CudaReadyLaunch ready = *device->ready(device->prepare(*kernels[step.kernel].kernel, {}), step.dims);
  std::vector<std::array<uint64_t, 2>> values(step.arguments.size());
  std::vector<void*> pointers;
  std::vector<size_t> of_output;
  for (size_t i = 0; i < values.size(); ++i) {
    const ResolvedArgument& a = step.arguments[i];
    if (a.kind == ResolvedArgument::Kind::kTensor && a.from < addresses.size())
      values[i][0] = addresses[a.from];
    else if (a.kind == ResolvedArgument::Kind::kTensor)
      of_output.push_back(i);
    else
      values[i] = {a.bits.low, a.bits.high};
    pointers.push_back(values[i].data());
  }
  const auto bare = [&] {
    at::Tensor y = at::empty({kElements}, options_on_gpu);
    for (const size_t i : of_output) values[i][0] = reinterpret_cast<uint64_t>(y.const_data_ptr());
    const int code = bare_launch(ready.function, ready.grid[0], ready.grid[1], ready.grid[2], ready.block[0],
                                 ready.block[1], ready.block[2], ready.shared_bytes, nullptr, pointers.data(), nullptr);
    if (code != 0) throw Error(ErrorCode::kDeviceFailure, "the bare launch failed");
    return y;
  };

  // Both compute the same.
  const std::vector<at::Tensor> made = hit();
  if (made.size() != 1 || !at::equal(made[0], bare()) || made[0][0].item<float>() != static_cast<float>(-count))
    throw Error(ErrorCode::kInternal, "the hit and the bare launch differ");
  std::vector<double> hits, bares;
  for (int round = 0; round < kRounds; ++round) {
    hits.push_back(per_call_us([&] { hit(); }));
    device->synchronize();
    bares.push_back(per_call_us([&] { bare(); }));
    device->synchronize();
  }
  return {median(hits), median(bares)};
}

int run() {
  // ATen's CUDA part registers itself when it is loaded.
  ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
  const LaunchKernel bare = launch_kernel();
  if (!bare || !at::hasCUDA()) return std::puts("bench_hit: no GPU is there, or PyTorch has no CUDA"), 0;
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  std::printf("host time of one call in µs, median of %d rounds of %d\n%8s %9s %9s %9s\n", kRounds, kCalls, "tensors",
              "fusebox", "bare", "more");
  bool is_met = true;
  for (const int count : {1, 2, 3, 4, 8, 32}) {
    const Cost cost = measure(count, bare);
    const double more = cost.hit_us - cost.bare_us;
    const bool fits = (count > 4 || more <= 2) && (count < 32 || cost.hit_us <= 15);
    is_met &= fits;
    std::printf("%8d %9.2f %9.2f %9.2f%s\n", count, cost.hit_us, cost.bare_us, more,
                fits         ? ""
                : count <= 4 ? "  over 2"
                             : "  over 15 in all");
  }
  return is_met ? 0 : 1;
}

}  // namespace
}  // namespace fusebox

int main() try { return fusebox::run(); } catch (const fusebox::Error& e) {
  return std::fprintf(stderr, "bench_hit: %s\n", e.what()), 1;
}
