# Finds the libraries that Fusebox needs. All may come from CMAKE_PREFIX_PATH; nothing is downloaded.

find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)

find_program(FLATC flatc REQUIRED)
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
find_path(SLEEF_INCLUDE_DIR sleef.h REQUIRED)
find_library(SLEEF_LIBRARY sleef REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
mark_as_advanced(FLATC FLATBUFFERS_INCLUDE_DIR SLEEF_INCLUDE_DIR SLEEF_LIBRARY XXHASH_INCLUDE_DIR)

# Only the header part of FlatBuffers is used: builder, tables and verifier.
add_library(flatbuffers_headers INTERFACE IMPORTED)
set_target_properties(flatbuffers_headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${FLATBUFFERS_INCLUDE_DIR})

add_library(sleef INTERFACE IMPORTED)
set_target_properties(sleef PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES ${SLEEF_INCLUDE_DIR} INTERFACE_LINK_LIBRARIES ${SLEEF_LIBRARY})

# Header only, so that the same xxHash is compiled in everywhere.
add_library(xxhash INTERFACE IMPORTED)
set_target_properties(xxhash PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES ${XXHASH_INCLUDE_DIR} INTERFACE_COMPILE_DEFINITIONS XXH_INLINE_ALL)

# The interpreter whose PyTorch and pybind11 are used: by default the project's .venv.
if(NOT Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

if(FUSEBOX_ATEN)
  find_package(ATen)
endif()
if(FUSEBOX_CUDA)
  find_package(CudaDriver)
endif()
if(FUSEBOX_PYTHON AND Python_Development.Module_FOUND)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir
    OUTPUT_VARIABLE pybind11_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 QUIET CONFIG HINTS ${pybind11_folder})
endif()
if(FUSEBOX_WHEEL AND NOT (TARGET ATen::ATen AND TARGET pybind11::module AND FUSEBOX_CUDA))
  message(FATAL_ERROR "the wheel needs pybind11 and PyTorch 2.11 or later where it is built: pip install torch, then again")
endif()
if(FUSEBOX_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark QUIET)
endif()
