#include <limits>

#include "fuzz/campaign/campaign.h"
#include "ir/table/error.h"
#include "replay/cli/json.h"

namespace fusebox::fuzz {
namespace {

using cli::json_list;
using cli::JsonObject;

constexpr uint64_t kFormat = 1;
constexpr size_t kSamples = 400;

std::string numbers(std::initializer_list<uint64_t> list) { return fmt::format("[{}]", fmt::join(list, ",")); }

[[noreturn]] void refuse(const char* message, const char* place) {
  throw Error(ErrorCode::kInvalidField, message, place);
}

bool is_part(uint64_t part) { return part < kFirstOracle + oracle_rows().size() || part >= kFirstCompilation; }

// Refuses numbers that no campaign can have reached, because the counts of later cases would build on them.
void check_state(const CampaignState& state) {
  constexpr uint64_t kMostBlocks = std::numeric_limits<uint64_t>::max() / kBlockCases;
  if (state.next_block > kMostBlocks) refuse("there is no block of this number", "next_block");
  uint64_t most_cases = state.next_block * kBlockCases;
  for (const auto& [number, block] : state.partial) {
    if (number >= state.next_block) refuse("a block is begun that was not given out", "partial");
    if (block.done > kBlockCases) refuse("more cases are done than a block has", "done");
    most_cases -= kBlockCases - block.done;
    for (const DeadlyCase& d : block.deadly) {
      if (d.number / kBlockCases != number) refuse("a deadly case is of another block", "deadly");
      if (!is_part(d.part)) refuse("a case has no such part", "deadly");
    }
  }
  const Statistics& s = state.statistics;
  if (s.cases > most_cases) refuse("more cases are counted than the blocks have", "cases");
  for (const KeptFinding& f : s.findings)
    if (f.number / kBlockCases >= state.next_block) refuse("a finding is of a case that has not run", "findings");
  if (state.series.size() > kSamples) refuse("there are more samples than a campaign keeps", "series");
  for (const CampaignSample& sample : state.series)
    if (sample.seconds < 0 || sample.cases > s.cases) refuse("a sample is of no moment of this campaign", "series");
}

}  // namespace

std::string configuration_of(const RunnerOptions& o) {
  JsonObject c;
  c.raw("seed", std::to_string(o.seed));
  std::vector<std::string> oracles;
  for (const size_t row : o.oracles) oracles.push_back(json_string(oracle_rows()[row].text));
  c.raw("oracles", json_list(oracles)).add("on", o.on_gpu ? "cuda" : "host").add("defects", join(o.defects));
  c.raw("block_cases", std::to_string(kBlockCases)).raw("mutate_one_in", std::to_string(o.mutate_one_in));
  c.raw("max_ops", std::to_string(o.cases.fusion.max_ops)).raw("step_limit", std::to_string(o.step_limit));
  return c.text();
}

std::string to_json(const CampaignState& state) {
  JsonObject o;
  o.raw("format", std::to_string(kFormat)).raw("configuration", state.configuration);
  o.raw("next_block", std::to_string(state.next_block));
  std::vector<std::string> partial, series;
  for (const auto& [block, p] : state.partial) {
    std::vector<std::string> deadly;
    for (const DeadlyCase& d : p.deadly) deadly.push_back(numbers({d.number, d.part}));
    JsonObject one;
    one.raw("block", std::to_string(block)).raw("done", std::to_string(p.done)).raw("deadly", json_list(deadly));
    partial.push_back(one.text());
  }
  for (const CampaignSample& s : state.series)
    series.push_back(fmt::format("[{:.3f},{},{},{}]", s.seconds, s.cases, s.covered, s.findings));
  o.raw("partial", json_list(partial)).raw("statistics", to_json(state.statistics)).raw("series", json_list(series));
  return o.text() + "\n";
}

CampaignState campaign_state_of(const JsonValue& json) {
  if (json.at("format").count() != kFormat)
    throw Error(ErrorCode::kNewerVersion, "the campaign's state is of another version; begin anew in another folder",
                json.at("format").text);
  CampaignState state;
  state.next_block = json.at("next_block").count();
  for (const JsonValue& p : json.at("partial").list()) {
    const auto [at, is_new] = state.partial.try_emplace(p.at("block").count());
    if (!is_new) refuse("a block stands twice", "partial");
    PartialBlock& block = at->second;
    block.done = p.at("done").count();
    for (const JsonValue& d : p.at("deadly").list()) {
      if (d.list().size() != 2) refuse("a deadly case is its number and its part", "deadly");
      block.deadly.push_back({d.items[0].count(), d.items[1].count()});
    }
  }
  state.statistics = statistics_of(json.at("statistics"));
  for (const JsonValue& s : json.at("series").list()) {
    if (s.list().size() != 4) refuse("a sample has four numbers", "series");
    state.series.push_back({s.items[0].number(), s.items[1].count(), s.items[2].count(), s.items[3].count()});
  }
  check_state(state);
  return state;
}

std::string state_path(const std::string& folder) { return folder + "/campaign.json"; }

void add_sample(CampaignState& state, bool is_last) {
  const Statistics& s = state.statistics;
  std::vector<CampaignSample>& series = state.series;
  // One sample in a four-hundredth of the time so far is enough.
  const double pause = std::max(0.2, s.seconds / static_cast<double>(kSamples));
  if (!series.empty() && s.seconds < series.back().seconds + pause) {
    if (!is_last) return;
    if (series.back().seconds == s.seconds) series.pop_back();
  }
  series.push_back({s.seconds, s.cases, s.coverage.covered(), s.findings.size()});
  if (series.size() <= kSamples) return;
  std::vector<CampaignSample> half;
  for (size_t i = 0; i < series.size(); ++i)
    if (i % 2 == 0 || i + 1 == series.size()) half.push_back(series[i]);
  series = std::move(half);
}

}  // namespace fusebox::fuzz
