#include "fuzz/run/statistics.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "ir/table/error.h"
#include "replay/cli/json.h"

namespace fusebox::fuzz {
namespace {

using cli::json_list;
using cli::JsonObject;

struct Counter {
  const char* name;
  uint64_t Statistics::* count;
};
constexpr Counter kCounters[] = {
    {"cases", &Statistics::cases},
    {"valid", &Statistics::valid},
    {"launch_refused", &Statistics::launch_refused},
    {"op_attempts", &Statistics::op_attempts},
    {"ops", &Statistics::ops},
    {"drawn_legal", &Statistics::drawn_legal},
    {"unscheduled", &Statistics::unscheduled},
    {"mutated", &Statistics::mutated},
    {"mutated_valid", &Statistics::mutated_valid},
    {"planned", &Statistics::planned},
    {"partly_unfused", &Statistics::partly_unfused},
    {"segments", &Statistics::segments},
    {"unfused_segments", &Statistics::unfused_segments},
    {"died", &Statistics::died},
    {"gpu_cases", &Statistics::gpu_cases},
    {"gpu_kernels", &Statistics::gpu_kernels},
    {"gpu_compile_us", &Statistics::gpu_compile_us},
    {"gpu_wait_us", &Statistics::gpu_wait_us},
    {"gpu_run_us", &Statistics::gpu_run_us},
    {"compared", &Statistics::compared},
    {"ambiguous", &Statistics::ambiguous},
    {"unconstrained", &Statistics::unconstrained},
};

std::string to_hex(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes)
    for (const int shift : {4, 0}) out += "0123456789abcdef"[static_cast<unsigned char>(c) >> shift & 15];
  return out;
}

std::string of_hex(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) & 15u; };
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return out;
}

std::string to_json(const KeptFinding& f) {
  JsonObject o;
  o.add("stage", f.finding.signature.stage);
  o.add("check", f.finding.signature.check);
  o.add("place", f.finding.signature.place);
  o.add("message", f.finding.message);
  o.raw("number", std::to_string(f.number)).raw("count", std::to_string(f.count));
  o.add("seconds", f.seconds).add("lineage", f.lineage).add("file", f.file);
  if (!f.saved.bytes.empty()) o.add("is_text", f.saved.is_text).add("saved", to_hex(f.saved.bytes));
  if (!f.batch.empty()) o.add("batch", f.batch);
  return o.text();
}

KeptFinding finding_of(const JsonValue& v) {
  KeptFinding f;
  f.finding.signature = {v.at("stage").string(), v.at("check").string(), v.at("place").string()};
  f.finding.message = v.at("message").string();
  f.number = v.at("number").count();
  f.count = v.at("count").count();
  f.seconds = v.at("seconds").number();
  f.lineage = v.at("lineage").string();
  f.file = v.at("file").string();
  if (const JsonValue* saved = v.find("saved")) f.saved = {of_hex(saved->string()), v.at("is_text").text == "true"};
  if (const JsonValue* batch = v.find("batch")) f.batch = batch->string();
  return f;
}

template <class Range>
std::string numbers(const Range& range) {
  return fmt::format("[{}]", fmt::join(range, ","));
}

std::vector<uint64_t> counts_of(const JsonValue& v, size_t size) {
  std::vector<uint64_t> counts;
  for (const JsonValue& item : v.list()) counts.push_back(item.count());
  if (counts.size() != size)
    throw Error(ErrorCode::kInvalidField, "these are counts of another version's tables",
                std::to_string(counts.size()));
  return counts;
}

}  // namespace

void add(Statistics& s, KeptFinding finding) {
  const auto same = std::find_if(s.findings.begin(), s.findings.end(), [&](const KeptFinding& kept) {
    return kept.finding.signature == finding.finding.signature;
  });
  if (same != s.findings.end()) {
    finding.count += same->count;
    if (finding.number >= same->number) {
      same->count = finding.count;
      return;
    }
    // The file belongs to the signature, whichever case it holds.
    if (finding.file.empty()) finding.file = same->file;
    s.findings.erase(same);
  }
  const auto after = std::find_if(s.findings.begin(), s.findings.end(),
                                  [&](const KeptFinding& kept) { return kept.number > finding.number; });
  s.findings.insert(after, std::move(finding));
}

void add(Statistics& s, Statistics part) {
  for (const Counter& c : kCounters) s.*c.count += part.*c.count;
  for (const auto& [code, count] : part.refusals) s.refusals[code] += count;
  s.judged.resize(std::max(s.judged.size(), part.judged.size()));
  for (size_t i = 0; i < part.judged.size(); ++i) s.judged[i] += part.judged[i];
  s.coverage.add(part.coverage);
  for (KeptFinding& f : part.findings) add(s, std::move(f));
}

std::string to_json(const Statistics& s) {
  JsonObject o;
  for (const Counter& c : kCounters) o.raw(c.name, std::to_string(s.*c.count));
  o.add("seconds", s.seconds);
  JsonObject refusals;
  for (const auto& [code, count] : s.refusals) refusals.raw(code, std::to_string(count));
  std::vector<uint64_t> judged = s.judged;
  judged.resize(oracle_rows().size());
  o.raw("refusals", refusals.text()).raw("judged", numbers(judged));
  std::vector<uint64_t> counts;
  for (const CoverageRow& row : s.coverage.rows()) counts.push_back(row.count);
  o.raw("coverage", numbers(counts));
  std::vector<std::string> findings;
  for (const KeptFinding& f : s.findings) findings.push_back(to_json(f));
  return o.raw("findings", json_list(findings)).text();
}

Statistics statistics_of(const JsonValue& json) {
  Statistics s;
  // Sums with greater counts might wrap.
  constexpr uint64_t kMostCount = uint64_t{1} << 62;
  constexpr double kMostSeconds = 1e12;
  for (const Counter& c : kCounters)
    if (const JsonValue* count = json.find(c.name))
      if ((s.*c.count = count->count()) > kMostCount)
        throw Error(ErrorCode::kInvalidField, "no campaign counts so far", c.name);
  s.seconds = json.at("seconds").number();
  if (!(s.seconds >= 0 && s.seconds <= kMostSeconds))
    throw Error(ErrorCode::kInvalidField, "no campaign takes so long", "seconds");
  const JsonValue& refusals = json.at("refusals");
  if (refusals.kind != JsonValue::Kind::kObject)
    throw Error(ErrorCode::kInvalidField, "there should be an object here", "refusals");
  for (size_t i = 0; i < refusals.names.size(); ++i) s.refusals[refusals.names[i]] = refusals.items[i].count();
  s.judged = counts_of(json.at("judged"), oracle_rows().size());
  s.coverage.add_counts(counts_of(json.at("coverage"), s.coverage.row_count()));
  std::set<Signature> signatures;
  for (const JsonValue& f : json.at("findings").list()) {
    s.findings.push_back(finding_of(f));
    if (!signatures.insert(s.findings.back().finding.signature).second)
      throw Error(ErrorCode::kInvalidField, "a finding stands twice", text(s.findings.back().finding.signature));
  }
  return s;
}

std::string progress_line(const Statistics& s) {
  return fmt::format("{:.1f} s, {} cases, {:.0f}/s, {:.1f} % valid, coverage {}/{}, {} finding{}", s.seconds, s.cases,
                     s.cases_per_second(), 100 * s.valid_rate(), s.coverage.covered(), s.coverage.row_count(),
                     s.findings.size(), s.findings.size() == 1 ? "" : "s");
}

}  // namespace fusebox::fuzz
