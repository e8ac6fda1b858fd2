# The installed package. `cmake --install build --prefix P` leaves the command line, the library, its modules, the public
# headers, and what find_package(Fusebox) reads. Any folder may become P later, too: nothing names P or the build.
#
# The library is shared. It looks for its modules beside itself; a static library would look beside each program that it
# becomes a part of. And a program needs none of the libraries that Fusebox is made with (fmt, SLEEF, xxHash,
# FlatBuffers): it neither finds them nor sees their names.
if(FUSEBOX_SANITIZE)
  return()  # a program would need the sanitizers too
endif()
include(CMakePackageConfigHelpers)

# The headers to include. Headers that these include are installed with them.
set(public_headers
  ir/build/builder.h            # a fusion, op by op
  ir/build/composite.h          # softmax, layer_norm, …
  ir/table/error.h              # the one exception
  ir/text/parse.h               # programs and steps from text
  ir/text/print.h               # and back
  ir/verify/verify.h            # whether a program is one
  passes/pipeline/pipeline.h    # a fusion to kernels and a host program, without running them
  replay/data/file.h            # whole files
  replay/data/input.h           # arguments from specs
  replay/data/npy.h             # arguments and outputs as .npy files
  replay/device/module_loader.h # where modules are looked for
  replay/record/record.h        # a run as a bundle
  replay/record/replay.h        # a bundle again, compared
  replay/run/run.h              # a program and its inputs to outputs
  serde/decode.h                # bytes to bundles and modules
  serde/encode.h)               # and back

add_library(fusebox_shared SHARED)
foreach(room ir serde passes codegen replay)
  target_sources(fusebox_shared PRIVATE $<TARGET_OBJECTS:fusebox_${room}>)
endforeach()
set(map ${PROJECT_SOURCE_DIR}/.cmake/library.map)
set_target_properties(fusebox_shared PROPERTIES
  OUTPUT_NAME fusebox EXPORT_NAME fusebox LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  INSTALL_RPATH "${CMAKE_INSTALL_RPATH}" INSTALL_RPATH_USE_LINK_PATH TRUE)
target_link_options(fusebox_shared PRIVATE LINKER:--version-script=${map} LINKER:--no-undefined)
# For the libraries that the rooms need. Of the rooms' archives nothing is left to link.
target_link_libraries(fusebox_shared PRIVATE fusebox_replay)
target_compile_features(fusebox_shared INTERFACE cxx_std_20)
if(NOT FUSEBOX_DEFECTS)
  target_compile_definitions(fusebox_shared INTERFACE FUSEBOX_WITHOUT_DEFECTS)
endif()
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/Fusebox)
get_property(modules GLOBAL PROPERTY FUSEBOX_MODULES)
install(TARGETS fusebox RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fusebox_shared EXPORT Fusebox
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(modules)
  install(TARGETS ${modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT Fusebox NAMESPACE Fusebox:: FILE FuseboxTargets.cmake DESTINATION ${config})
configure_package_config_file(.cmake/FuseboxConfig.cmake.in ${PROJECT_BINARY_DIR}/package/FuseboxConfig.cmake
  INSTALL_DESTINATION ${config} NO_SET_AND_CHECK_MACRO)
# Before 1.0, a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/FuseboxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/FuseboxConfig.cmake ${PROJECT_BINARY_DIR}/package/FuseboxConfigVersion.cmake
  DESTINATION ${config})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/fusebox)

# The headers are gathered when they are installed, so that they are those of that moment.
install(CODE "
  set(ROOT \"${PROJECT_SOURCE_DIR}\")
  set(HEADERS \"${public_headers}\")
  set(OUTPUT \"${PROJECT_BINARY_DIR}/package/include\")")
install(SCRIPT .cmake/public_headers.cmake)
install(DIRECTORY ${PROJECT_BINARY_DIR}/package/include/fusebox DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
