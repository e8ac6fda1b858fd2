#include "replay/device/profiler_name.h"

#include <algorithm>

#include "ir/canonical/canonical.h"
#include "ir/canonical/digest.h"

namespace fusebox {
namespace {

constexpr size_t kDigits = 6;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

std::string profiler_name(const Graph& kernel, size_t letters) {
  std::string name;
  for (const char c : kernel.name) name += is_letter(c) || is_digit(c) ? c : '_';
  if (name.empty() || is_digit(name[0])) name.insert(0, "k");
  name.resize(std::min(name.size(), letters > kDigits + 1 ? letters - kDigits - 1 : 1));
  const std::string digits = text(digest(kernel));
  name = (name + "_" + digits).substr(0, letters);
  name.resize(letters, '_');
  return name;
}

NamedBinary with_profiler_name(std::string_view binary, const std::string& entry, const Graph& kernel) {
  NamedBinary named{std::string(binary), entry};
  if (entry.empty() || named.bytes.find(entry) == std::string::npos) return named;
  named.entry = profiler_name(kernel, entry.size());
  for (size_t at = named.bytes.find(entry); at != std::string::npos; at = named.bytes.find(entry, at + entry.size()))
    named.bytes.replace(at, entry.size(), named.entry);
  return named;
}

}  // namespace fusebox
