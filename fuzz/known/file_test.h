// File tests: a program and everything that is expected of it, in one text. tests/filetests holds them, one in a file, and its
// README lists the kinds. They are compiled in, so that a campaign can ask for them too.
//
//   const FileTest t = parse_file_test(text);
//   outcome_of(t.request, t.input) == t.expected
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::fuzz {

struct FileTestText {
  std::string_view name;  // of the file
  std::string_view text;
};
// Those of tests/filetests, in the order of their names.
std::span<const FileTestText> file_test_texts();

// What a file asks for: its kind and the words after it.
struct FileRequest {
  std::string kind;
  std::vector<std::string> options;

  bool has(std::string_view word) const;
};

struct FileTest {
  FileRequest request;
  std::string input;     // a module, with the line of the request
  std::string expected;  // empty before it was blessed
};

// The line between the input and what is expected.
inline constexpr std::string_view kExpectLine = "// expect:\n";

// A text without a request has an empty kind.
FileTest parse_file_test(const std::string& text);

bool is_file_test_kind(std::string_view kind);

// The result; for an error its code and place, and its sentence if the request has the word `sentence`. Throws kInternal if
// the input does not survive text and bytes, or what a kind promises does not hold.
std::string outcome_of(const FileRequest& request, const std::string& input);

}  // namespace fusebox::fuzz
