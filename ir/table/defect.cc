#include "ir/table/defect.h"

#include "ir/table/error.h"

namespace fusebox {

std::span<const DefectRow> defect_rows() {
  static constexpr DefectRow kRows[] = {
#define FUSEBOX_DEFECT(name, text, breaks, restates) {Defect::name, text, breaks, restates},
#include "ir/table/defect_table.inc"
#undef FUSEBOX_DEFECT
  };
  static_assert(std::size(kRows) <= 512, "Defects holds 512");
  return kRows;
}

std::optional<Defect> parse_defect(std::string_view wanted) {
  for (const DefectRow& row : defect_rows())
    if (row.text == wanted) return row.defect;
  return std::nullopt;
}

void Defects::add(Defect d) {
  if (!kDefectsCompiledIn)
    throw Error(ErrorCode::kModuleMissing, "this build has no seeded defects; configure one with -DFUSEBOX_DEFECTS=ON",
                std::string(text(d)));
  bits_.set(static_cast<size_t>(d));
}

std::vector<Defect> Defects::list() const {
  std::vector<Defect> result;
  for (const DefectRow& row : defect_rows())
    if (kDefectsCompiledIn && bits_[static_cast<size_t>(row.defect)]) result.push_back(row.defect);
  return result;
}

Defects parse_defects(std::span<const std::string> texts) {
  Defects result;
  for (const std::string& t : texts) {
    const auto d = parse_defect(t);
    if (!d)
      throw Error(ErrorCode::kUnknownName, "no seeded defect has this name; `fusebox fuzz --list-defects` lists them",
                  t);
    result.add(*d);
  }
  return result;
}

std::string join(const Defects& defects) {
  std::string result;
  for (Defect d : defects.list()) result += (result.empty() ? "" : ",") + std::string(text(d));
  return result;
}

Defects parse_defect_list(std::string_view joined) {
  std::vector<std::string> texts;
  while (!joined.empty()) {
    const size_t comma = joined.find(',');
    texts.emplace_back(joined.substr(0, comma));
    joined.remove_prefix(comma == std::string_view::npos ? joined.size() : comma + 1);
  }
  return parse_defects(texts);
}

}  // namespace fusebox
