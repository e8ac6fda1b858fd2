#include "replay/record/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace fusebox {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

struct Line {
  char mark;
  std::string_view text;
};

// Longest common subsequence of the lines between the common head and tail.
void middle(std::span<const std::string_view> a, std::span<const std::string_view> b, std::vector<Line>& out) {
  constexpr size_t kLimit = 4000;
  if (a.size() > kLimit || b.size() > kLimit) {
    for (auto l : a) out.push_back({'-', l});
    for (auto l : b) out.push_back({'+', l});
    return;
  }
  const size_t width = b.size() + 1;
  std::vector<uint16_t> length((a.size() + 1) * width, 0);
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      length[i * width + j] = a[i] == b[j] ? static_cast<uint16_t>(length[(i + 1) * width + j + 1] + 1)
                                           : std::max(length[(i + 1) * width + j], length[i * width + j + 1]);
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i]});
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || length[(i + 1) * width + j] >= length[i * width + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

}  // namespace

std::string text_diff(std::string_view before, std::string_view after, size_t context) {
  const auto a = lines_of(before), b = lines_of(after);
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  if (head == a.size() && head == b.size()) return {};
  std::vector<Line> all;
  for (size_t i = 0; i < head; ++i) all.push_back({' ', a[i]});
  middle(std::span(a).subspan(head, a.size() - head - tail), std::span(b).subspan(head, b.size() - head - tail), all);
  for (size_t i = a.size() - tail; i < a.size(); ++i) all.push_back({' ', a[i]});
  std::vector<bool> shown(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].mark != ' ')
      for (size_t k = i >= context ? i - context : 0; k < std::min(all.size(), i + context + 1); ++k) shown[k] = true;
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!shown[i]) {
      if (i == 0 || shown[i - 1]) text += "  …\n";
      continue;
    }
    text += all[i].mark;
    text += ' ';
    text += all[i].text;
    text += '\n';
  }
  return text;
}

}  // namespace fusebox
