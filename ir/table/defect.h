// Seeded defects: rules of the compiler that can be broken on purpose, to measure whether the checks find the fault.
//
// Invariants: a set of defects is a value, never a global. Every entry point takes one in its options; by default it is
// empty. In a build without defects (FUSEBOX_DEFECTS=OFF, the default of a release build) a set is always empty, and
// `has` costs nothing.
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

enum class Defect : uint16_t {
#define FUSEBOX_DEFECT(name, text, breaks, restates) name,
#include "ir/table/defect_table.inc"
#undef FUSEBOX_DEFECT
};

struct DefectRow {
  Defect defect;
  std::string_view text;
  std::string_view breaks;
  std::string_view restates;  // the fault of a public compiler that the defect restates, or empty
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
    if (!bits_[static_cast<size_t>(d)]) return false;
    if (reached_) ++*reached_;
    return true;
  }
  // Throws kModuleMissing if this build has no defects.
  void add(Defect d);
  bool empty() const { return bits_.none(); }
  std::vector<Defect> list() const;
  // From now on, this set and every later copy count in `*counter` how often `has` returns true. The counter must
  // outlive them.
  void count_reached(uint64_t* counter) { reached_ = counter; }
  bool operator==(const Defects& other) const { return bits_ == other.bits_; }

 private:
  std::bitset<512> bits_;
  uint64_t* reached_ = nullptr;
};

// Throws kUnknownName if no defect has the text, kModuleMissing if this build has no defects.
Defects parse_defects(std::span<const std::string> texts);
// The texts, separated by commas. `parse_defect_list` reads them back.
std::string join(const Defects& defects);
Defects parse_defect_list(std::string_view joined);

}  // namespace fusebox
