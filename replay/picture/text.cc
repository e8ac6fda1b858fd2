#include <algorithm>
#include <array>

#include "replay/picture/layout.h"
#include "replay/picture/render.h"

namespace fusebox::picture {
namespace {

using Cells = std::array<std::string, 7>;

std::string names(const Picture& p, const std::vector<size_t>& list) {
  std::string out;
  for (size_t d : list) out += (out.empty() ? "" : ", ") + p.domains[d].name;
  return out;
}

std::string holes_text(const DomainPicture& d) {
  if (!d.check.empty()) return "check " + d.check;
  return d.may_leave ? "holes, no check of its own: " + d.rule : "";
}

void add_table(const std::vector<Cells>& rows, std::string& out) {
  std::array<size_t, std::tuple_size_v<Cells>> width = {};
  for (const Cells& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], letters(row[i]));
  for (const Cells& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i)
      if (width[i] > 0) line += " " + row[i] + std::string(width[i] - letters(row[i]) + 1, ' ');
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

void add_tensor(const Picture& p, const TensorPicture& t, size_t kind, std::string& out) {
  out += t.op + " : " + t.type + "\n";
  std::vector<Cells> rows = {{"domain", "type", "group", "loop", "made by", "index", "holes"}};
  for (size_t i : t.domains) {
    const DomainPicture& d = p.domains[i];
    const auto& loops = t.loop.empty() ? t.logical : t.loop;
    const auto at = static_cast<size_t>(std::find(loops.begin(), loops.end(), i) - loops.begin());
    std::string loop = at < loops.size() && t.has_nest ? std::to_string(at) : "";
    if (d.parallel != ParallelType::kSerial) loop += " " + std::string(text(d.parallel));
    if (d.is_inline_at) loop += " inline";
    rows.push_back({d.name, std::string(text(d.iter_type)) + " " + d.extent,
                    d.group[kind] == 0 ? "-" : std::to_string(d.group[kind]), loop, d.made_by, d.index, holes_text(d)});
  }
  add_table(rows, out);
  if (!t.root.empty()) out += "  root [" + names(p, t.root) + "], logical [" + names(p, t.logical) + "]\n";
  if (!t.allocation.empty()) out += "  allocation [" + names(p, t.allocation) + "]\n";
  for (size_t i = 0; i < t.conditions.size(); ++i) out += (i == 0 ? "  runs where " : " and ") + t.conditions[i];
  if (!t.conditions.empty()) out += "\n";
  // The indices by which each reader reads the domains, one line a reader.
  std::vector<std::pair<std::string, std::string>> readers;
  for (size_t i : t.domains)
    for (const Read& r : p.domains[i].reads) {
      auto it = std::find_if(readers.begin(), readers.end(), [&](const auto& known) { return known.first == r.by; });
      if (it == readers.end()) it = readers.insert(it, {r.by, ""});
      it->second += (it->second.empty() ? "" : ", ") + p.domains[i].name + " = " + r.index;
    }
  for (const auto& [by, at] : readers) out += "  " + by + " reads it at " + at + "\n";
  out += "\n";
}

}  // namespace

std::string to_text(const Picture& picture, IdGraphKind kind) {
  const auto k = static_cast<size_t>(kind);
  std::string out = "// @" + picture.name + ", " + std::string(text(kind)) + " graph\n";
  if (!picture.note.empty()) out += "// " + picture.note + "\n";
  out += "\n";
  for (const TensorPicture& t : picture.tensors) add_tensor(picture, t, k, out);
  for (size_t i = 0; i < picture.groups[k].size(); ++i) {
    out += "group " + std::to_string(i + 1) + ":";
    for (size_t d : picture.groups[k][i]) out += " " + picture.domains[d].full_name;
    out += "\n";
  }
  if (kind == IdGraphKind::kAlmostExact)
    for (const Join& j : picture.joins)
      out += picture.domains[j.a].full_name + " and " + picture.domains[j.b].full_name + " are one: " + j.reason + "\n";
  return out;
}

}  // namespace fusebox::picture
