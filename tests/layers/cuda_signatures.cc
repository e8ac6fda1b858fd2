// Compares the declarations of replay/cuda/libraries.h with the toolkit's; compiling this file is the test. It does not
// compile if a function has another number of parameters or a parameter of another size or kind, if the headers map a
// name to another versioned symbol, or if an enumerator has another value.
#include <cuda.h>
#include <nvrtc.h>
#include <string_view>
#include <type_traits>

#include "replay/cuda/libraries.h"

// Drivers of CUDA 12 and 13 export the second version; the headers of CUDA 13 declare the third one only, which drivers
// before 12.3 lack.
#if CUDA_VERSION >= 13000
extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                              const CUgraphNode**, size_t*);
#endif

// The headers map names to symbols by macros, which this expands.
#define FUSEBOX_TEXT(...) #__VA_ARGS__
#define FUSEBOX_MAPPED(name) FUSEBOX_TEXT(name)

namespace fusebox {
namespace {

template <class T>
constexpr bool is_complete = requires { sizeof(T); };

// A handle is a pointer to an undefined type in the headers, and a void* here. An enumeration is an int here. A device
// address is a number in both.
template <class Ours, class Theirs>
constexpr bool fits() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using A = std::remove_pointer_t<Ours>;
    using B = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_void_v<A>)
      return std::is_void_v<B> ? std::is_const_v<A> == std::is_const_v<B> : !is_complete<B>;
    else if constexpr (std::is_function_v<A> || std::is_function_v<B>)
      return std::is_same_v<A, B>;
    else if constexpr (std::is_const_v<A> && !std::is_const_v<B>)
      return false;
    else
      return fits<std::remove_const_t<A>, std::remove_const_t<B>>();
  } else if constexpr (std::is_enum_v<Theirs>) {
    return std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int);
  } else if constexpr (std::is_floating_point_v<Theirs>) {
    return std::is_same_v<Ours, Theirs>;
  } else if constexpr (std::is_class_v<Theirs>) {  // their members are compared below
    return std::is_same_v<Ours, CudaLaunchConfig> && std::is_same_v<Theirs, CUlaunchConfig>;
  } else {
    return std::is_integral_v<Ours> && std::is_integral_v<Theirs> && sizeof(Ours) == sizeof(Theirs) &&
           (std::is_same_v<Ours, char> || std::is_signed_v<Ours> == std::is_signed_v<Theirs>);
  }
}

template <class Ours, class Theirs>
struct Signatures : std::false_type {};
template <class... Ours, class R, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct Signatures<int (*)(Ours...), R (*)(Theirs...)>
    : std::bool_constant<std::is_enum_v<R> && sizeof(R) == sizeof(int) && (fits<Ours, Theirs>() && ...)> {};

// CUDA 13 maps these to later versions, which CUDA 12 drivers do not all export.
constexpr bool is_older(std::string_view symbol) {
  return symbol == "cuEventElapsedTime" || symbol == "cuStreamGetCaptureInfo_v2";
}

#define FUSEBOX_SIGNATURE(name, symbol, ...)                                                                     \
  static_assert(Signatures<int (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature"); \
  static_assert(std::string_view(FUSEBOX_MAPPED(name)) == #symbol || is_older(#symbol), #name " is another symbol");
FUSEBOX_DRIVER_FUNCTIONS(FUSEBOX_SIGNATURE)
FUSEBOX_NVRTC_FUNCTIONS(FUSEBOX_SIGNATURE)

#define FUSEBOX_SAME_PLACE(ours, theirs) \
  static_assert(offsetof(CudaLaunchConfig, ours) == offsetof(CUlaunchConfig, theirs), #ours " lies elsewhere");
static_assert(sizeof(CudaLaunchConfig) == sizeof(CUlaunchConfig));
FUSEBOX_SAME_PLACE(grid, gridDimX)
FUSEBOX_SAME_PLACE(block, blockDimX)
FUSEBOX_SAME_PLACE(shared_bytes, sharedMemBytes)
FUSEBOX_SAME_PLACE(stream, hStream)
FUSEBOX_SAME_PLACE(attributes, attrs)
FUSEBOX_SAME_PLACE(attribute_count, numAttrs)
static_assert(sizeof(CudaLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(CudaLaunchAttribute, id) == offsetof(CUlaunchAttribute, id));
static_assert(offsetof(CudaLaunchAttribute, number) == offsetof(CUlaunchAttribute, value));
#if FUSEBOX_PLANTED == 1
FUSEBOX_SIGNATURE(cuDeviceGet, cuDeviceGet, int*)
#elif FUSEBOX_PLANTED == 2
FUSEBOX_SIGNATURE(cuMemFree, cuMemFree_v2, unsigned)
#elif FUSEBOX_PLANTED == 3
FUSEBOX_SIGNATURE(cuMemFree, cuMemFree, uint64_t)
#elif FUSEBOX_PLANTED == 4
FUSEBOX_SIGNATURE(cuModuleLoadData, cuModuleLoadData, void**, void*)
#endif

#define FUSEBOX_SAME(name) static_assert(static_cast<int>(fusebox::name) == static_cast<int>(::name))
FUSEBOX_SAME(CUDA_ERROR_OUT_OF_MEMORY);
FUSEBOX_SAME(CUDA_ERROR_NO_DEVICE);
FUSEBOX_SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
FUSEBOX_SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
FUSEBOX_SAME(CUDA_ERROR_LAUNCH_TIMEOUT);
FUSEBOX_SAME(CUDA_ERROR_ASSERT);
FUSEBOX_SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
FUSEBOX_SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
FUSEBOX_SAME(CUDA_ERROR_MISALIGNED_ADDRESS);
FUSEBOX_SAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
FUSEBOX_SAME(CUDA_ERROR_INVALID_PC);
FUSEBOX_SAME(CUDA_ERROR_LAUNCH_FAILED);
FUSEBOX_SAME(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
FUSEBOX_SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
FUSEBOX_SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
FUSEBOX_SAME(CU_STREAM_CAPTURE_STATUS_ACTIVE);
FUSEBOX_SAME(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
FUSEBOX_SAME(CU_GRAPH_USER_OBJECT_MOVE);
FUSEBOX_SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
FUSEBOX_SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
FUSEBOX_SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
FUSEBOX_SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
FUSEBOX_SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);

}  // namespace
}  // namespace fusebox
