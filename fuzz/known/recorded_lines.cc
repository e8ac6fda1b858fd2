#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <vector>

#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded.h"
#include "ir/infer/bind.h"
#include "ir/scalar/scalar.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/token/literal.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "replay/data/input.h"

namespace fusebox::fuzz {
namespace {

constexpr std::string_view kPlace = "??\n";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string with_breaks(std::string_view line) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t end = line.find("; ", at);
    out.append(line.substr(at, end - at)).append("\n");
    if (end == std::string_view::npos) return out;
    at = end + 2;
  }
}

// The lines of a text that another one lacks: the first ones, and a checksum if there are more.
std::string new_lines(const std::string& before, const std::string& after) {
  const std::vector<std::string> old = lines_of(before);
  std::multiset<std::string> known(old.begin(), old.end());
  constexpr size_t kMost = 7;
  std::string out;
  size_t count = 0;
  Checksum rest;
  for (const std::string& line : lines_of(after)) {
    if (const auto it = known.find(line); it != known.end())
      known.erase(it);
    else if (count++ < kMost)
      out += "\n    " + line;
    else
      rest.add(line);
  }
  return count > kMost ? out + fmt::format("\n    … {} lines, checksum {}", count - kMost, rest.text()) : out;
}

std::string bound_scalars(const Module& m) {
  const Graph& g = main_graph(m);
  const InputSpecs* specs = find_input_specs(m, g.name, "host");
  if (specs == nullptr) throw Error(ErrorCode::kMissingInput, "the file has no inputs `host`; write them");
  std::vector<Argument> arguments;
  for (const InputSpec& spec : specs->specs) arguments.push_back(make_argument(spec, 1));
  const std::vector<BoundInput> inputs = bound_inputs(arguments);
  const Bindings bindings = bind_sizes(g, inputs);
  std::string out;
  for (size_t i = 0; i < bindings.size(); ++i)
    if (const Value& v = g.values[i]; bindings[i] && !v.name.empty() && v.kind == ValueKind::kScalar)
      out += fmt::format(" %{} = {}", v.name, print_literal(v.dtype, *bindings[i]));
  return out;
}

}  // namespace

std::string recorded_lines(std::string_view text, std::string_view how) {
  constexpr std::string_view kBegin = "// lines:\n";
  const size_t begin = text.find(kBegin);
  std::string module(text.substr(0, begin));
  const size_t place = how == "steps" ? module.size() : module.find(kPlace);
  if (begin == std::string_view::npos || place == std::string::npos)
    throw Error(ErrorCode::kSyntax, "the file has no place `??` or no `// lines:`; write them");
  const std::string tail = module.substr(std::min(place + kPlace.size(), module.size()));
  module.resize(place);
  Graph scheduled;
  std::string was = print(parse_module(module + tail));
  if (how == "steps") {
    const Module m = parse_module(module);
    scheduled = main_graph(m);
    if (const StepList* list = find_steps(m, scheduled.name)) apply_steps(scheduled, list->steps);
    // The first step of a schedule changes how all types are written, which is no news.
    Graph before = scheduled;
    if (before.level == Level::kMath) before.level = Level::kScheduled;
    was = print(before);
  }
  std::string out;
  for (const std::string& line : lines_of(text.substr(begin + kBegin.size()))) {
    if (line.empty()) continue;
    out += line + "\n  " + outcome_text([&] {
             if (how == "steps") {
               Graph copy = scheduled;
               apply(copy, parse_steps(with_breaks(line)));
               verify(copy);
               return new_lines(was, print(copy));
             }
             const Module m = parse_module(module + with_breaks(line) + tail);
             verify(m);
             return new_lines(was, print(m)) + (how == "bind" ? bound_scalars(m) : "");
           }) +
           "\n";
  }
  return out;
}

std::string recorded_texts(std::string_view text) {
  constexpr std::string_view kNext = "// next:";
  std::string out;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(kNext, at), text.size());
    const std::string part(text.substr(at, end - at));
    out += fmt::format("-- {}\n{}\n", number++, outcome_text([&] {
                         const Module m = parse_module(part);
                         verify(m);
                         return "\n" + print(m);
                       }));
    at = std::min(text.find('\n', end), text.size() - 1) + 1;
  }
  return out;
}

}  // namespace fusebox::fuzz
