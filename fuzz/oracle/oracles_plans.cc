// The oracle of kernel plans: a plan's text reads back as a plan of the same text, from which the same kernel and launch
// are emitted, also if names need quotes; a text with a slip is refused as a syntax error at the line of the slip.
#include <algorithm>

#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"
#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t npos = std::string::npos;

std::string emitted(const KernelPlan& plan, int index_bits) {
  const Lowered lowered = emit_kernel(plan, {.index_bits = index_bits, .explain = true});
  std::string out = print(lowered.kernel) + print(lowered.launch);
  for (const CheckNote& n : lowered.notes)
    out += n.value + " " + n.domain + " " + n.predicate + (n.checked ? " checked" : "") +
           (n.settled ? " settled\n" : "\n");
  return out;
}

// Gives one tensor a name that the text writes in quotes.
void rename_one(RandomSource& random, Graph& g) {
  constexpr std::string_view kNames[] = {"two words", "a\"quote", "back\\slash", "a\ttab", "a\nline", "\x01", "", "]"};
  if (g.tensors.empty()) return;
  const ValueId v = g.tensors[random.below(g.tensors.size())].value;
  g[v].name = random.pick(kNames);
}

struct Slip {
  std::string_view what;
  std::string text;
  size_t line;        // counted from 1
  std::string shown;  // a part of the message, or nothing

  std::string written() const {
    size_t begin = 0;
    for (size_t i = 1; i < line; ++i) begin = text.find('\n', begin) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

class Slips {
 public:
  Slips(const std::string& text, RandomSource& random) : text_(text), random_(random) {
    for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) begins_.push_back(begin);
  }

  std::optional<Slip> draw() {
    switch (random_.below(7)) {
      case 0: {
        // Every line ends where its last word does.
        const size_t line = random_.below(begins_.size());
        return inserted("stray character", line, text_.find('\n', begins_[line]), " ;", {});
      }
      case 1: {
        const size_t line = 1 + random_.below(begins_.size() - 1);
        const size_t at = text_.find_first_not_of(' ', begins_[line]);
        // Without its end, a statement takes the lines behind it.
        if (at != npos && text_[at] == '}') return std::nullopt;
        return inserted("unknown word", line, at, "no_such_word ", "`no_such_word ");
      }
      case 2:
        return Slip{"after the end", text_ + "more\n", begins_.size() + 1, {}};
      case 3:
        return beside("a function of too many arguments", random_.one_in(2) ? "div(" : "digit(", "1, 1, 1, ");
      case 4:
        return without("an open parenthesis", "stride(", ')');
      case 5:
        return instead("a barrier of no scope", "barrier block", "barrier ");
      default:
        return instead("an unknown value", " %", " %no_such_value_");
    }
  }

 private:
  std::optional<Slip> inserted(std::string_view what, size_t line, size_t at, std::string_view piece,
                               std::string shown) const {
    if (at == npos) return std::nullopt;
    std::string text = text_;
    text.insert(at, piece);
    return Slip{what, std::move(text), line + 1, std::move(shown)};
  }

  // One of the places of a piece of text, in lines without quotes.
  std::optional<size_t> found(std::string_view piece) {
    std::vector<size_t> places;
    for (size_t at = text_.find(piece); at != npos; at = text_.find(piece, at + 1)) {
      const size_t begin = begins_[line_of(at)];
      if (std::string_view(text_).substr(begin, text_.find('\n', at) - begin).find('"') == npos) places.push_back(at);
    }
    return places.empty() ? std::nullopt : std::optional(random_.pick(places));
  }
  size_t line_of(size_t at) const {
    return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), at) - begins_.begin()) - 1;
  }

  std::optional<Slip> beside(std::string_view what, std::string_view piece, std::string_view added) {
    const auto at = found(piece);
    return at ? inserted(what, line_of(*at), *at + piece.size(), added, {}) : std::nullopt;
  }
  std::optional<Slip> without(std::string_view what, std::string_view piece, char dropped) {
    const auto at = found(piece);
    if (!at) return std::nullopt;
    std::string text = text_;
    text.erase(text.find(dropped, *at), 1);
    return Slip{what, std::move(text), line_of(*at) + 1, {}};
  }
  std::optional<Slip> instead(std::string_view what, std::string_view piece, std::string_view other) {
    const auto at = found(piece);
    if (!at) return std::nullopt;
    std::string text = text_;
    text.replace(*at, piece.size(), other);
    return Slip{what, std::move(text), line_of(*at) + 1, {}};
  }

  const std::string& text_;
  RandomSource& random_;
  std::vector<size_t> begins_;  // of lines
};

void judge_slip(OracleRun& run, const Graph& g, const PlanOptions& options, const Slip& slip) {
  const std::string wanted = "line " + std::to_string(slip.line);
  try {
    parse_plan(g, slip.text, options);
    run.report("plans", "accepted", "", std::string(slip.what) + " in " + wanted + " is accepted: " + slip.written());
  } catch (const Error& e) {
    if (e.code == ErrorCode::kSyntax && e.place == wanted && std::string_view(e.what()).find(slip.shown) != npos)
      return;
    run.report("plans", slip.what, "",
               "refused with " + code_text(e.code) + " at " + e.place + ", not at " + wanted + ": " + e.what() + "; " +
                   slip.written());
  }
}

}  // namespace

void plans(OracleRun& run) {
  RandomSource random = run.random(71);
  const auto kernel = run.one_kernel(random);
  if (!kernel) return;
  const Compiled* c = run.compiled();
  Graph g = canonical_order(c->scheduled[*kernel]);
  if (random.one_in(2)) rename_one(random, g);
  const PlanOptions options{.defects = run.options().defects};
  try {
    const KernelPlan plan = plan_kernel(g, options);
    const std::string text = print_plan(plan);
    const KernelPlan read = parse_plan(g, text, options);
    if (print_plan(read) != text)
      return run.report("plans", "text", "", "a plan reads back as another one\n" + text + print_plan(read));
    if (emitted(read, c->index_bits) != emitted(plan, c->index_bits))
      return run.report("plans", "kernel", "", "a plan that is read back gives another kernel\n" + text);
    Slips slips(text, random);
    for (int i = 0; i < 3; ++i)
      if (const auto slip = slips.draw()) judge_slip(run, g, options, *slip);
    Compiled again = *c;
    lower_segments(again, {.defects = options.defects, .sizes = {}, .known = nullptr, .digest_plans = true});
    if (const size_t kernels = run.compiled_kernels().size(); again.plans.size() != kernels)
      run.report("plans", "digests", "",
                 std::to_string(again.plans.size()) + " plans have a digest, not " + std::to_string(kernels));
  } catch (const Error& e) {
    run.report("plans", e);
  }
}

}  // namespace fusebox::fuzz
