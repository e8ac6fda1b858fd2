// The functions of libcuda and libnvrtc that Fusebox uses. They are declared here, so that no CUDA header is needed.
// Both libraries are loaded at run time.
//
//   const DriverApi& driver = *driver_api();  driver.cuInit(0);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fusebox {

// A launch with attributes, for cuLaunchKernelEx: laid out as CUlaunchConfig and CUlaunchAttribute are.
struct CudaLaunchAttribute {
  unsigned id = 0;
  unsigned padding = 0;
  union {
    char bytes[64] = {};
    int number;
  };
};
struct CudaLaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const CudaLaunchAttribute* attributes;
  unsigned attribute_count;
};

// FUNCTION(name, exported symbol, parameter types); all return 0 for success. The symbols have the versions to which
// the headers of CUDA 12 and 13 map the names.
#define FUSEBOX_DRIVER_FUNCTIONS(FUNCTION)                                                                             \
  FUNCTION(cuInit, cuInit, unsigned)                                                                                   \
  FUNCTION(cuDriverGetVersion, cuDriverGetVersion, int*)                                                               \
  FUNCTION(cuGetErrorName, cuGetErrorName, int, const char**)                                                          \
  FUNCTION(cuGetErrorString, cuGetErrorString, int, const char**)                                                      \
  FUNCTION(cuDeviceGetCount, cuDeviceGetCount, int*)                                                                   \
  FUNCTION(cuDeviceGet, cuDeviceGet, int*, int)                                                                        \
  FUNCTION(cuDeviceGetName, cuDeviceGetName, char*, int, int)                                                          \
  FUNCTION(cuDeviceGetAttribute, cuDeviceGetAttribute, int*, int, int)                                                 \
  FUNCTION(cuDeviceTotalMem, cuDeviceTotalMem_v2, size_t*, int)                                                        \
  FUNCTION(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, void**, int)                                            \
  FUNCTION(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, int)                                               \
  FUNCTION(cuCtxSetCurrent, cuCtxSetCurrent, void*)                                                                    \
  FUNCTION(cuCtxGetCurrent, cuCtxGetCurrent, void**)                                                                   \
  FUNCTION(cuCtxSynchronize, cuCtxSynchronize)                                                                         \
  FUNCTION(cuModuleLoadData, cuModuleLoadData, void**, const void*)                                                    \
  FUNCTION(cuModuleUnload, cuModuleUnload, void*)                                                                      \
  FUNCTION(cuModuleGetFunction, cuModuleGetFunction, void**, void*, const char*)                                       \
  FUNCTION(cuFuncGetAttribute, cuFuncGetAttribute, int*, int, void*)                                                   \
  FUNCTION(cuFuncSetAttribute, cuFuncSetAttribute, void*, int, int)                                                    \
  FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, int*, void*, int, \
           size_t)                                                                                                     \
  FUNCTION(cuLaunchKernel, cuLaunchKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,          \
           unsigned, void*, void**, void**)                                                                            \
  FUNCTION(cuLaunchKernelEx, cuLaunchKernelEx, const CudaLaunchConfig*, void*, void**, void**)                         \
  FUNCTION(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, void*, unsigned, unsigned, unsigned, unsigned,        \
           unsigned, unsigned, unsigned, void*, void**)                                                                \
  FUNCTION(cuMemAlloc, cuMemAlloc_v2, uint64_t*, size_t)                                                               \
  FUNCTION(cuMemFree, cuMemFree_v2, uint64_t)                                                                          \
  FUNCTION(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, uint64_t, const void*, size_t, void*)                              \
  FUNCTION(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void*, uint64_t, size_t, void*)                                    \
  FUNCTION(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, uint64_t, uint64_t, size_t, void*)                                 \
  FUNCTION(cuMemsetD8Async, cuMemsetD8Async, uint64_t, unsigned char, size_t, void*)                                   \
  FUNCTION(cuStreamCreate, cuStreamCreate, void**, unsigned)                                                           \
  FUNCTION(cuStreamDestroy, cuStreamDestroy_v2, void*)                                                                 \
  FUNCTION(cuStreamSynchronize, cuStreamSynchronize, void*)                                                            \
  FUNCTION(cuStreamIsCapturing, cuStreamIsCapturing, void*, int*)                                                      \
  FUNCTION(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, void*, int*, unsigned long long*, void**, void* const**, \
           size_t*)                                                                                                    \
  FUNCTION(cuUserObjectCreate, cuUserObjectCreate, void**, void*, void (*)(void*), unsigned, unsigned)                 \
  FUNCTION(cuUserObjectRelease, cuUserObjectRelease, void*, unsigned)                                                  \
  FUNCTION(cuGraphRetainUserObject, cuGraphRetainUserObject, void*, void*, unsigned, unsigned)                         \
  FUNCTION(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, int*)                                 \
  FUNCTION(cuStreamGetId, cuStreamGetId, void*, unsigned long long*)                                                   \
  FUNCTION(cuStreamWaitEvent, cuStreamWaitEvent, void*, void*, unsigned)                                               \
  FUNCTION(cuEventCreate, cuEventCreate, void**, unsigned)                                                             \
  FUNCTION(cuEventDestroy, cuEventDestroy_v2, void*)                                                                   \
  FUNCTION(cuEventRecord, cuEventRecord, void*, void*)                                                                 \
  FUNCTION(cuEventSynchronize, cuEventSynchronize, void*)                                                              \
  FUNCTION(cuEventElapsedTime, cuEventElapsedTime, float*, void*, void*)

