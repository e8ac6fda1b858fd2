#include <array>

#include "replay/picture/render.h"

namespace fusebox::picture {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The length of the UTF-8 sequence at `at` if it encodes a character that XML 1.0 allows; 0 if not.
size_t sequence(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(at);
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0) return 0;
  uint32_t code = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(at + i) >> 6 != 2) return 0;
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kLowest = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLowest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  const bool is_control = code < 0x20 && code != '\n' && code != '\t';
  return is_control || code == 0x7f || code == 0xfffe || code == 0xffff ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence(text, i);
    out += length == 0 ? kReplacement : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Paul Tol's light scheme, made to be told apart with any colour vision, with dark text on it.
std::string colour_of(uint32_t group) {
  constexpr std::array<std::string_view, 8> kColours = {"#77aadd", "#ee8866", "#eedd88", "#ffaabb",
                                                        "#99ddff", "#44bb99", "#bbcc33", "#aaaa00"};
  return group == 0 ? "#ffffff" : std::string(kColours[(group - 1) % kColours.size()]);
}

std::string hover_text(const Picture& picture, size_t domain, IdGraphKind kind) {
  const DomainPicture& d = picture.domains[domain];
  std::string out = d.full_name + ": " + std::string(text(d.iter_type)) + ", extent " + d.extent;
  if (d.parallel != ParallelType::kSerial) out += ", " + std::string(text(d.parallel));
  if (d.allocation) out += ", place " + std::to_string(*d.allocation) + " of the allocation";
  if (!d.made_by.empty()) out += "\n" + d.made_by;
  out += d.index.empty() ? "\nindex: only as it is read" : "\nindex: " + d.index;
  if (!d.check.empty())
    out += "\npredicate: " + d.check;
  else if (d.may_leave)
    out += "\npredicate: none of its own, though it may leave its extent";
  else if (!d.index.empty())
    out += "\npredicate: none, it stays in its extent";
  if (!d.reason.empty()) out += "\nwhy: " + d.reason;
  const uint32_t number = d.group[static_cast<size_t>(kind)];
  out += "\n" + std::string(text(kind)) + " group ";
  if (number == 0) {
    out += "of its own";
  } else {
    constexpr size_t kMost = 12;
    const Group& members = picture.groups[static_cast<size_t>(kind)][number - 1];
    out += std::to_string(number) + ":";
    for (size_t i = 0; i < members.size() && i < kMost; ++i) out += " " + picture.domains[members[i]].full_name;
    if (members.size() > kMost) out += " and " + std::to_string(members.size() - kMost) + " more";
  }
  for (const Read& r : d.reads) out += "\n" + r.by + " reads it at: " + r.index;
  return out;
}

}  // namespace fusebox::picture
