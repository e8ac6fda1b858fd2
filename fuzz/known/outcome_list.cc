#include "fuzz/known/outcome_list.h"

#include <fmt/format.h>

#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The sentence with `#` for each number, `%_` for each name of a value and `_` for whatever it quotes.
std::string without_names(std::string_view sentence) {
  std::string out;
  for (size_t i = 0; i < sentence.size();) {
    if (const size_t end = sentence.find('`', i + 1); sentence[i] == '`' && end != std::string_view::npos) {
      out += "`_`";
      i = end + 1;
      continue;
    }
    const bool is_name = sentence[i] == '%' && i + 1 < sentence.size() && is_name_char(sentence[i + 1]);
    const bool is_number = is_digit(sentence[i]) && (i == 0 || !is_name_char(sentence[i - 1]));
    if (!is_name && !is_number) {
      out += sentence[i++];
      continue;
    }
    out += is_name ? "%_" : "#";
    for (i += is_name ? 1 : 0; i < sentence.size() && (is_name ? is_name_char(sentence[i]) : is_digit(sentence[i]));)
      ++i;
  }
  return out;
}

}  // namespace

void Checksum::add(std::string_view bytes) {
  const auto step = [&](uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001b3u; };
  for (const char c : bytes) step(static_cast<uint8_t>(c));
  step(0xff);  // no byte of UTF-8: texts do not run together
}

std::string Checksum::text() const { return fmt::format("{:08x}", static_cast<uint32_t>(state_ ^ state_ >> 32)); }

bool OutcomeList::add(std::string_view what, const std::function<std::string()>& call, std::string_view subject) {
  ++count_;
  try {
    const std::string result = call();
    ++accepted_;
    accepted_checksum_.add(what);
    accepted_checksum_.add(result);
    return true;
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw Error(e.code, fmt::format("{}: {}", what, e.what()), e.place);
    std::string sentence = without_names(e.what());
    if (!subject.empty() && sentence.starts_with(std::string(subject) + " "))
      sentence.replace(0, subject.size(), "<op>");
    Group& group = refused_[fmt::format("{}\n  {}\n", code_text(e.code), sentence)];
    if (group.count++ == 0) group.first = fmt::format("`{}`{}{}", what, e.place.empty() ? "" : " at ", e.place);
    for (const std::string_view part : {what, std::string_view(e.place), std::string_view(e.what())})
      group.checksum.add(part);
    return false;
  }
}

std::string OutcomeList::text() const {
  std::string out = fmt::format("accepted: {} of {}, checksum {}\n", accepted_, count_, accepted_checksum_.text());
  for (const auto& [error, group] : refused_) {
    const size_t split = error.find('\n');
    out += fmt::format("{}: {}, checksum {}, first {}{}", error.substr(0, split), group.count, group.checksum.text(),
                       group.first, error.substr(split));
  }
  return out;
}

std::string outcome_text(const std::function<std::string()>& call) {
  try {
    return "ok " + call();
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    return fmt::format("error {}{}{}: {}", code_text(e.code), e.place.empty() ? "" : " at ", e.place, e.what());
  }
}

}  // namespace fusebox::fuzz
