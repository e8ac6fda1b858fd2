// The oracle of places: a text with one slip in it is refused with the code of that slip, at its line and column; and
// a text at a limit of the parser is accepted, one beyond it refused. Lines and columns are counted here by themselves.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/parser.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

// A text with a slip at a position of it, and the codes that may be answered (none: any).
struct Slip {
  std::string_view what;
  std::string text;
  size_t at;
  std::vector<ErrorCode> codes;
  bool may_be_later = false;  // a result whose domains are written out is taken as it is, and only its readers notice
};

std::string place_of(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line_start = before.rfind('\n') + 1;  // 0 where there is none
  return std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ":" + std::to_string(at - line_start + 1);
}

// The line of a place, "12:7".
int line_of(const std::string& place) { return std::atoi(place.c_str()); }

// Whether a list of domains, "[%n, i1 iter 4]", names one: it has three words.
bool has_named_domain(std::string_view list) {
  int words = 1;
  for (char c : list) {
    words = c == ',' ? 0 : words + (c == ' ' ? 1 : 0);
    if (words == 3) return true;
    if (c == ']') break;
  }
  return false;
}

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A line of a graph, `  %y = exp %x : f32[%n]`, taken apart.
struct Line {
  size_t begin, end;    // without its indentation and its line end
  size_t equal = npos;  // of the results
  size_t type = npos;   // of ` : `
  static constexpr size_t npos = std::string::npos;
};

class Slips {
 public:
  Slips(std::string text, RandomSource& random) : text_(std::move(text)), random_(random) {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      add_line(begin, end);
      begin = end + 1;
    }
  }

  std::optional<Slip> draw() {
    if (lines_.empty()) return std::nullopt;
    const Line& line = random_.pick(lines_);
    switch (random_.below(9)) {
      case 0:
        return inserted("stray character", line, random_.one_in(2) ? line.begin : line.end, ";", 0, ErrorCode::kSyntax);
      case 1:
        return inserted("open string", line, line.end, " \"text", 6, ErrorCode::kSyntax);
      case 2:
        return inserted("bad escape", line, line.end, " \"a\\q\"", 5, ErrorCode::kSyntax);
      case 3:
        return inserted("missing name", line, line.begin, "% ", 1, ErrorCode::kSyntax);
      case 4:
        return of_results(line);
      case 5:
        return of_operand(line);
      case 6:
        return of_op(line);
      case 7:
        return of_type(line);
      default:
        return of_attribute(line);
    }
  }

 private:
  // Lines with quoted names are left alone. Ops stand in the first block, the graph; those after it hold steps and inputs.
  void add_line(size_t begin, size_t end) {
    const std::string_view line = std::string_view(text_).substr(begin, end - begin);
    const size_t indentation = line.find_first_not_of(' ');
    if (indentation == line.npos || line.find('"') != line.npos) return;
    Line made{begin + indentation, end};
    if (line[indentation] == '%' && begin < text_.find("\n}"))
      if (const size_t at = line.find(" = "); at != line.npos) made.equal = begin + at + 1;
    if (const size_t at = line.find(" : "); at != line.npos && made.equal != Line::npos) made.type = begin + at + 1;
    lines_.push_back(made);
    if (made.equal != Line::npos) definitions_.push_back(lines_.size() - 1);
  }

  std::optional<Slip> inserted(std::string_view what, const Line&, size_t at, std::string_view piece, size_t offset,
                               ErrorCode code) {
    std::string text = text_;
    text.insert(at, piece);
    return Slip{what, std::move(text), at + offset, {code}};
  }

  std::optional<Slip> replaced(std::string_view what, size_t begin, size_t end, std::string_view by,
                               std::vector<ErrorCode> codes) {
    std::string text = text_;
    text.replace(begin, end - begin, by);
    return Slip{what, std::move(text), begin, std::move(codes)};
  }

  size_t name_end(size_t at) const {
    while (++at < text_.size() && is_name_char(text_[at])) {
    }
    return at;
  }

  // The name of an earlier result, or no `=`.
  std::optional<Slip> of_results(const Line& line) {
    if (line.equal == Line::npos) return std::nullopt;
    if (random_.one_in(2)) return replaced("no equal sign", line.equal, line.equal + 1, ":", {ErrorCode::kSyntax});
    const Line& other = lines_[random_.pick(definitions_)];
    if (other.begin >= line.begin) return std::nullopt;
    const std::string name = text_.substr(other.begin, name_end(other.begin) - other.begin);
    return replaced("defined twice", line.begin, name_end(line.begin), name, {ErrorCode::kDuplicateName});
  }

  std::optional<Slip> of_operand(const Line& line) {
    // The type of a tensor is inferred at once; an operand of a scalar is looked for at the end of the graph.
    if (line.type == Line::npos || text_[line.end - 1] != ']') return std::nullopt;
    std::vector<size_t> names;
    for (size_t at = text_.find('%', line.equal); at < line.type; at = text_.find('%', at + 1)) names.push_back(at);
    if (names.empty()) return std::nullopt;
    const size_t at = random_.pick(names);
    return replaced("unknown operand", at, name_end(at), "%no_such_value", {ErrorCode::kUnknownName});
  }

  std::optional<Slip> of_op(const Line& line) {
    if (line.equal == Line::npos) return std::nullopt;
    const size_t at = line.equal + 2;
    return replaced("unknown op", at, name_end(at), "no_such_op", {ErrorCode::kUnknownOp});
  }

  // Another dtype than inference finds.
  std::optional<Slip> of_type(const Line& line) {
    if (line.type == Line::npos || text_[line.end - 1] != ']') return std::nullopt;
    const size_t at = line.type + 2, end = text_.find('[', at);
    if (end == std::string::npos || end > line.end || text_.find(" : ", at) < line.end) return std::nullopt;
    const std::string_view other = text_.compare(at, end - at, "f32") == 0 ? "f64" : "f32";
    auto slip = replaced("another type", at, end, other, {ErrorCode::kTypeAnnotation});
    slip->may_be_later = has_named_domain(std::string_view(text_).substr(end, line.end - end));
    return slip;
  }

  // An attribute that no op has, or an axis that no tensor has: the op is refused where it begins.
  std::optional<Slip> of_attribute(const Line& line) {
    if (line.type == Line::npos) return std::nullopt;
    const size_t axis = text_.find(" axis ", line.equal);
    if (axis < line.type && random_.one_in(2)) {
      std::string text = text_;
      const size_t number = axis + 6;
      text.replace(number, std::min(text.find(' ', number), line.end) - number, "300");
      return Slip{"axis", std::move(text), line.begin, {}};
    }
    return inserted("unknown attribute", line, line.type, "no_such_key 3 ", 0, ErrorCode::kBadAttribute);
  }

  std::string text_;
  RandomSource& random_;
  std::vector<Line> lines_;
  std::vector<size_t> definitions_;
};

