# cmake "-DFILES=a.cuh;b.cuh" -DOUTPUT=sources.cc -DHEADER=codegen/runtime_sources.h -DTYPE=fusebox::RuntimeHeader
#       -DFUNCTION=fusebox::runtime_headers -P embed_files.cmake
# Writes a source that defines FUNCTION, declared in HEADER: the names and texts of FILES, in the order of their names. TYPE
# is a struct of both.

include(${CMAKE_CURRENT_LIST_DIR}/text_literal.cmake)
list(SORT FILES)
set(rows "")
foreach(file IN LISTS FILES)
  cmake_path(GET file FILENAME name)
  fusebox_text_literal(pieces "${file}")
  string(APPEND rows "    ${TYPE}{\"${name}\",\n${pieces}},\n")
endforeach()

file(WRITE "${OUTPUT}.new" "#include \"${HEADER}\"

std::span<const ${TYPE}> ${FUNCTION}() {
  static const ${TYPE} kFiles[] = {
${rows}};
  return kFiles;
}
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
