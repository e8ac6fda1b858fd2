// The texts of programs that several tests share: tests/support/programs/NAME.fir.
//
//   const Module m = parse_module(replaced(program_text("softmax"), "ROWS", 3));
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace fusebox::testing {

// The text of a file of the source tree, which is the folder that tests run in. Throws if there is none.
inline std::string file_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read; tests run in the source folder");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string program_text(const std::string& name) {
  return file_text("tests/support/programs/" + name + ".fir");
}

// The text with another one, or a number, in place of a word, wherever it stands. The other one does not have the word.
inline std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) text.replace(at, word.size(), by);
  return text;
}
inline std::string replaced(std::string text, const std::string& word, int64_t by) {
  return replaced(std::move(text), word, std::to_string(by));
}

}  // namespace fusebox::testing
