# cmake -DHEADERS=a.cuh;b.cuh -DOUTPUT=runtime_sources.cc -P embed_headers.cmake
# Writes the texts of HEADERS as string constants, in the order of their names.

list(SORT HEADERS)
set(constants "")
set(rows "")
set(count 0)
foreach(header IN LISTS HEADERS)
  cmake_path(GET header FILENAME name)
  file(READ "${header}" text)
  # A string literal may be limited to 64 KiB; adjacent literals are joined.
  set(pieces "")
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 16000 piece)
    string(APPEND pieces "R\"fusebox_header(${piece})fusebox_header\"\n")
    math(EXPR at "${at} + 16000")
  endwhile()
  if(length EQUAL 0)
    set(pieces "\"\"\n")
  endif()
  string(APPEND constants "constexpr std::string_view kText${count} =\n${pieces};\n")
  string(APPEND rows "    RuntimeHeader{\"${name}\", kText${count}},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE "${OUTPUT}.new" "#include \"codegen/runtime_sources.h\"

#include <array>

namespace fusebox {
namespace {

${constants}
constexpr std::array<RuntimeHeader, ${count}> kHeaders{
${rows}};

}  // namespace

std::span<const RuntimeHeader> runtime_headers() { return kHeaders; }

}  // namespace fusebox
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
