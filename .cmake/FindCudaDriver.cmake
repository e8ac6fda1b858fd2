# The headers of the CUDA driver API and of NVRTC: target CudaDriver::Headers. Neither library is linked; both are loaded
# at run time. NVRTC_LIBRARY is the libnvrtc.so.13 that was found, to which the build folder gets a link.
#
# They come from one CUDA 13 toolkit (CUDA_HOME, /usr/local/cuda), or else from the PyPI packages nvidia-cuda-nvrtc and
# nvidia-cuda-runtime of Python_EXECUTABLE.

set(cuda_roots "$ENV{CUDA_HOME}" /usr/local/cuda)
if(Python_EXECUTABLE)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -I -c
            "import importlib.util as u; s = u.find_spec('nvidia.cu13'); print(';'.join(s.submodule_search_locations) if s else '')"
    OUTPUT_VARIABLE cuda_wheels OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND cuda_roots ${cuda_wheels})
endif()

# Takes the first place that has everything, so that headers and compiler have one version.
foreach(root ${cuda_roots})
  if(EXISTS ${root}/include/cuda.h AND EXISTS ${root}/include/nvrtc.h)
    set(cuda_roots ${root})
    break()
  endif()
endforeach()

find_path(CUDA_DRIVER_INCLUDE_DIR cuda.h HINTS ${cuda_roots} PATH_SUFFIXES include)
find_path(NVRTC_INCLUDE_DIR nvrtc.h HINTS ${cuda_roots} PATH_SUFFIXES include)
find_file(NVRTC_LIBRARY NAMES libnvrtc.so.13 HINTS ${cuda_roots} PATH_SUFFIXES lib64 lib lib/x86_64-linux-gnu)
mark_as_advanced(CUDA_DRIVER_INCLUDE_DIR NVRTC_INCLUDE_DIR NVRTC_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaDriver REQUIRED_VARS CUDA_DRIVER_INCLUDE_DIR NVRTC_INCLUDE_DIR)

if(CudaDriver_FOUND AND NOT TARGET CudaDriver::Headers)
  if(NOT NVRTC_LIBRARY)
    message(STATUS "libnvrtc.so.13 not found: it has to be on the loader's path at run time")
  endif()
  add_library(CudaDriver::Headers INTERFACE IMPORTED)
  set_target_properties(CudaDriver::Headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CUDA_DRIVER_INCLUDE_DIR};${NVRTC_INCLUDE_DIR}")
endif()
