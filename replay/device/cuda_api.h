// The part of CUDA that Fusebox uses: compiling with NVRTC, and running on a GPU through the driver. The implementation
// is the module libfusebox_cuda, loaded at first use (cuda_loader.h). It loads libcuda and libnvrtc itself, so one
// binary runs with and without a GPU, and compiles without one.
//
// Invariants:
// - Every call that fails throws: kModuleMissing (a library cannot be loaded), kNoDevice, kCompileFailure (with the
//   log's first error), kLaunchLimit, kOutOfMemory, or kDeviceFailure (in the driver's own words).
// - A GPU reports a kernel's fault in some later call, whatever that does. The error then names the kernels that were
//   launched since the device was last known to be well; if there is one, its place is that kernel (`@softmax`).
// - The same request to the same NVRTC gives the same bytes, in every process.
// - A session uses its device's primary context, as PyTorch does, and makes it current in every call. So it may use
//   pointers and streams of PyTorch. Calls may come from any thread, one at a time for each session.
//
//   CudaBackend& cuda = cuda_backend();
//   CudaBinary binary = cuda.compile({.text = source.text, .architecture = "sm_90a", .options = options});
//   auto session = cuda.open(0);
//   CudaKernel kernel = session->load(binary.bytes, source.entry);
//   session->launch(kernel, {.grid = {blocks, 1, 1}, .block = {128, 1, 1}, .arguments = arguments});
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module/device_properties.h"

namespace fusebox {

struct CudaVersion {
  int major = 0, minor = 0;  // 0.0: there is none
};

struct CudaDevice {
  int ordinal = 0;
  std::string name;
  std::string architecture;  // the one to compile for: sm_80, sm_90a, sm_100a …
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int max_threads_per_block = 0;
  std::array<int64_t, 3> max_block = {}, max_grid = {};
  int64_t max_shared_bytes = 0;  // of one block, with the opt-in by `launch`
  int warp_size = 32;
  bool launches_cooperatively = false;
  DeviceProperties properties;  // what planning knows of it
};

struct CudaHeaderText {
  std::string_view name, text;
};

struct CudaCompileRequest {
  std::string_view text;
  std::string_view name = "kernel.cu";           // in messages
  std::span<const CudaHeaderText> headers = {};  // the files that `#include "name"` finds
  std::string_view architecture;                 // sm_NN[a]
  std::span<const std::string_view> options = {};
};

struct CudaBinary {
  std::string bytes;  // a cubin
  std::string log;    // warnings
};

using CudaPointer = uint64_t;  // device memory
using CudaStream = void*;      // nullptr: the default stream
using CudaEvent = void*;

struct CudaKernel {
  void* module = nullptr;
  void* function = nullptr;
  int registers = 0;
  int64_t local_bytes = 0;   // of each thread, spills included
  int64_t shared_bytes = 0;  // static
  int max_threads = 0;
  int64_t allowed_shared_bytes = 48 * 1024;  // dynamic, without asking the driver again
  const char* name = "";                     // for messages; `set_name`
};

struct CudaLaunch {
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  int64_t shared_bytes = 0;               // dynamic
  bool is_cooperative = false;            // all blocks resident at once
  bool is_dependent = false;              // may begin before the launches in front have ended, for which it waits
  std::span<void* const> arguments = {};  // the address of each argument's value
  CudaStream stream = nullptr;
};

// A launch whose limits are checked: everything but its arguments and its stream.
struct CudaReadyLaunch {
  void* function = nullptr;
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool is_cooperative = false;
  bool is_dependent = false;
  const char* name = "";  // the kernel's
};

// One device, open.
class CudaSession {
 public:
  virtual ~CudaSession() = default;
  virtual const CudaDevice& device() const = 0;

  virtual CudaPointer allocate(int64_t bytes) = 0;  // at least 256-byte aligned; 0 bytes give 0
  virtual void free(CudaPointer pointer) = 0;
  virtual void copy_to_device(CudaPointer to, const void* from, int64_t bytes, CudaStream stream = nullptr) = 0;
  virtual void copy_to_host(void* to, CudaPointer from, int64_t bytes, CudaStream stream = nullptr) = 0;  // waits
  virtual void copy_on_device(CudaPointer to, CudaPointer from, int64_t bytes, CudaStream stream = nullptr) = 0;
  virtual void fill(CudaPointer to, uint8_t byte, int64_t bytes, CudaStream stream = nullptr) = 0;

