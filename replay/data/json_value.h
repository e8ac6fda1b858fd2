// Parses JSON: the answers of workers, the state that a campaign keeps between its runs, and the results of an earlier
// `fusebox bench --json`. replay/cli/json.h writes JSON.
//
//   const JsonValue v = parse_json(R"({"seed":7,"ranges":[[0,3]]})");
//   v.at("seed").count(), v.at("ranges").items[0].items[1].count()   // 7, 3
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

// A part that is missing or of another kind throws kInvalidField.
struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kList, kObject };
  Kind kind = Kind::kNull;
  std::string text;  // of a number, a string, `true` or `false`
  std::vector<JsonValue> items;
  std::vector<std::string> names;  // an object's keys, one for each item

  const JsonValue* find(std::string_view key) const;
  const JsonValue& at(std::string_view key) const;
  uint64_t count() const;  // an unsigned number of up to 64 bits
  double number() const;
  const std::string& string() const;
  const std::vector<JsonValue>& list() const;
};

// Throws kSyntax. The place is the offset of the first byte that does not fit.
JsonValue parse_json(std::string_view text);

}  // namespace fusebox
