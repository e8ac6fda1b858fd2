# cmake -DROOT=sources -DHEADERS=a.h;b.h -DVERSION=1.2.3 -DOUTPUT=identity.cc -P module_identity.cmake
# Writes the function that tells a library and its modules whether they were made of the same HEADERS.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/header_closure.cmake")

header_closure(headers "${ROOT}" ${HEADERS})
set(all "")
foreach(header IN LISTS headers)
  file(SHA256 "${ROOT}/${header}" digest)
  string(APPEND all "${header} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING "${digest}" 0 16 digest)
file(WRITE "${OUTPUT}" "#include \"replay/device/module_identity.h\"

extern \"C\" const char* fusebox_module_identity() { return \"${VERSION}-${digest}\"; }
")
