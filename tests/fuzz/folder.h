// A folder for one test's campaign. It does not exist at first, and is removed at the end.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace fusebox::fuzz {

class Folder {
 public:
  // `name` is unique among the tests of a program.
  explicit Folder(const std::string& name)
      : path_(testing::TempDir() + "fusebox_" + name + "_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fusebox::fuzz