#define FUSEBOX_NVRTC_FUNCTIONS(FUNCTION)                                                                     \
  FUNCTION(nvrtcVersion, nvrtcVersion, int*, int*)                                                            \
  FUNCTION(nvrtcCreateProgram, nvrtcCreateProgram, void**, const char*, const char*, int, const char* const*, \
           const char* const*)                                                                                \
  FUNCTION(nvrtcDestroyProgram, nvrtcDestroyProgram, void**)                                                  \
  FUNCTION(nvrtcCompileProgram, nvrtcCompileProgram, void*, int, const char* const*)                          \
  FUNCTION(nvrtcGetProgramLogSize, nvrtcGetProgramLogSize, void*, size_t*)                                    \
  FUNCTION(nvrtcGetProgramLog, nvrtcGetProgramLog, void*, char*)                                              \
  FUNCTION(nvrtcGetCUBINSize, nvrtcGetCUBINSize, void*, size_t*)                                              \
  FUNCTION(nvrtcGetCUBIN, nvrtcGetCUBIN, void*, char*)

#define FUSEBOX_POINTER(name, symbol, ...) int (*name)(__VA_ARGS__) = nullptr;
struct DriverApi {
  FUSEBOX_DRIVER_FUNCTIONS(FUSEBOX_POINTER)
};
struct NvrtcApi {
  FUSEBOX_NVRTC_FUNCTIONS(FUSEBOX_POINTER)
};
#undef FUSEBOX_POINTER

// Numbers of the driver's enumerations, under its names.
enum CudaStreamCaptureMode : int { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum CudaStreamCaptureStatus : int { CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };
enum CudaUserObjectFlags : unsigned { CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1, CU_GRAPH_USER_OBJECT_MOVE = 1 };
enum CudaResult : int {
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
};
enum CudaDeviceAttribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,  // kHz
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,        // kHz
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,  // bits
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};
enum CudaLaunchAttributeId : unsigned { CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
enum CudaFunctionAttribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

// libcuda, initialized; null if there is no driver, with the reason in `why`.
const DriverApi* driver_api(std::string& why);
// libnvrtc, with its builtins library loaded. Throws kModuleMissing. Searches `folders` first.
const NvrtcApi& nvrtc_api(const std::vector<std::string>& folders);

// The library that `nvrtc_api` would load, known from the names and sizes of its files. Loading takes a fifth of a second.
struct NvrtcFile {
  int major = 0, minor = 0;
  std::string identity;  // equal for the same library
};
// Loads the library only if its files do not tell. Throws kModuleMissing.
NvrtcFile find_nvrtc(const std::vector<std::string>& folders);

}  // namespace fusebox
