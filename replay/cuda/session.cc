#include "replay/cuda/session.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "ir/module/architecture.h"
#include "ir/table/error.h"
#include "replay/cuda/captured_memory.h"
#include "replay/cuda/launch_log.h"
#include "replay/cuda/resting.h"

namespace fusebox {
namespace {

[[noreturn]] void fail(const DriverApi& driver, int code, const std::string& what) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(code, &name);
  driver.cuGetErrorString(code, &text);
  const std::string words = what + " failed with " + (name == nullptr ? "result " + std::to_string(code) : name) +
                            ": " + (text == nullptr ? "no description" : text);
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      throw Error(ErrorCode::kOutOfMemory, words);
    case CUDA_ERROR_NO_DEVICE:
      throw Error(ErrorCode::kNoDevice, words);
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      throw Error(ErrorCode::kLaunchLimit, words);
    default:
      throw Error(ErrorCode::kDeviceFailure, words);
  }
}

void check(const DriverApi& driver, int code, const char* what) {
  if (code != 0) fail(driver, code, what);
}

// Whether the result says that a kernel failed, which may be one launched long before this call.
bool is_kernel_fault(int code) {
  switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:  // any other result is about the call that returned it
      return false;
  }
}

// Hopper and Blackwell have features that only code for exactly that architecture may use.
std::string architecture_of(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : "");
}