  // The kernels share one module, which stays loaded until one of them is unloaded.
  virtual std::vector<CudaKernel> load_all(std::string_view binary, std::span<const std::string> entries) = 0;
  CudaKernel load(std::string_view binary, const std::string& entry) { return load_all(binary, {&entry, 1})[0]; }
  virtual void unload(const CudaKernel& kernel) = 0;
  // The name by which errors speak of the kernel. The session keeps the text.
  virtual void set_name(CudaKernel& kernel, const std::string& name) { (void)kernel, (void)name; }
  // Asks the driver for all the shared memory that a launch of this kernel may have, so that no launch asks again.
  virtual void opt_in_shared(CudaKernel& kernel) = 0;
  // The number of blocks that can be resident on the whole device: the largest cooperative grid.
  virtual int64_t resident_blocks(const CudaKernel& kernel, int64_t threads, int64_t shared_bytes) = 0;
  // Throws kLaunchLimit if the launch exceeds a limit of the device or the kernel.
  virtual void launch(const CudaKernel& kernel, const CudaLaunch& launch) = 0;
  // The same in two parts. `start` checks nothing and needs the device's context to be current (`enter`).
  virtual CudaReadyLaunch ready(const CudaKernel& kernel, const CudaLaunch& launch) = 0;
  virtual void start(const CudaReadyLaunch& launch, void** arguments, CudaStream stream) = 0;
  // Makes the device's context current and returns the one that was, or null if it was this one already.
  virtual void* enter() = 0;
  virtual void leave(void* previous) = 0;

  virtual CudaStream create_stream() = 0;
  virtual void destroy_stream(CudaStream stream) = 0;
  // Whether what is enqueued goes into a graph, to run at another time on other streams. The default stream is never
  // captured. This and the next one need the device's context to be current, as `start` does.
  virtual bool is_captured(CudaStream stream) = 0;
  // A number that no other stream of the process has, earlier or later ones included.
  virtual uint64_t stream_number(CudaStream stream) = 0;
  // A number that no other capture of the process has, earlier or later ones included. Nothing: the stream is not
  // captured.
  virtual std::optional<uint64_t> capture_number(CudaStream stream) = 0;
  // The graph that the stream is captured into, and all that is made of it, keep the thing as long as they live. It then
  // ends as by `end_later`. If the stream is not captured, nothing is kept.
  virtual void keep_for_graph(CudaStream stream, std::shared_ptr<void> thing) = 0;
  // Memory for what a captured stream is given next. It is zero now, and nothing but the graph writes it, as long as the
  // graph lives. 0: the stream is not captured.
  virtual CudaPointer zeroed_for_capture(CudaStream stream, int64_t bytes) = 0;
  // Lets go of a thing whose end calls the driver, at a place where nobody may wait for the GPU, or call the driver at all.
  // It ends in a later call of `load_all`, of any session.
  virtual void end_later(std::shared_ptr<void> thing) = 0;
  // Waits for the stream. An error of a kernel that ran is thrown here.
  virtual void synchronize(CudaStream stream) = 0;
  // Waits for the whole device. No stream may be captured: that capture would end.
  virtual void synchronize() = 0;
  virtual CudaEvent create_event() = 0;
  virtual void destroy_event(CudaEvent event) = 0;
  virtual void record(CudaEvent event, CudaStream stream = nullptr) = 0;
  virtual void wait(CudaStream stream, CudaEvent event) = 0;       // holds back later work of the stream
  virtual double elapsed_us(CudaEvent start, CudaEvent stop) = 0;  // waits for both
};

// Makes the session's device current while it lives.
class EnteredSession {
 public:
  explicit EnteredSession(CudaSession& session) : session_(session), previous_(session.enter()) {}
  EnteredSession(const EnteredSession&) = delete;
  EnteredSession& operator=(const EnteredSession&) = delete;
  ~EnteredSession() { session_.leave(previous_); }

 private:
  CudaSession& session_;
  void* previous_;
};

class CudaBackend {
 public:
  virtual ~CudaBackend() = default;

  // A folder to look for libnvrtc in, before all others. Call it before the compiler is used.
  virtual void add_compiler_folder(const std::string& folder) = 0;
  // Neither loads the compiler if its files tell. Both throw kModuleMissing.
  virtual CudaVersion compiler_version() = 0;
  virtual std::string compiler_identity() = 0;  // equal for compilers that make the same binaries
  virtual CudaBinary compile(const CudaCompileRequest& request) = 0;

  // Without a driver: 0.0, and no devices.
  virtual CudaVersion driver_version() = 0;
  virtual std::vector<CudaDevice> devices() = 0;
  virtual std::unique_ptr<CudaSession> open(int ordinal) = 0;  // throws kNoDevice
};

}  // namespace fusebox

// The module's export. The backend lives as long as the process.
extern "C" fusebox::CudaBackend* fusebox_cuda_backend();
