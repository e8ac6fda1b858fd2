# cmake -DFILE=page.html -DOUTPUT=page.cc -DHEADER=replay/picture/page.h -DFUNCTION=fusebox::picture::page_template -P embed_text.cmake
# Writes a source that defines FUNCTION, declared in HEADER: the text of FILE.

file(READ "${FILE}" text)
# A string literal may be limited to 64 KiB; adjacent literals are joined.
set(pieces "")
string(LENGTH "${text}" length)
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 16000 piece)
  string(APPEND pieces "R\"fusebox_text(${piece})fusebox_text\"\n")
  math(EXPR at "${at} + 16000")
endwhile()

file(WRITE "${OUTPUT}.new" "#include \"${HEADER}\"

std::string_view ${FUNCTION}() {
  return
${pieces};
}
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
