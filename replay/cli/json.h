// One JSON object, written field by field in the order of the calls.
//
//   JsonObject().add("ok", true).add("name", "x").text()   // {"ok":true,"name":"x"}
#pragma once

#include <cmath>
#include <concepts>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "ir/text/json.h"

namespace fusebox::cli {

class JsonObject {
 public:
  // Adds a value that is JSON already.
  JsonObject& raw(std::string_view key, std::string_view value) {
    body_ += (body_.empty() ? "" : ",") + json_string(key) + ":" + std::string(value);
    return *this;
  }
  JsonObject& add(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
  JsonObject& add(std::string_view key, const char* value) { return raw(key, json_string(value)); }
  JsonObject& add(std::string_view key, std::same_as<bool> auto value) { return raw(key, value ? "true" : "false"); }
  JsonObject& add(std::string_view key, int64_t value) { return raw(key, std::to_string(value)); }
  // The shortest text that reads back as the number; null if JSON cannot hold it.
  JsonObject& add(std::string_view key, double value) {
    return raw(key, std::isfinite(value) ? fmt::format("{}", value) : "null");
  }
  JsonObject& add(std::string_view key, std::span<const int64_t> values) {
    std::string list;
    for (int64_t v : values) list += (list.empty() ? "" : ",") + std::to_string(v);
    return raw(key, "[" + list + "]");
  }
  std::string text() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

// A list of JSON values.
template <class Range>
std::string json_list(const Range& values) {
  std::string list;
  for (const std::string& v : values) list += (list.empty() ? "" : ",") + v;
  return "[" + list + "]";
}

}  // namespace fusebox::cli
