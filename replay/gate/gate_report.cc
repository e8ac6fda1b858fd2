// The files that a gate writes: the log of blessed bundles, and the XML for CI systems.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "replay/data/file.h"
#include "replay/gate/gate.h"

namespace fusebox {
namespace {

constexpr std::string_view kLogHead =
    "Bundles of this folder that `fusebox gate --bless` recorded anew, newest last: why, and what changed.\n";

std::string log_entry(const GateResult& r, const std::string& reason) {
  std::string entry = "\n" + std::filesystem::path(r.path).filename().string() + "\n  reason: ";
  for (char c : reason) entry += c == '\n' ? "\n    " : std::string(1, c);
  entry += "\n";
  for (const GateChange& c : r.changes) entry += fmt::format("  {:<12} {} -> {}\n", c.stage, c.was, c.is);
  return entry;
}

// The number of bytes of the code point at the front, or 0 if XML 1.0 cannot hold it.
size_t xml_character(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
  if (byte(0) < 0x80) return byte(0) >= 0x20 || byte(0) == '\t' || byte(0) == '\n' || byte(0) == '\r' ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xf4) return 0;
  uint32_t point = byte(0) & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool holds = point >= kSmallest[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff) &&
                     point != 0xfffe && point != 0xffff;
  return holds ? length : 0;
}

// For attributes and text alike.
std::string xml(std::string_view s) {
  std::string out;
  while (!s.empty()) {
    const size_t length = xml_character(s);
    if (length == 0) {
      out += "\xEF\xBF\xBD";  // the replacement character
    } else if (const size_t at = std::string_view("&<>\"'\n\r\t").find(s[0]); at != std::string_view::npos) {
      constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#10;", "&#13;", "&#9;"};
      out += kEntities[at];
    } else {
      out += s.substr(0, length);
    }
    s.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string test_case(const GateResult& r) {
  const std::filesystem::path path(r.path);
  std::string out =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" time=\"{:.3f}\"",
                  xml(path.parent_path().string()), xml(path.filename().string()), xml(r.path), r.seconds);
  if (r.status == GateStatus::kSkipped)
    return out + ">\n      <skipped message=\"" + xml(r.message) + "\"/>\n    </testcase>\n";
  if (r.ok()) return out + "/>\n";
  const char* kind = r.status == GateStatus::kError ? "error" : "failure";
  return out + fmt::format(">\n      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n    </testcase>\n", kind,
                           text(r.status), xml(r.message), xml(r.message + "\n" + r.difference));
}

}  // namespace

void bless(std::vector<GateResult>& results, const std::string& reason) {
  std::map<std::filesystem::path, std::string> logs;
  for (GateResult& r : results) {
    if (r.rewritten.empty() || !std::filesystem::exists(std::filesystem::path(r.path).parent_path() / "KEEP")) continue;
    r.rewritten.clear();
    r.message += "; it is not blessed: the file KEEP in its folder says that bundles there stay as they are";
  }
  for (const GateResult& r : results)
    if (!r.rewritten.empty()) logs[std::filesystem::path(r.path).parent_path() / "BLESSED"] += log_entry(r, reason);
  // Writes the reasons first. If writing stops here, the gate still holds.
  for (const auto& [path, entries] : logs)
    write_file(path.string(),
               (std::filesystem::exists(path) ? read_text_file(path.string()) : std::string(kLogHead)) + entries);
  for (GateResult& r : results) {
    if (r.rewritten.empty()) continue;
    write_file(r.path, std::string_view(r.rewritten));
    r.status = GateStatus::kBlessed;
  }
}

std::string junit_xml(const std::vector<GateResult>& results, double seconds) {
  const auto count = [&](auto&& what) { return std::count_if(results.begin(), results.end(), what); };
  const std::string numbers =
      fmt::format("name=\"fusebox gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\"",
                  results.size(), count([](const GateResult& r) { return !r.ok() && r.status != GateStatus::kError; }),
                  count([](const GateResult& r) { return r.status == GateStatus::kError; }),
                  count([](const GateResult& r) { return r.status == GateStatus::kSkipped; }), seconds);
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + numbers + ">\n  <testsuite " + numbers + ">\n";
  for (const GateResult& r : results) out += test_case(r);
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace fusebox