// While it lives, the thread may take and give back memory and modules, and wait for other streams, although some stream
// is captured: this is no part of what is captured. Otherwise the driver would end the capture.
class BesideCaptures {
 public:
  explicit BesideCaptures(const DriverApi& driver) : driver_(driver) { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;
  ~BesideCaptures() { exchange(); }

 private:
  // A driver that fails here leaves the mode as it is.
  void exchange() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

  const DriverApi& driver_;
  int mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class Session final : public CudaSession {
 public:
  Session(const DriverApi& driver, const CudaDevice& device) : driver_(driver), device_(device) {
    check(driver_, driver_.cuDevicePrimaryCtxRetain(&context_, device_.ordinal), "opening the GPU");
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override {
    for (const CudaPointer memory : captured_->give_up()) try {
        free(memory);
      } catch (const Error&) {
        // The device failed before, and its memory is lost.
      }
    driver_.cuDevicePrimaryCtxRelease(device_.ordinal);
  }

  const CudaDevice& device() const override { return device_; }

  CudaPointer allocate(int64_t bytes) override {
    if (bytes <= 0) return 0;
    CudaPointer pointer = 0;
    const Current current(*this);
    const BesideCaptures beside(driver_);
    const int code = driver_.cuMemAlloc(&pointer, static_cast<size_t>(bytes));
    if (is_kernel_fault(code)) fail_late(code);
    if (code != 0) fail(driver_, code, "allocating " + std::to_string(bytes) + " bytes");
    return pointer;
  }
  void free(CudaPointer pointer) override {
    if (pointer == 0) return;
    const BesideCaptures beside(driver_);
    run(driver_.cuMemFree, "freeing memory", pointer);
  }
  void copy_to_device(CudaPointer to, const void* from, int64_t bytes, CudaStream stream) override {
    if (bytes > 0) run(driver_.cuMemcpyHtoDAsync, "a copy to the GPU", to, from, static_cast<size_t>(bytes), stream);
  }
  void copy_to_host(void* to, CudaPointer from, int64_t bytes, CudaStream stream) override {
    if (bytes <= 0) return;
    run(driver_.cuMemcpyDtoHAsync, "a copy from the GPU", to, from, static_cast<size_t>(bytes), stream);
    synchronize(stream);
  }
  void copy_on_device(CudaPointer to, CudaPointer from, int64_t bytes, CudaStream stream) override {
    if (bytes > 0) run(driver_.cuMemcpyDtoDAsync, "a copy on the GPU", to, from, static_cast<size_t>(bytes), stream);
  }
  void fill(CudaPointer to, uint8_t byte, int64_t bytes, CudaStream stream) override {
    if (bytes > 0) run(driver_.cuMemsetD8Async, "filling memory", to, byte, static_cast<size_t>(bytes), stream);
  }

  std::vector<CudaKernel> load_all(std::string_view binary, std::span<const std::string> entries) override {
    Resting::of_process().end_oldest();
    const BesideCaptures beside(driver_);
    const std::string bytes(binary);  // the driver reads as many bytes as the image itself says
    void* module = nullptr;
    run(driver_.cuModuleLoadData, "loading a kernel", &module, static_cast<const void*>(bytes.data()));
    std::vector<CudaKernel> kernels;
    try {
      for (const std::string& entry : entries) {
        CudaKernel kernel;
        kernel.module = module;
        run(driver_.cuModuleGetFunction, "finding a kernel", &kernel.function, module, entry.c_str());
        kernel.registers = attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS);
        kernel.local_bytes = attribute(kernel, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
        kernel.shared_bytes = attribute(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        kernel.max_threads = attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        kernels.push_back(kernel);
      }
    } catch (...) {
      const Current current(*this);
      driver_.cuModuleUnload(module);
      throw;
    }
    return kernels;
  }
  void unload(const CudaKernel& kernel) override {
    const BesideCaptures beside(driver_);
    run(driver_.cuModuleUnload, "unloading a kernel", kernel.module);
  }
  void set_name(CudaKernel& kernel, const std::string& name) override {
    const std::lock_guard lock(naming_);
    kernel.name = names_.emplace_back(name).c_str();
  }

  void opt_in_shared(CudaKernel& kernel) override {
    const int64_t most = most_shared_bytes(kernel);
    allow_shared(kernel, most);
    kernel.allowed_shared_bytes = std::max(kernel.allowed_shared_bytes, most);
  }

  int64_t resident_blocks(const CudaKernel& kernel, int64_t threads, int64_t shared_bytes) override {
    allow_shared(kernel, shared_bytes);
    int blocks = 0;
    run(driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor, "asking for the occupancy", &blocks, kernel.function,
        static_cast<int>(threads), static_cast<size_t>(shared_bytes));
    return int64_t{blocks} * device_.multiprocessors;
  }

  void launch(const CudaKernel& kernel, const CudaLaunch& launch) override {
    const CudaReadyLaunch made = ready(kernel, launch);
    const Current current(*this);
    // The driver declares the addresses as mutable, and does not write through them.
    start(made, const_cast<void**>(launch.arguments.data()), launch.stream);
  }
  CudaReadyLaunch ready(const CudaKernel& kernel, const CudaLaunch& launch) override {
    check_limits(kernel, launch);
    allow_shared(kernel, launch.shared_bytes);
    CudaReadyLaunch made;
    made.function = kernel.function;
    for (size_t i = 0; i < 3; ++i) {
      made.grid[i] = static_cast<unsigned>(launch.grid[i]);
      made.block[i] = static_cast<unsigned>(launch.block[i]);
    }
    made.shared_bytes = static_cast<unsigned>(launch.shared_bytes);
    made.is_cooperative = launch.is_cooperative;
    made.is_dependent = launch.is_dependent && !launch.is_cooperative && has_dependent_launch(device_.architecture);
    made.name = kernel.name;
    return made;
  }
  void start(const CudaReadyLaunch& l, void** arguments, CudaStream stream) override {
    if (l.is_cooperative)
      check_call(driver_.cuLaunchCooperativeKernel(l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                                                   l.block[2], l.shared_bytes, stream, arguments),
                 "a cooperative launch");
    else if (l.is_dependent)
      start_dependent(l, arguments, stream);
    else
      check_call(driver_.cuLaunchKernel(l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                                        l.shared_bytes, stream, arguments, nullptr),
                 "a launch");
    log_.note(l.name, stream);
  }
  void* enter() override {
    void* current = nullptr;
    check_call(driver_.cuCtxGetCurrent(&current), "asking for the current GPU");
    if (current == context_) return nullptr;
    check_call(driver_.cuCtxSetCurrent(context_), "making the GPU current");
    return current;
  }
  void leave(void* previous) override {
    if (previous != nullptr) driver_.cuCtxSetCurrent(previous);
  }

  CudaStream create_stream() override {
    CudaStream stream = nullptr;
    run(driver_.cuStreamCreate, "making a stream", &stream, 1u);  // does not wait for the default stream
    return stream;
  }
  void destroy_stream(CudaStream stream) override { run(driver_.cuStreamDestroy, "ending a stream", stream); }
  bool is_captured(CudaStream stream) override {
    int is = 0;
    check_call(driver_.cuStreamIsCapturing(stream, &is), "asking about a stream");
    return is != 0;
  }
  uint64_t stream_number(CudaStream stream) override {
    unsigned long long number = 0;
    check_call(driver_.cuStreamGetId(stream, &number), "asking about a stream");
    return number;
  }
  std::optional<uint64_t> capture_number(CudaStream stream) override {
    const Capture capture = capture_of(stream);
    return capture.graph == nullptr ? std::nullopt : std::optional<uint64_t>(capture.number);
  }
  void keep_for_graph(CudaStream stream, std::shared_ptr<void> thing) override {
    const Capture capture = capture_of(stream);
    if (capture.graph == nullptr) return;
    keep(capture,
         {nullptr, [thing = std::move(thing)](void*) mutable { Resting::of_process().add(std::move(thing)); }});
  }
  CudaPointer zeroed_for_capture(CudaStream stream, int64_t bytes) override {
    const Capture capture = capture_of(stream);
    if (capture.graph == nullptr) return 0;
    auto piece = captured_->take(bytes, [&](int64_t wanted) { return allocate(wanted); });
    const CudaPointer memory = piece->memory;
    clear_beside_captures(memory, piece->bytes);
    keep(capture, std::move(piece));
    return memory;
  }
  void end_later(std::shared_ptr<void> thing) override { Resting::of_process().add(std::move(thing)); }
  void synchronize(CudaStream stream) override {
    const BesideCaptures beside(driver_);
    const LaunchLog::Mark before = log_.mark();
    run(driver_.cuStreamSynchronize, "a kernel or copy", stream);
    log_.forget(before, stream);
  }
  void synchronize() override {
    const LaunchLog::Mark before = log_.mark();
    run(driver_.cuCtxSynchronize, "a kernel or copy");
    log_.forget(before);
  }
  CudaEvent create_event() override {
    CudaEvent event = nullptr;
    run(driver_.cuEventCreate, "making an event", &event, 0u);
    return event;
  }
  void destroy_event(CudaEvent event) override { run(driver_.cuEventDestroy, "ending an event", event); }
  void record(CudaEvent event, CudaStream stream) override {
    run(driver_.cuEventRecord, "recording an event", event, stream);
  }
  void wait(CudaStream stream, CudaEvent event) override {
    run(driver_.cuStreamWaitEvent, "waiting for an event", stream, event, 0u);
  }
  double elapsed_us(CudaEvent start, CudaEvent stop) override {
    run(driver_.cuEventSynchronize, "waiting for an event", start);
    run(driver_.cuEventSynchronize, "waiting for an event", stop);
    float milliseconds = 0;
    run(driver_.cuEventElapsedTime, "reading a time", &milliseconds, start, stop);
    return 1000.0 * static_cast<double>(milliseconds);
  }

 private:
  struct Capture {
    unsigned long long number = 0;
    void* graph = nullptr;  // none: the stream is not captured
  };
  Capture capture_of(CudaStream stream) {
    Capture capture;
    int status = 0;
    run(driver_.cuStreamGetCaptureInfo, "asking about a stream", stream, &status, &capture.number, &capture.graph,
        nullptr, nullptr);
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) capture.graph = nullptr;
    return capture;
  }
  // Lets the graph keep a thing. Where the graph ends, nobody may call the driver, so the thing's end must not.
  void keep(const Capture& capture, std::shared_ptr<void> thing) {
    auto owner = std::make_unique<std::shared_ptr<void>>(std::move(thing));
    void* object = nullptr;
    run(driver_.cuUserObjectCreate, "keeping something for a graph", &object, static_cast<void*>(owner.get()), &let_go,
        1u, unsigned{CU_USER_OBJECT_NO_DESTRUCTOR_SYNC});
    static_cast<void>(owner.release());  // the object has it
    try {
      run(driver_.cuGraphRetainUserObject, "keeping something for a graph", capture.graph, object, 1u,
          unsigned{CU_GRAPH_USER_OBJECT_MOVE});
    } catch (...) {
      driver_.cuUserObjectRelease(object, 1);
      throw;
    }
  }
  static void let_go(void* owner) { delete static_cast<std::shared_ptr<void>*>(owner); }

  // Programmatic dependent launch: blocks begin when those of the launch in front let them, and wait in the kernel.
  void start_dependent(const CudaReadyLaunch& l, void** arguments, CudaStream stream) {
    CudaLaunchAttribute early;
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.number = 1;
    const CudaLaunchConfig config{
        {l.grid[0], l.grid[1], l.grid[2]}, {l.block[0], l.block[1], l.block[2]}, l.shared_bytes, stream, &early, 1};
    check_call(driver_.cuLaunchKernelEx(&config, l.function, arguments, nullptr), "a launch");
  }

  // Makes the GPU current while it lives. The caller's GPU is current again behind it, or none if none was.
  class Current {
   public:
    explicit Current(Session& session) : session_(session) {
      session.check_call(session.driver_.cuCtxGetCurrent(&before_), "asking for the current GPU");
      if (before_ != session.context_)
        session.check_call(session.driver_.cuCtxSetCurrent(session.context_), "making the GPU current");
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      if (before_ != session_.context_) session_.driver_.cuCtxSetCurrent(before_);
    }

   private:
    Session& session_;
    void* before_ = nullptr;
  };

  template <class... Parameters, class... Arguments>
  void run(int (*function)(Parameters...), const char* what, Arguments... arguments) {
    const Current current(*this);
    check_call(function(arguments...), what);
  }
  void check_call(int code, const char* what) const {
    if (code == 0) return;
    if (is_kernel_fault(code)) fail_late(code);
    fail(driver_, code, what);
  }
  [[noreturn]] void fail_late(int code) const {
    const std::vector<std::string> kernels = log_.recent();
    try {
      fail(driver_, code, "a kernel");
    } catch (const Error& e) {
      throw Error(e.code, e.what() + late_fault_text(kernels), kernels.size() == 1 ? "@" + kernels[0] : e.place);
    }
  }
  int attribute(const CudaKernel& kernel, int which) {
    int value = 0;
    run(driver_.cuFuncGetAttribute, "asking about a kernel", &value, which, kernel.function);
    return value;
  }
  // More than 48 KiB of shared memory needs an opt-in.
  int64_t most_shared_bytes(const CudaKernel& kernel) const { return device_.max_shared_bytes - kernel.shared_bytes; }
  void allow_shared(const CudaKernel& kernel, int64_t bytes) {
    if (bytes > kernel.allowed_shared_bytes)
      run(driver_.cuFuncSetAttribute, "asking for shared memory", kernel.function,
          static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), static_cast<int>(bytes));
  }
  void check_limits(const CudaKernel& kernel, const CudaLaunch& launch) {
    const auto limit = [](int64_t value, int64_t most, const std::string& what) {
      if (value < 1 || value > most)
        throw Error(ErrorCode::kLaunchLimit,
                    "a launch of " + std::to_string(value) + " " + what + "; the limit is " + std::to_string(most));
    };
    constexpr const char* kAxes[] = {"x", "y", "z"};
    for (size_t i = 0; i < 3; ++i) {
      limit(launch.grid[i], device_.max_grid[i], std::string("blocks along ") + kAxes[i]);
      limit(launch.block[i], device_.max_block[i], std::string("threads along ") + kAxes[i]);
    }
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    limit(threads, kernel.max_threads, "threads in a block of this kernel");
    const int64_t most = most_shared_bytes(kernel);
    if (launch.shared_bytes < 0 || launch.shared_bytes > most)
      throw Error(ErrorCode::kLaunchLimit, "a launch with " + std::to_string(launch.shared_bytes) +
                                               " bytes of shared memory in a block; the limit is " +
                                               std::to_string(most));
    if (!launch.is_cooperative) return;
    const int64_t resident = resident_blocks(kernel, threads, launch.shared_bytes);
    // The product of three dimensions may exceed 64 bits, so the limit is divided by one after the other.
    int64_t rest = resident;
    for (const int64_t n : launch.grid) rest /= n;
    if (!device_.launches_cooperatively || rest < 1)
      throw Error(ErrorCode::kLaunchLimit, "a grid barrier needs all blocks on the GPU at once; it holds " +
                                               std::to_string(resident) +
                                               " of this kernel: launch fewer or smaller ones");
  }

  // Clears memory now, although streams are captured.
  void clear_beside_captures(CudaPointer memory, int64_t bytes) {
    const BesideCaptures beside(driver_);
    const CudaStream stream = create_stream();
    try {
      fill(memory, 0, bytes, stream);
      synchronize(stream);
    } catch (...) {
      driver_.cuStreamDestroy(stream);
      throw;
    }
    destroy_stream(stream);
  }

  const DriverApi& driver_;
  CudaDevice device_;
  void* context_ = nullptr;
  LaunchLog log_;
  std::shared_ptr<CapturedMemory> captured_ = std::make_shared<CapturedMemory>();
  std::mutex naming_;
  std::deque<std::string> names_;  // of kernels
};

}  // namespace

std::vector<CudaDevice> list_devices(const DriverApi& driver) {
  std::vector<CudaDevice> devices;
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != 0) return devices;
  for (int i = 0; i < count; ++i) {
    CudaDevice d;
    d.ordinal = i;
    int handle = 0;
    check(driver, driver.cuDeviceGet(&handle, i), "finding a GPU");
    const auto attribute = [&](int which) {
      int value = 0;
      check(driver, driver.cuDeviceGetAttribute(&value, which, handle), "asking about a GPU");
      return value;
    };
    char name[256] = {};
    check(driver, driver.cuDeviceGetName(name, sizeof name - 1, handle), "asking about a GPU");
    d.name = name;
    d.architecture = architecture_of(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                                     attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    d.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    size_t bytes = 0;
    check(driver, driver.cuDeviceTotalMem(&bytes, handle), "asking about a GPU");
    d.memory_bytes = static_cast<int64_t>(bytes);
    d.max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int axis = 0; axis < 3; ++axis) {
      d.max_block[static_cast<size_t>(axis)] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
      d.max_grid[static_cast<size_t>(axis)] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
    }
    d.max_shared_bytes = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    d.warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    d.launches_cooperatively = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
    d.properties = {
        .name = d.name,
        .architecture = d.architecture,
        .multiprocessors = d.multiprocessors,
        .l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        .shared_bytes = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .shared_block_bytes = d.max_shared_bytes,
        .memory_bytes = d.memory_bytes,
        .clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        // Two transfers in each cycle of the memory's clock.
        .bytes_per_second = int64_t{2000} * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                            (attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8),
        .registers = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .block_threads = d.max_threads_per_block,
        .warp = d.warp_size,
    };
    devices.push_back(std::move(d));
  }
  return devices;
}

std::unique_ptr<CudaSession> open_session(const DriverApi& driver, const CudaDevice& device) {
  return std::make_unique<Session>(driver, device);
}

}  // namespace fusebox
