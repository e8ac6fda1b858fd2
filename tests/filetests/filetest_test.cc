// Filetests: each tests/filetests/KIND/NAME.fir holds one program and the expected result.
//
//   // test: lower index 32        KIND and options; see each kind below
//   fusion @f { … }                the input: a module
//   // expect:
//   kernel @f { … }                the whole expected text, or `error E0203 at %y`
//
// Every input also round-trips text and bytes. BLESS=1 writes the actual results into the files, but is refused if CI
// is set.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "fuzz/known/file_test.h"
#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

namespace fs = std::filesystem;

std::string folder() { return "tests/filetests"; }

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class FileTestFile : public ::testing::TestWithParam<std::string> {};

TEST_P(FileTestFile, GivesWhatTheFileSays) {
  const fs::path path = fs::path(folder()) / GetParam();
  const FileTest test = parse_file_test(read(path));
  ASSERT_TRUE(is_file_test_kind(test.request.kind)) << path << ": the first line is not `// test: KIND`";
  ASSERT_EQ(path.parent_path().filename().string(), test.request.kind)
      << path << ": the file lies in another kind's folder";
  const std::string actual = outcome_of(test.request, test.input);
  if (std::getenv("BLESS") == nullptr) {
    EXPECT_EQ(actual, test.expected) << path << "; if the new text is right, run with BLESS=1";
    return;
  }
  ASSERT_EQ(std::getenv("CI"), nullptr) << "BLESS rewrites expectations: not where CI is set";
  if (actual == test.expected) return;
  std::ofstream(path, std::ios::binary) << test.input << kExpectLine << actual;
  std::cout << "blessed " << path.string() << "\n";
}

std::vector<std::string> files() {
  std::vector<std::string> found;
  if (!fs::exists(folder())) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder()))
    if (entry.path().extension() == ".fir") found.push_back(fs::relative(entry.path(), folder()).string());
  std::sort(found.begin(), found.end());
  return found;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 4);
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, FileTestFile, ::testing::ValuesIn(files()), test_name);

}  // namespace
}  // namespace fusebox::fuzz
