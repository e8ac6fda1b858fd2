// fuzz-dictionary text|bytes [FILE…]: prints a dictionary for libFuzzer, made from the tables. `text`: the words of the
// text form, and other words of the files. `bytes`: identifiers, and numbers as they are encoded in a file.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "fuzz/bytes/mutate_text.h"
#include "ir/module/step.h"
#include "ir/table/attr.h"
#include "ir/table/dtype.h"
#include "ir/table/op.h"
#include "ir/token/lex.h"
#include "serde/bundle_generated.h"
#include "serde/module_generated.h"

namespace {

using namespace fusebox;

void print_entry(const std::string& bytes) {
  std::printf("\"");
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      std::printf("\\%c", c);
    else if (byte < 0x20 || byte >= 0x7f)
      std::printf("\\x%02x", byte);
    else
      std::printf("%c", c);
  }
  std::printf("\"\n");
}

void print_number(uint64_t number, size_t width) {
  std::string bytes;
  for (size_t i = 0; i < width; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
  print_entry(bytes);
}

void text_dictionary(int files, char** paths) {
  std::set<std::string> words(fuzz::table_words().begin(), fuzz::table_words().end());
  for (int i = 0; i < files; ++i) {
    std::ifstream in(paths[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const Tokens tokens(text);
    for (const Token& t : tokens.list()) {
      if (t.kind == TokenKind::kWord || t.kind == TokenKind::kPunctuation || t.kind == TokenKind::kArrow)
        words.emplace(t.text);
    }
  }
  for (const std::string& word : words) print_entry(word);
}

void bytes_dictionary() {
  print_entry(wire::ModuleFileIdentifier());
  print_entry(wire::BundleIdentifier());
  // A vtable's length depends on its fields; an offset in it is small and even.
  for (uint64_t n = 4; n <= 40; n += 2) print_number(n, 2);
  for (const size_t rows : {op_rows().size(), dtype_rows().size(), attr_rows().size(), step_rows().size()}) {
    print_number(rows - 1, 2);
    print_number(rows, 2);
  }
  for (const uint64_t n : {0x0ull, 0x1ull, 0x2ull, 0x20ull, 0x40ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull})
    print_number(n, 4);
  for (const uint64_t n : {0x7fffffffffffffffull, 0x8000000000000000ull, 0xffffffffffffffffull}) print_number(n, 8);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (kind == "text")
    text_dictionary(argc - 2, argv + 2);
  else if (kind == "bytes")
    bytes_dictionary();
  else
    return std::fprintf(stderr, "usage: fuzz-dictionary text|bytes [FILE…]\n"), 2;
  return 0;
}
