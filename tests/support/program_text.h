// The texts of programs that several tests share: tests/support/programs/NAME.fir.
//
//   const Module m = parse_module(program_text("softmax"));
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

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

}  // namespace fusebox::testing
