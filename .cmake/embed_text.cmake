# cmake -DFILE=page.html -DOUTPUT=page.cc -DHEADER=replay/picture/page.h -DFUNCTION=fusebox::picture::page_template -P embed_text.cmake
# Writes a source that defines FUNCTION, declared in HEADER: the text of FILE.

include(${CMAKE_CURRENT_LIST_DIR}/text_literal.cmake)
fusebox_text_literal(pieces "${FILE}")

file(WRITE "${OUTPUT}.new" "#include \"${HEADER}\"

std::string_view ${FUNCTION}() {
  return
${pieces};
}
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
