#include "replay/cli/refused.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/domain/domain.h"
#include "ir/text/print.h"

namespace fusebox::cli {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%'; }

bool has_word(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_part_of_name(line[at - 1])) && (end == line.size() || !is_part_of_name(line[end]))) return true;
  }
  return false;
}

size_t depth_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// The tensor and the domain named by a place.
struct Named {
  ValueId tensor;
  DomainId domain;  // none: the tensor alone
};
std::optional<Named> find_place(const Graph& g, std::string_view place) {
  std::optional<Named> best;
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    if (v.kind != ValueKind::kTensor || !v.def) continue;
    const std::string name = "%" + v.name;
    if (place == name) return Named{ValueId(i), {}};
    if (!place.starts_with(name + ".")) continue;
    if (!best) best = Named{ValueId(i), {}};
    for (size_t d = 0; d < g.domains.size(); ++d)
      if (g.domains[d].tensor == v.tensor && !g.domains[d].name.empty() && place == name + "." + g.domains[d].name)
        return Named{ValueId(i), DomainId(d)};
  }
  return best;
}

// The line of a graph's text for the comment: the list of loops with the domain, else the line that defines the domain,
// else the first line of the op that makes the tensor.
size_t line_of(const Graph& g, const std::vector<std::string>& lines, const Named& named) {
  const std::string tensor = print_value(g, named.tensor);
  size_t first = 0;
  while (first < lines.size()) {
    const size_t equals = lines[first].find(" = ");
    if (equals != std::string::npos && depth_of(lines[first]) == 2 &&
        has_word(std::string_view(lines[first]).substr(0, equals), tensor))
      break;
    ++first;
  }
  if (first == lines.size()) return 0;
  if (!named.domain) return first;
  std::string domain = print_domain(g, named.domain);
  domain.erase(0, tensor.size() + 1);
  size_t best = first;
  for (size_t i = first + 1; i < lines.size() && depth_of(lines[i]) > 2; ++i) {
    const std::string_view line = std::string_view(lines[i]).substr(depth_of(lines[i]));
    if (!has_word(line, domain)) continue;
    if (line.starts_with("loop [")) return i;
    if (best == first) best = i;
  }
  return best;
}

// A name in an error may hold an end of line. A comment must not.
std::string on_one_line(const std::string& text) {
  std::string out;
  for (const char letter : text) out += letter == '\n' ? "\\n" : std::string(1, letter);
  return out;
}

}  // namespace

std::string print_refused(const CompileAttempt& attempt) {
  const Compiled& c = attempt.made;
  const Error& e = *attempt.error;
  const std::string why =
      on_one_line("// " + code_text(e.code) + (e.place.empty() ? "" : " at " + e.place) + ": " + e.what());
  std::string out;
  for (size_t i = 0; i < c.scheduled.size(); ++i) {
    const Graph& g = c.scheduled[i];
    if (!out.empty()) out += '\n';
    if (i != attempt.segment) {
      out += print(g);
      continue;
    }
    const auto& steps = c.segmentation.segments[i].steps;
    if (!attempt.is_scheduled && attempt.steps < steps.size())
      out += "// after " + std::to_string(attempt.steps) + " of " + std::to_string(steps.size()) +
             " steps; the next is: " + print(steps[attempt.steps]) + "\n";
    std::vector<std::string> lines = lines_of(print(g));
    const auto named = find_place(g, e.place);
    if (named)
      lines[line_of(g, lines, *named)] += "  " + why;
    else
      out += why + "\n";
    for (const std::string& line : lines) out += line + "\n";
  }
  return out;
}

}  // namespace fusebox::cli
