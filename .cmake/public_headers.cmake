# cmake -DROOT=sources -DHEADERS=a.h;b.h -DOUTPUT=folder -P public_headers.cmake
# Copies HEADERS and all that they include to OUTPUT/fusebox. An include of "ir/graph/graph.h" becomes one of
# "fusebox/ir/graph/graph.h", so that a program needs one include folder and no name of it is as general as `ir`.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/header_closure.cmake")

header_closure(headers "${ROOT}" ${HEADERS})
file(REMOVE_RECURSE "${OUTPUT}")
foreach(header IN LISTS headers)
  file(READ "${ROOT}/${header}" text)
  string(REGEX REPLACE "(# *include )\"([^\"\n]+)\"" "\\1\"fusebox/\\2\"" text "${text}")
  file(WRITE "${OUTPUT}/fusebox/${header}" "${text}")
endforeach()