void judge_slip(OracleRun& run, const Slip& slip) {
  const std::string wanted = place_of(slip.text, slip.at);
  bool is_parsed = false;
  try {
    // A result whose domains are written out is not inferred: the verifier compares it with its op.
    const Module m = parse_module(slip.text);
    is_parsed = true;
    verify(m);
    run.report("places", "accepted", "", std::string(slip.what) + " at " + wanted + " is accepted in\n" + slip.text);
  } catch (const Error& e) {
    const bool is_code =
        slip.codes.empty() || std::find(slip.codes.begin(), slip.codes.end(), e.code) != slip.codes.end();
    const bool is_place = e.place == wanted || (slip.may_be_later && line_of(e.place) > line_of(wanted));
    if (is_parsed ? row_of(e.code).outcome != Outcome::kInternal : is_code && is_place) return;
    run.report("places", slip.what, "",
               "refused with " + code_text(e.code) + " at " + e.place + ", not at " + wanted + ", in\n" + slip.text);
  }
}

struct Limit {
  std::string_view what;
  size_t most;
  std::string (*text)(size_t count);
};

std::string repeated(size_t count, std::string_view piece, std::string_view between) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += std::string(i == 0 ? "" : between) + std::string(piece);
  return all;
}

constexpr Limit kLimits[] = {
    {"dimensions", kMaxRank,
     [](size_t n) { return "fusion {\n  %x = input f32[" + repeated(n, "1", ", ") + "]\n  output %x\n}\n"; }},
    {"listed", kMaxListed,
     [](size_t n) {
       return "fusion {\n  %x = input f32[5]\n  %y = permute %x dims [" + repeated(n, "0", ", ") +
              "]\n  output %y\n}\n";
     }},
    {"operands", kMaxListed,
     [](size_t n) {
       return "fusion {\n  %x = input f32[5]\n  %y = cat [" + repeated(n, "%x", ", ") + "] axis 0\n  output %y\n}\n";
     }},
    {"transforms", kMaxTransformsPerTensor,
     [](size_t n) {
       std::string text = "scheduled {\n  %x = input f32[d iter 5] {\n";
       for (size_t i = 0; i < n; ++i) {
         const std::string to = std::to_string(i), from = i == 0 ? "d" : "o" + std::to_string(i - 1);
         text += "o" + to + " iter, t" + to + " iter = split " + from + " by 2\n";
       }
       return text + "}\n}\n";
     }},
    {"likes", kMaxLoopBroadcasts,
     [](size_t n) {
       std::string text = "scheduled {\n  %x = input f32[d iter 5]\n  %y = input f32[e iter 5] {\n loop_broadcasts [";
       for (size_t i = 0; i < n; ++i) text += (i == 0 ? "b" : ", b") + std::to_string(i) + " broadcast 1 like %x.d";
       return text + "]\n}\n}\n";
     }},
    {"depth", kMaxRegionDepth,
     [](size_t n) {
       return "kernel {\n  %p = input bool\n" + repeated(n, "if %p {\n", "") + repeated(n, "}\n", "") + "}\n";
     }},
};

bool is_too_large(const std::string& text) {
  try {
    parse_module(text);
  } catch (const Error& e) {
    return e.code == ErrorCode::kTooLarge;
  }
  return false;
}

void judge_limit(OracleRun& run, const Limit& limit) {
  if (is_too_large(limit.text(limit.most)))
    run.report("places", "limit", std::string(limit.what), std::to_string(limit.most) + " are refused as too many");
  if (!is_too_large(limit.text(limit.most + 1)))
    run.report("places", "limit", std::string(limit.what), std::to_string(limit.most + 1) + " are not refused");
}

}  // namespace

void places(OracleRun& run) {
  RandomSource random = run.random(117);
  Slips slips(print(run.subject().module), random);
  for (int i = 0; i < 3; ++i)
    if (const auto slip = slips.draw()) judge_slip(run, *slip);
  if (random.one_in(16)) judge_limit(run, random.pick(kLimits));
}

}  // namespace fusebox::fuzz
