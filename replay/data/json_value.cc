#include "replay/data/json_value.h"

#include <charconv>

#include "ir/table/error.h"

namespace fusebox {
namespace {

constexpr int kDepth = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  JsonValue whole() {
    JsonValue v = value(0);
    skip();
    if (at_ != text_.size()) fail("the end");
    return v;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw Error(ErrorCode::kSyntax, "this is no JSON: " + wanted + " is missing", std::to_string(at_));
  }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(std::string("`") + c + "`");
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  JsonValue value(int depth) {
    if (depth > kDepth) fail("an end to the nesting");
    skip();
    JsonValue v;
    if (at_ == text_.size()) fail("a value");
    const char c = text_[at_];
    if (c == '{') {
      v.kind = JsonValue::Kind::kObject;
      ++at_;
      if (take('}')) return v;
      do {
        skip();
        std::string key = string();
        need(':');
        v.names.push_back(std::move(key));
        v.items.push_back(value(depth + 1));
      } while (take(','));
      need('}');
    } else if (c == '[') {
      v.kind = JsonValue::Kind::kList;
      ++at_;
      if (take(']')) return v;
      do v.items.push_back(value(depth + 1));
      while (take(','));
      need(']');
    } else if (c == '"') {
      v.kind = JsonValue::Kind::kString;
      v.text = string();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      v.kind = JsonValue::Kind::kNumber;
      const size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
      v.text = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
      at_ += v.text.size();
    } else if (take("true") || take("false")) {
      v.kind = JsonValue::Kind::kBool;
      v.text = c == 't' ? "true" : "false";
    } else if (!take("null")) {
      fail("a value");
    }
    return v;
  }

  unsigned hex4() {
    unsigned code = 0;
    if (at_ + 4 > text_.size()) fail("a code of four digits");
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, code, 16);
    if (error != std::errc() || end != text_.data() + at_ + 4) fail("a code of four digits");
    at_ += 4;
    return code;
  }

  void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out += static_cast<char>((0xFF00u >> (more + 1) & 0xFFu) | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80u | (code >> (6 * i) & 0x3Fu));
  }

  std::string string() {
    if (at_ == text_.size() || text_[at_] != '"') fail("a string");
    ++at_;
    std::string out;
    for (;;) {
      if (at_ == text_.size()) fail("the end of a string");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ == text_.size()) fail("the end of a string");
      const char e = text_[at_++];
      if (e == 'u') {
        unsigned code = hex4();
        if (code >= 0xD800 && code < 0xDC00 && take("\\u"))
          code = 0x10000 + ((code & 0x3FFu) << 10) + (hex4() & 0x3FFu);
        append_utf8(out, code);
        continue;
      }
      constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      const size_t i = kNames.find(e);
      if (i == std::string_view::npos) fail("a known escape");
      out += kMeant[i];
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

[[noreturn]] void wrong(const char* wanted, std::string_view place) {
  throw Error(ErrorCode::kInvalidField, std::string("there should be ") + wanted + " here", std::string(place));
}

template <class T>
T parsed(const JsonValue& v, const char* wanted) {
  T result{};
  if (v.kind != JsonValue::Kind::kNumber) wrong(wanted, v.text);
  const char* end = v.text.data() + v.text.size();
  const auto [at, error] = std::from_chars(v.text.data(), end, result);
  if (error != std::errc() || at != end) wrong(wanted, v.text);
  return result;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == key) return &items[i];
  return nullptr;
}

const JsonValue& JsonValue::at(std::string_view key) const {
  if (const JsonValue* v = find(key)) return *v;
  wrong("a field of this name", key);
}

uint64_t JsonValue::count() const { return parsed<uint64_t>(*this, "a whole number"); }
double JsonValue::number() const { return parsed<double>(*this, "a number"); }

const std::string& JsonValue::string() const {
  if (kind != Kind::kString) wrong("a string", text);
  return text;
}

const std::vector<JsonValue>& JsonValue::list() const {
  if (kind != Kind::kList) wrong("a list", text);
  return items;
}

JsonValue parse_json(std::string_view text) { return Reader(text).whole(); }

}  // namespace fusebox
