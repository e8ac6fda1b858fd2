// The file tests of the index algebra (file_kinds.h).
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "fuzz/known/file_kinds.h"
#include "ir/table/error.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox::fuzz {
namespace {

class Notebook {
 public:
  std::string run(const std::string& input) {
    std::istringstream lines(input);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.starts_with("//")) continue;
      words_ = tokens(line);
      at_ = 0;
      try {
        const std::string answer = statement();
        if (at_ < words_.size()) fail("the end of the line");
        out += line + (answer.empty() ? "" : "   =>  " + answer) + "\n";
      } catch (const Error& e) {
        if (e.code == ErrorCode::kInternal) throw;
        throw Error(e.code, e.what(), line);
      }
    }
    return out;
  }

 private:
  static std::vector<std::string> tokens(const std::string& line) {
    std::vector<std::string> result;
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (size_t i = 0; i < line.size();) {
      size_t n = 1;
      if (line[i] == ' ') {
        ++i;
        continue;
      }
      if (is_word(line[i]))
        while (i + n < line.size() && is_word(line[i + n])) ++n;
      else if (i + 1 < line.size() && (line.substr(i, 2) == "<=" || line.substr(i, 2) == ">=" ||
                                       line.substr(i, 2) == "==" || line.substr(i, 2) == ".."))
        n = 2;
      result.push_back(line.substr(i, n));
      i += n;
    }
    return result;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorCode::kSyntax,
                "expected " + expected + (at_ < words_.size() ? " at `" + words_[at_] + "`" : " before the end"));
  }
  bool accept(std::string_view word) {
    if (at_ >= words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail("`" + std::string(word) + "`");
  }
  std::string name() {
    if (at_ >= words_.size() || std::isalpha(static_cast<unsigned char>(words_[at_][0])) == 0) fail("a name");
    return words_[at_++];
  }
  int64_t number() {
    const bool is_negative = accept("-");
    if (at_ >= words_.size()) fail("a number");
    const std::string text = (is_negative ? "-" : "") + words_[at_];
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("a number");
    ++at_;
    return value;
  }
  // Reads a list of items between commas.
  template <class Item>
  void list(Item item) {
    do item();
    while (accept(","));
  }

  // -- lines

  std::string statement() {
    if (accept("clear")) {
      a_.clear();
      symbols_.clear();
      loops_.clear();
      named_.clear();
      return {};
    }
    if (at_ + 1 < words_.size() && words_[at_ + 1] != "(" && accept("symbol")) return declare_symbol();
    if (accept("loop")) {
      const std::string loop = name();
      expect("<");
      const int id = static_cast<int>(loops_.size());
      loops_[loop] = id;
      const Form made = a_.declare_loop(id, loop, sum());
      return a_.to_string(made) + " below " + a_.to_string(a_.loop_extent(id));
    }
    if (accept("assume")) {
      const Form x = sum();
      const std::string reason = "fact " + std::to_string(++facts_);
      if (accept("divides")) {
        a_.assume_divides(x, sum(), reason);
      } else {
        expect("<=");
        a_.assume_le(x, sum(), reason);
      }
      return {};
    }
    if (accept("name")) {
      const std::string other = name();
      expect("=");
      named_[other] = sum();
      return shown(named_[other]);
    }
    return question(sum());
  }

  std::string declare_symbol() {
    const std::string symbol = name();
    SymbolRange range;
    if (accept(">=")) {
      range.lower = number();
    } else if (accept("in")) {
      range.lower = number();
      expect("..");
      range.upper = number();
    }
    const int id = static_cast<int>(symbols_.size());
    symbols_[symbol] = id;
    a_.declare_symbol(id, symbol, range);
    return {};
  }

  std::string question(Form x) {
    if (accept("<")) return proved(a_.prove_less(x, sum()));
    if (accept("==")) return proved(a_.equal(x, sum()));
    if (accept("divides")) return proved(a_.divides(x, sum()));
    if (accept("<=")) {
      const Form y = sum();
      // By the least value of a difference, or by an order.
      if (x == Form{}) return proved(accept("given") ? a_.prove_nonneg(y, givens()) : a_.prove_nonneg(y));
      return proved(a_.prove_le(x, y));
    }
    if (accept("under")) return shown(a_.under(x, givens()));
    if (accept("depends")) {
      expect("on");
      return a_.depends_on(x, loop_named(name())) ? "yes" : "no";
    }
    if (accept("in")) {
      expect("terms");
      expect("of");
      const auto linear = a_.linear_in(x, loop_named(name()));
      return linear ? a_.to_string(linear->coefficient) + " times, and " + a_.to_string(linear->rest) : "not linear";
    }
    if (accept("with")) return shown(a_.substitute(x, substitution()));
    if (accept("at")) {
      std::vector<int64_t> loops(loops_.size()), symbols(symbols_.size());
      list([&] {
        const std::string which = name();
        expect("=");
        const auto it = loops_.find(which);
        (it != loops_.end() ? loops.at(static_cast<size_t>(it->second))
                            : symbols.at(static_cast<size_t>(symbol_named(which)))) = number();
      });
      const auto value = a_.evaluate(x, loops, symbols);
      return value ? std::to_string(*value) : "beyond 64 bits";
    }
    return shown(x);
  }

  std::vector<Form> givens() {
    std::vector<Form> given;
    list([&] { given.push_back(sum()); });
    return given;
  }
  FormSubstitution substitution() {
    FormSubstitution by;
    list([&] {
      const std::string which = name();
      expect("=");
      const Form form = sum();
      if (const auto it = loops_.find(which); it != loops_.end())
        by.loops.emplace_back(it->second, form);
      else
        by.symbols.emplace_back(symbol_named(which), form);
    });
    return by;
  }
  int loop_named(const std::string& which) const {
    const auto it = loops_.find(which);
    if (it == loops_.end()) fail("a loop");
    return it->second;
  }
  int symbol_named(const std::string& which) const {
    const auto it = symbols_.find(which);
    if (it == symbols_.end()) fail("a loop or symbol");
    return it->second;
  }

  // -- answers

  std::string proved(bool is_proved) const {
    std::string out = is_proved ? "proved" : "not shown", reasons;
    for (const std::string& r : a_.last_reasons()) reasons += (reasons.empty() ? "" : ", ") + r;
    return is_proved && !reasons.empty() ? out + " by " + reasons : out;
  }

  // The form, and its ends: as numbers, and as forms of symbols where these say more.
  std::string shown(Form f) {
    const auto end = [](const std::optional<int64_t>& number) { return number ? std::to_string(*number) : "?"; };
    const IntBounds numbers = a_.int_bounds(f);
    std::string out = a_.to_string(f);
    if (a_.is_constant(f)) return out;
    out += "   in " + end(numbers.lower) + " .. " + end(numbers.upper);
    const FormBounds bounds = a_.bounds(f);
    const auto form = [&](const std::optional<Form>& x) { return x ? a_.to_string(*x) : "?"; };
    if (a_.has_loops(f)) out += ", " + form(bounds.lower) + " .. " + form(bounds.upper);
    if (const int64_t content = a_.content(f); content > 1) out += ", a multiple of " + std::to_string(content);
    return out;
  }

  // -- expressions

  Form sum() {
    Form total = accept("-") ? a_.neg(product()) : product();
    while (true) {
      if (accept("+"))
        total = a_.add(total, product());
      else if (accept("-"))
        total = a_.sub(total, product());
      else
        return total;
    }
  }
  Form product() {
    Form total = factor();
    while (true) {
      if (accept("*"))
        total = a_.mul(total, factor());
      else if (accept("/"))
        total = a_.floor_div(total, factor());
      else if (accept("%"))
        total = a_.mod(total, factor());
      else
        return total;
    }
  }
  Form factor() {
    if (accept("-")) return a_.neg(factor());
    if (accept("(")) {
      const Form inner = sum();
      expect(")");
      return inner;
    }
    if (at_ < words_.size() && std::isdigit(static_cast<unsigned char>(words_[at_][0])) != 0)
      return a_.constant(number());
    const std::string which = name();
    if (accept("(")) return call(which);
    if (const auto it = named_.find(which); it != named_.end()) return it->second;
    if (const auto it = loops_.find(which); it != loops_.end()) return a_.loop(it->second);
    return a_.symbol(symbol_named(which));
  }
  Form call(const std::string& function) {
    std::vector<Form> x;
    list([&] { x.push_back(sum()); });
    expect(")");
    if (x.size() == 1 && function == "symbol") return a_.symbol_of(x[0]);
    if (x.size() == 1 && function == "neg") return a_.neg(x[0]);
    if (x.size() == 2 && function == "min") return a_.min(x[0], x[1]);
    if (x.size() == 2 && function == "max") return a_.max(x[0], x[1]);
    if (x.size() == 2 && function == "xor") return a_.bit_xor(x[0], x[1]);
    if (x.size() == 2 && function == "ceil") return a_.ceil_div(x[0], x[1]);
    if (x.size() == 3 && function == "cyclic") return a_.cyclic(x[0], x[1], x[2]);
    fail("a function");
  }

  IndexAlgebra a_;
  std::map<std::string, int> symbols_, loops_;
  std::map<std::string, Form> named_;
  std::vector<std::string> words_;
  size_t at_ = 0;
  int facts_ = 0;
};

}  // namespace

std::string algebra_text(const std::string& input) { return Notebook().run(input); }

}  // namespace fusebox::fuzz
