# Language, warnings, output folders and build speed: the same for every target.

option(FUSEBOX_WERROR "Warnings are errors" ON)
option(FUSEBOX_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(FUSEBOX_TESTS "Build the tests and benchmarks" ON)
option(FUSEBOX_PYTHON "Build the Python extension" ON)
option(FUSEBOX_ATEN "Build the ATen module where PyTorch is found" ON)
option(FUSEBOX_CUDA "Build the CUDA module" ON)
option(FUSEBOX_WHEEL "Build the wheel, which has everything: what is missing is an error" OFF)
set(FUSEBOX_SANITIZE "" CACHE STRING "Sanitizers for every target, such as address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# Assertions stay on in the everyday build; line tables are enough for a backtrace and half the size of full debug info.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

# Seeded defects (ir/table/defect.h) measure the checks; a release build has them only with this option.
if(CMAKE_BUILD_TYPE STREQUAL Release)
  option(FUSEBOX_DEFECTS "Compile the seeded defects in" OFF)
else()
  option(FUSEBOX_DEFECTS "Compile the seeded defects in" ON)
endif()
if(NOT FUSEBOX_DEFECTS)
  add_compile_definitions(FUSEBOX_WITHOUT_DEFECTS)
endif()

# The command line is in build/bin; the modules that it loads at run time are in build/lib.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Results must not depend on the compiler's choice to fuse a multiplication and an addition.
add_compile_options(-ffp-contract=off -Wall -Wextra)
if(FUSEBOX_WERROR)
  add_compile_options(-Werror)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 wrongly warns of overlapping copies when strings are concatenated (GCC bug 105651).
  add_compile_options(-Wno-restrict)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # clang 19 warns of std::get_temporary_buffer, which stable_sort of libstdc++ 12 uses.
  add_compile_options(-Wno-deprecated-declarations)
endif()

if(FUSEBOX_SANITIZE)
  add_compile_options(-fsanitize=${FUSEBOX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FUSEBOX_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Under sanitizers GCC reports false positives of these warnings.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
endif()
if(FUSEBOX_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "FUSEBOX_FUZZ needs clang: use the preset 'fuzz'")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(FUSEBOX_CCACHE ccache)
if(FUSEBOX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FUSEBOX_CCACHE})
endif()

include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} FUSEBOX_LINKER_${linker})
  if(FUSEBOX_LINKER_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
