#include "replay/cli/why.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "ir/token/printer.h"
#include "passes/lower/lower.h"

namespace fusebox::cli {
namespace {

// Whether the check is of a dimension of threads, not of a domain.
bool is_of_thread(const CheckNote& n) { return n.kind == CheckKind::kThread || n.kind == CheckKind::kLastBlock; }

// Names are quoted if they are not plain, so the comment stays on its line.
std::string domain_text(const CheckNote& n) {
  Printer p;
  is_of_thread(n) ? p.add(n.domain) : p.add_word(n.domain);
  return std::move(p.out);
}
std::string subject(const CheckNote& n) {
  Printer value;
  value.add_name('%', n.value);
  return is_of_thread(n) ? domain_text(n) + " at " + value.out : value.out + "." + domain_text(n);
}

// Values without a check at run time, by reason: `no check [loop]: …: %x.i0 .o .t, %y.i0`.
class Summary {
 public:
  void add(const CheckNote& n) {
    const auto key = std::pair(n.checked, n.reason);
    auto it = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.key == key; });
    if (it == groups_.end()) it = groups_.insert(it, {key, {}, {}});
    const bool same = it->last == n.value && !is_of_thread(n);
    it->places += same ? " ." + domain_text(n) : (it->places.empty() ? "" : ", ") + subject(n);
    it->last = is_of_thread(n) ? "" : n.value;
  }
  std::string above() const {
    std::string out;
    for (const Group& g : groups_)
      out += fmt::format("//   {} [{}]: {}: {}\n", g.key.first ? "always true or false" : "no check",
                         row_of(g.key.second).text, row_of(g.key.second).says, g.places);
    return out;
  }
  std::string beside() const {
    std::string out;
    for (const Group& g : groups_)
      out += fmt::format("{}{} [{}]: {}", out.empty() ? "  // " : "; ", g.places, row_of(g.key.second).text,
                         row_of(g.key.second).says);
    return out;
  }

 private:
  struct Group {
    std::pair<bool, CheckReason> key;
    std::string places, last;
  };
  std::vector<Group> groups_;
};

}  // namespace

std::string print_with_checks(const Graph& kernel, const Graph* scheduled, const Defects& defects) {
  if (!scheduled) return print(kernel);
  const Lowered lowered =
      lower(canonical_order(*scheduled), {.index_bits = kernel.index_bits, .defects = defects, .explain = true});
  int counts[3] = {};
  std::map<std::string, Summary> beside;  // by name of a predicate
  Summary above;
  for (const CheckNote& n : lowered.notes) {
    counts[static_cast<int>(n.kind)] += n.checked;
    const std::string& names = n.predicate;
    if (names.empty()) {
      above.add(n);
      continue;
    }
    for (size_t at = 0; at < names.size();) {
      const size_t comma = std::min(names.find(", ", at), names.size());
      beside[names.substr(at, comma - at)].add(n);
      at = comma + 2;
    }
  }
  std::string out =
      fmt::format("// checks: {} of domains, {} of loop extents, {} of threads\n", counts[0], counts[1], counts[2]) +
      above.above();
  const std::string text = print(lowered.kernel);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    out += line;
    const size_t from = line.find_first_not_of(' ');
    if (from != std::string::npos)
      if (const auto it = beside.find(line.substr(from, line.find(' ', from) - from)); it != beside.end())
        out += it->second.beside();
    out += "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace fusebox::cli
