# cmake -DFILES="a.cc;b.h" -DROOT=. -DOUTPUT=build_digest.cc -DHEADER=replay/cache/build_digest.h -DFUNCTION=fusebox::build_digest -P source_digest.cmake
# Writes a source that defines FUNCTION, declared in HEADER: a digest of the names and contents of FILES.

set(all "")
foreach(file IN LISTS FILES)
  file(SHA256 "${file}" sum)
  file(RELATIVE_PATH name "${ROOT}" "${file}")
  string(APPEND all "${name} ${sum}\n")
endforeach()
string(SHA256 sum "${all}")
string(SUBSTRING "${sum}" 0 32 sum)

# The same digest leaves the source as it is, so that nothing is compiled again.
set(text "#include \"${HEADER}\"

std::string_view ${FUNCTION}() { return \"${sum}\"; }
")
set(old "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT old STREQUAL text)
  file(WRITE "${OUTPUT}.new" "${text}")
  file(RENAME "${OUTPUT}.new" "${OUTPUT}")
endif()
