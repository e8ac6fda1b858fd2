#include "replay/cache/log.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace fusebox {
namespace {

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

}  // namespace

std::function<void(const std::string&)> log_of(std::string_view word) {
  const char* const list = std::getenv("FUSEBOX_LOG");
  if (!list || !has_word(list, word)) return nullptr;
  // Unlike fmt::print, fputs throws nothing where standard error is closed or full.
  return [word = std::string(word)](const std::string& line) {
    std::fputs(fmt::format("fusebox: {}: {}\n", word, line).c_str(), stderr);
  };
}

}  // namespace fusebox
