// The file tests of texts of plans with slips (file_kinds.h).
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <sstream>

#include "fuzz/known/file_kinds.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"

namespace fusebox::fuzz {
namespace {

struct Token {
  size_t at, size;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<Token> tokens_of(std::string_view line) {
  std::vector<Token> result;
  for (size_t i = 0; i < line.size();) {
    size_t n = 1;
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    if (is_word(line[i]) || line[i] == '%')
      while (i + n < line.size() && is_word(line[i + n])) ++n;
    result.push_back({i, n});
    i += n;
  }
  return result;
}

class Slips {
 public:
  explicit Slips(const Graph& g) : g_(g), text_(print_plan(plan_kernel(g))) {
    std::istringstream in(text_);
    for (std::string line; std::getline(in, line);) lines_.push_back(line);
    for (const std::string& line : lines_)
      for (const Token& t : tokens_of(line))
        if (line[t.at] == '%' && t.size > 1)
          if (const std::string name = line.substr(t.at, t.size); std::ranges::find(names_, name) == names_.end())
            names_.push_back(name);
  }

  std::string run() {
    std::string out;
    for (size_t i = 0; i < lines_.size(); ++i) {
      out += lines_[i] + "\n";
      const size_t begin = out.size();
      const std::string& line = lines_[i];
      const auto changed = [&](const std::string& what, const std::string& now) { report(out, what, i, now); };
      changed("no line", "");
      changed("twice", line + "\n" + line);
      const std::vector<Token> tokens = tokens_of(line);
      for (size_t k = 0; k < tokens.size(); ++k) {
        const auto [at, size] = tokens[k];
        const std::string token = line.substr(at, size), before = line.substr(0, at), after = line.substr(at + size);
        changed("no " + token, before + after);
        if (k + 1 < tokens.size() && line[tokens[k + 1].at] == ',')
          changed("no " + token + ",", before + line.substr(tokens[k + 1].at + 1));
        if (std::isdigit(static_cast<unsigned char>(token[0])) != 0)
          changed(token + " + 1", before + std::to_string(std::stoll(token) + 1) + after);
        if (token.size() > 1 && token[0] == '%')
          changed(token + " -> " + next_name(token), before + next_name(token) + after);
        if (is_word(token[0]) && std::isdigit(static_cast<unsigned char>(token[0])) == 0)
          changed(token + " -> x", before + "x" + after);
      }
      if (out.size() > begin) out += "\n";
    }
    return out;
  }

  // `OLD => NEW; OLD => NEW`
  std::string replaced(const std::string& slip) const {
    std::string text = text_;
    std::istringstream parts(slip);
    for (std::string part; std::getline(parts, part, ';');) {
      const size_t arrow = part.find(" => ");
      const std::string old = part.substr(part.find_first_not_of(' '), arrow - part.find_first_not_of(' '));
      const size_t at = text.find(old);
      check_internal(arrow != std::string::npos && at != std::string::npos, "a slip whose text the plan has not");
      text.replace(at, old.size(), part.substr(arrow + 4));
    }
    return slip + "   =>  " + outcome(text) + "\n";
  }

 private:
  std::string next_name(const std::string& name) const {
    const auto it = std::ranges::find(names_, name);
    return it + 1 == names_.end() ? names_.front() : *(it + 1);
  }

  // The first line of the one that the other does not have at its place.
  static std::string other_line(const std::string& text, const std::string& other) {
    std::istringstream lines(text), others(other);
    for (std::string line, with; std::getline(lines, line);)
      if (!std::getline(others, with) || with != line) return "`" + line.substr(line.find_first_not_of(' ')) + "`";
    return "less";
  }

  std::string outcome(const std::string& text) const {
    try {
      const std::string read = print_plan(parse_plan(g_, text));
      return read == text ? "accepted" : "read as " + other_line(read, text);
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) throw;
      return (e.code == ErrorCode::kSyntax ? "" : code_text(e.code) + " ") + e.place + ": " + e.what();
    }
  }

  void report(std::string& out, const std::string& what, size_t line, const std::string& now) const {
    std::string text;
    for (size_t i = 0; i < lines_.size(); ++i) text += (i == line ? now : lines_[i]) + "\n";
    if (text != text_) out += fmt::format("    {:<20} {}\n", what, outcome(text));
  }

  const Graph& g_;
  std::string text_;
  std::vector<std::string> lines_, names_;
};

}  // namespace

std::string slips_text(const Graph& scheduled, const std::string& input) {
  constexpr std::string_view kSlip = "// slip: ";
  Slips slips(scheduled);
  std::string asked;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kSlip)) asked += slips.replaced(line.substr(kSlip.size()));
  return slips.run() + asked;
}

}  // namespace fusebox::fuzz
