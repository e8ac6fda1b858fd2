# What the rooms' CMakeLists.txt share.

set(FUSEBOX_GENERATED ${PROJECT_BINARY_DIR}/generated)

# fusebox_room(NAME SOURCES... DEPENDS targets... [PRIVATE targets...])
# The static library fusebox_NAME, or an interface library while the room has no source yet.
function(fusebox_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "SOURCES;DEPENDS;PRIVATE")
  set(target fusebox_${name})
  if(room_SOURCES)
    add_library(${target} STATIC ${room_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} ${scope} ${room_DEPENDS})
endfunction()

# fusebox_sources(RESULT FOLDER [EXCEPT folders...]): every .cc below FOLDER of this room, less the folders named.
function(fusebox_sources result folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "EXCEPT")
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE root)
  string(REGEX REPLACE "/$" "" root ${root})
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${root}/*.cc)
  foreach(except ${arg_EXCEPT})
    list(FILTER found EXCLUDE REGEX "^${root}/${except}/")
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Links a program of tests or benchmarks to the rooms whose headers its sources include, so that it builds
# as soon as those do.
function(fusebox_link_included_rooms target)
  get_target_property(files ${target} SOURCES)
  list(FILTER files INCLUDE REGEX "\\.cc$")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  foreach(room fuzz replay codegen passes serde ir)
    foreach(file ${files})
      file(STRINGS ${file} lines REGEX "^#include \"${room}/")
      if(lines)
        target_link_libraries(${target} PRIVATE fusebox_${room})
        break()
      endif()
    endforeach()
  endforeach()
endfunction()
