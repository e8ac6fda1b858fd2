// Seeded defects: rules of lowering that can be broken on purpose, to measure whether the checks find it.
//
// Invariants: a set of them is a value in the options that every entry point takes, never a global; none by default. A
// build without them (FUSEBOX_DEFECTS=OFF, the default of a release build) cannot hold one, and the tests for them cost
// nothing there.
//
//   LowerOptions options{.defects = parse_defects({"predicate-dropped"})};
//   if (options.defects.has(Defect::kPredicateDropped)) …
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

enum class Defect : uint8_t {
#define FUSEBOX_DEFECT(name, text, breaks) name,
#include "ir/defect_table.inc"
#undef FUSEBOX_DEFECT
};

struct DefectRow {
  Defect defect;
  std::string_view text;
  std::string_view breaks;
};
std::span<const DefectRow> defect_rows();
inline std::string_view text(Defect d) { return defect_rows()[static_cast<size_t>(d)].text; }
std::optional<Defect> parse_defect(std::string_view text);

#ifdef FUSEBOX_WITHOUT_DEFECTS
inline constexpr bool kDefectsCompiledIn = false;
#else
inline constexpr bool kDefectsCompiledIn = true;
#endif

class Defects {
 public:
  bool has(Defect d) const {
    if constexpr (!kDefectsCompiledIn) return false;
    return bits_[static_cast<size_t>(d)];
  }
  // Throws kModuleMissing where this build has none.
  void add(Defect d);
  bool empty() const { return bits_.none(); }
  std::vector<Defect> list() const;
  bool operator==(const Defects&) const = default;

 private:
  std::bitset<128> bits_;
};

// Throws kUnknownName for a text that is no defect's, kModuleMissing where this build has none.
Defects parse_defects(std::span<const std::string> texts);
// Texts, with commas between; and back.
std::string join(const Defects& defects);
Defects parse_defect_list(std::string_view joined);

}  // namespace fusebox
