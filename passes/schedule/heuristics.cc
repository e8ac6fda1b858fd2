#include "passes/schedule/heuristics.h"

#include <algorithm>

#include "ir/table/error.h"

namespace fusebox {

namespace {

const Heuristic& choice(const Heuristics& h, std::string_view key) {
  const auto it = std::ranges::find(h.choices, key, &Heuristic::key);
  if (it == h.choices.end())
    throw Error(ErrorCode::kInternal, "a schedule is made from a choice that its scheduler did not make",
                h.scheduler + " " + std::string(key));
  return *it;
}

}  // namespace

int64_t Heuristics::number(std::string_view key) const { return choice(*this, key).number; }
const std::string& Heuristics::word(std::string_view key) const { return choice(*this, key).word; }

std::string text(const Heuristics& h) {
  std::string result = h.scheduler;
  for (const Heuristic& c : h.choices)
    result += " " + c.key + " " + (c.word.empty() ? std::to_string(c.number) : c.word);
  return result;
}

}  // namespace fusebox
