#include "fuzz/case_bytes/target.h"

#include <algorithm>

#include "fuzz/mutate/mutate.h"
#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/oracle/oracle.h"
#include "ir/text/print.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

// Larger cases find nothing more and take seconds.
constexpr size_t kMostOps = 64, kMostSteps = 256, kMostLineage = 64;
constexpr int64_t kMostStorage = int64_t{1} << 20;
// Memory between far elements is only reserved, so a tensor of few elements may span more.
constexpr int64_t kFewElements = 4096, kMostReservedBytes = (int64_t{1} << 33) + (1 << 20);

bool has_small_storage(const InputSpec& s) {
  int64_t elements = 1;
  for (const int64_t n : s.shape)
    if (n < 0 || __builtin_mul_overflow(elements, n, &elements)) return false;
  const int64_t most =
      elements <= kFewElements ? kMostReservedBytes / std::max<int64_t>(size_bytes(s.dtype), 1) : kMostStorage;
  int64_t last = s.offset;
  for (size_t i = 0; i < s.strides.size() && i < s.shape.size(); ++i) {
    int64_t reach = 0;
    if (s.shape[i] < 2) continue;
    if (__builtin_mul_overflow(s.shape[i] - 1, s.strides[i], &reach) || __builtin_add_overflow(last, reach, &last))
      return false;
    if (last > most) return false;
  }
  return s.offset >= 0 && last <= most;
}

std::optional<Case> case_of_bundle(const Bundle& b) {
  const Module* m = find_stage(b, Stage::kFusion);
  if (!m || m->graphs.size() != 1 || m->step_lists.size() > 1 || m->input_specs.size() != 1) return std::nullopt;
  Case c;
  c.module = *m;
  const Graph& g = c.fusion();
  if (g.level != Level::kMath || !m->segmentations.empty() || g.ops.size() > kMostOps) return std::nullopt;
  if (c.steps() && (m->step_lists[0].graph != g.name || c.steps()->size() > kMostSteps)) return std::nullopt;
  if (const std::string* lineage = find_value(b.options, "lineage")) parse_lineage(*lineage, c);
  for (const InputSpec& s : c.inputs().specs)
    if (!has_small_storage(s)) return std::nullopt;
  return settle(c) ? std::optional(std::move(c)) : std::nullopt;
}

bool fits(const Bytes& bytes, size_t max_size) { return bytes.size() <= max_size; }

Bytes new_choices(RandomSource& random, size_t max_size) {
  Bytes bytes(std::min<size_t>(max_size, 16 + random.below(240)));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.below(256));
  return bytes;
}

// Returns nothing if the bytes make no case. The target meets an internal error itself.
std::optional<Case> case_or_nothing(std::span<const uint8_t> bytes, const CaseOptions& options) {
  try {
    return case_of_bytes(bytes, options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Case> case_of_bytes(std::span<const uint8_t> bytes, const CaseOptions& options) {
  if (is_bundle(bytes)) return case_of_bundle(decode_bundle(bytes));
  RandomSource random(bytes);
  return std::move(generate_case(random, options).value);
}

Bytes bytes_of_case(const Case& c) {
  Bundle b;
  b.program = c.fusion().name;
  b.stages.push_back({Stage::kFusion, c.module});
  b.options.push_back({"lineage", print_lineage(c)});
  const std::string bytes = encode(b);
  return {bytes.begin(), bytes.end()};
}

Bytes mutate_case_bytes(RandomSource& random, std::span<const uint8_t> bytes, const CaseOptions& options,
                        size_t max_size) {
  const uint64_t seed = random.next();
  try {
    if (random.one_in(8)) {
      const Bytes fresh = bytes_of_case(generate_case(seed, options).value);
      return fits(fresh, max_size) ? fresh : new_choices(random, max_size);
    }
    std::optional<Case> from = case_or_nothing(bytes, options);
    if (!from) from = generate_case(seed, options).value;
    // A long lineage says little: start a new one with this case as its base.
    if (from->lineage.size() > kMostLineage) from->lineage.clear();
    const Case other = generate_case(seed + 1, options).value;
    if (const auto next = mutate(random, *from, other, {})) {
      Bytes made = bytes_of_case(*next);
      if (fits(made, max_size)) return made;
    }
  } catch (const Error&) {
    // The generator or the encoder failed. Random choices find that again where the target sees it.
  }
  return new_choices(random, max_size);
}

Bytes cross_case_bytes(RandomSource& random, std::span<const uint8_t> a, std::span<const uint8_t> b,
                       const CaseOptions& options, size_t max_size) {
  const auto from = case_or_nothing(a, options), other = case_or_nothing(b, options);
  if (from && other) {
    try {
      for (int tries = 0; tries < 4; ++tries) {
        const auto m = draw_mutation(random, MutationKind::kSplice, *from, *other);
        const auto next = m ? apply_mutation(*from, *m) : std::nullopt;
        if (!next) continue;
        Bytes made = bytes_of_case(*next);
        if (fits(made, max_size)) return made;
      }
    } catch (const Error&) {
      // As in mutate_case_bytes.
    }
  }
  return mutate_case_bytes(random, a, options, max_size);
}

void judge_bytes(std::span<const uint8_t> bytes, const CaseOptions& options, std::string_view oracles, bool scheduled) {
  static const std::vector<size_t> rows = parse_oracles(oracles);
  expect_coded([&] {
    std::optional<Case> c = case_of_bytes(bytes, options);
    if (!c) return;
    if (!scheduled) {
      c->module.step_lists.clear();
      c->compiled.reset();
    }
    OracleRun run(*c, {.step_limit = int64_t{1} << 22});
    if (scheduled && !run.compiled()) return;
    for (size_t row : rows) oracle_rows()[row].judge(run);
    if (run.findings.empty()) return;
    for (const Finding& f : run.findings)
      std::fprintf(stderr, "finding %s: %s\n", text(f.signature).c_str(), f.message.c_str());
    std::fprintf(stderr, "%s%s", print_lineage(*c).c_str(), print(c->module).c_str());
    std::abort();
  });
}

}  // namespace fusebox::fuzz
