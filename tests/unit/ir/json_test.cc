#include "ir/text/json.h"

#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "tests/support/random_module.h"

namespace fusebox {
namespace {

// Whether a text is one JSON value (RFC 8259).
class JsonChecker {
 public:
  static bool accepts(std::string_view text) {
    JsonChecker c(text);
    return c.value() && c.text_.empty();
  }

 private:
  explicit JsonChecker(std::string_view text) : text_(text) {}

  bool take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool value() {
    if (take('{')) return members('}', true);
    if (take('[')) return members(']', false);
    return string() || number() || take(std::string_view("true")) || take(std::string_view("false")) ||
           take(std::string_view("null"));
  }
  bool members(char close, bool named) {
    if (take(close)) return true;
    do {
      if (named && !(string() && take(':'))) return false;
      if (!value()) return false;
    } while (take(','));
    return take(close);
  }
  bool string() {
    if (!take('"')) return false;
    while (!text_.empty() && text_[0] != '"') {
      if (static_cast<unsigned char>(text_[0]) < 0x20) return false;
      const size_t length = text_[0] != '\\' ? 1 : text_.size() > 1 && text_[1] == 'u' ? 6 : 2;
      text_.remove_prefix(std::min(length, text_.size()));
    }
    return take('"');
  }
  bool number() {
    const size_t end = text_.find_first_not_of("+-.0123456789eE");
    const bool starts = !text_.empty() && (text_[0] == '-' || (text_[0] >= '0' && text_[0] <= '9'));
    if (!starts || end == 0) return false;
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end);
    return true;
  }

  std::string_view text_;
};

TEST(Json, EveryModuleIsValidJson) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const std::string text = to_json(testing::random_module(seed));
    ASSERT_TRUE(JsonChecker::accepts(text)) << "seed " << seed << "\n" << text;
  }
}

TEST(Json, SaysWhatTheGraphHolds) {
  const Graph g = parse_graph("fusion @f {\n  %x = input f32[5]\n  %y = add %x, 0.5_f32\n  output %y alias %x\n}");
  EXPECT_EQ(
      to_json(g),
      "{\"name\":\"f\",\"level\":\"math\",\"values\":["
      "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"f32\",\"def\":0,\"tensor\":0},"
      "{\"constant\":\"5\",\"kind\":\"scalar\",\"dtype\":\"index\"},"
      "{\"constant\":\"0.5_f32\",\"kind\":\"scalar\",\"dtype\":\"f32\"},"
      "{\"name\":\"y\",\"kind\":\"tensor\",\"dtype\":\"f32\",\"def\":1,\"tensor\":1}],"
      "\"tensors\":[{\"value\":0,\"logical\":[0],\"memory\":\"unset\"},{\"value\":3,\"logical\":[1],\"memory\":"
      "\"unset\"}],"
      "\"domains\":[{\"name\":\"i0\",\"tensor\":0,\"iter_type\":\"iter\",\"parallel\":\"serial\",\"extent\":1},"
      "{\"name\":\"i0\",\"tensor\":1,\"iter_type\":\"iter\",\"parallel\":\"serial\",\"extent\":1}],\"transforms\":[],"
      "\"ops\":[{\"kind\":\"input\",\"operands\":[],\"results\":[0]},{\"kind\":\"add\",\"operands\":[0,2],\"results\":["
      "3]},"
      "{\"kind\":\"output\",\"operands\":[3,0],\"results\":[]}],\"regions\":[{\"ops\":[0,1,2]}]}");
}

TEST(Json, StringsAreUtf8) {
  EXPECT_EQ(json_string("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
  EXPECT_EQ(json_string("größe"), "\"größe\"");
  EXPECT_EQ(json_string("\xff\xc0\xaf"), "\"\\u00ff\\u00c0\\u00af\"");
  EXPECT_EQ(json_string("\xed\xa0\x80"), "\"\\u00ed\\u00a0\\u0080\"");  // a surrogate
}

}  // namespace
}  // namespace fusebox
