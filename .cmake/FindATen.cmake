# ATen, the C++ library of PyTorch 2.11 or later: target ATen::ATen (and ATen::Python for extension modules).
#
# Only libtorch_cpu and libc10 are linked, for every kind of PyTorch. So a build against a CUDA PyTorch needs no CUDA
# libraries, and a program starts without them. PyTorch's own TorchConfig.cmake would require both.
#
# FUSEBOX_TORCH_ROOT names the folder of the Python package `torch`; by default Python_EXECUTABLE tells it.

set(FUSEBOX_TORCH_ROOT "" CACHE PATH "Folder of the Python package torch")
if(NOT FUSEBOX_TORCH_ROOT AND Python_EXECUTABLE)
  # Finds the package without importing it, which would take seconds. -I looks past the separate environment in which pip
  # builds, to the one that it installs into. If that has none, the build environment's package is used.
  foreach(aten_look "-I" "-s")
    if(NOT aten_found)
      execute_process(
        COMMAND ${Python_EXECUTABLE} ${aten_look} -c
                "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
        OUTPUT_VARIABLE aten_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endforeach()
  set(FUSEBOX_TORCH_ROOT "${aten_found}" CACHE PATH "Folder of the Python package torch" FORCE)
endif()

set(ATen_VERSION "")
if(FUSEBOX_TORCH_ROOT AND EXISTS ${FUSEBOX_TORCH_ROOT}/version.py)
  file(STRINGS ${FUSEBOX_TORCH_ROOT}/version.py aten_line REGEX "^__version__ = ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ATen_VERSION "${aten_line}")
endif()

find_path(ATEN_INCLUDE_DIR ATen/ATen.h HINTS ${FUSEBOX_TORCH_ROOT}/include NO_DEFAULT_PATH)
find_library(ATEN_TORCH_CPU torch_cpu HINTS ${FUSEBOX_TORCH_ROOT}/lib NO_DEFAULT_PATH)
find_library(ATEN_C10 c10 HINTS ${FUSEBOX_TORCH_ROOT}/lib NO_DEFAULT_PATH)
find_library(ATEN_TORCH_PYTHON torch_python HINTS ${FUSEBOX_TORCH_ROOT}/lib NO_DEFAULT_PATH)
mark_as_advanced(ATEN_INCLUDE_DIR ATEN_TORCH_CPU ATEN_C10 ATEN_TORCH_PYTHON)

if(ATen_VERSION AND ATen_VERSION VERSION_LESS 2.11)
  message(STATUS "PyTorch ${ATen_VERSION} in ${FUSEBOX_TORCH_ROOT} is older than 2.11 and not used")
  set(ATEN_INCLUDE_DIR ATEN_INCLUDE_DIR-NOTFOUND)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ATen
  REQUIRED_VARS ATEN_TORCH_CPU ATEN_C10 ATEN_INCLUDE_DIR VERSION_VAR ATen_VERSION)

if(ATen_FOUND AND NOT TARGET ATen::ATen)
  add_library(ATen::ATen INTERFACE IMPORTED)
  set_target_properties(ATen::ATen PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${ATEN_INCLUDE_DIR};${ATEN_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "${ATEN_TORCH_CPU};${ATEN_C10}")
  if(ATEN_TORCH_PYTHON)
    add_library(ATen::Python INTERFACE IMPORTED)
    set_target_properties(ATen::Python PROPERTIES INTERFACE_LINK_LIBRARIES "ATen::ATen;${ATEN_TORCH_PYTHON}")
  endif()
endif()
