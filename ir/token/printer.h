// `Printer`: one growing text, and members that add names, literals, attributes, operands and types to it. The files of
// the printer share it.
//
// Invariants: a member appends to `out` and keeps what stands there. Attributes and operands begin with a blank.
//
//   Printer p;
//   p.add_name('%', "x");
//   p.add(" = ");
//   p.add_literal(Dtype::kIndex, {128, 0});   // p.out == "%x = 128"
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/module/step.h"
#include "ir/table/defect.h"

namespace fusebox {

// How much of a type is written.
enum class TypeForm : uint8_t {
  kUser,   // unnamed dimensions without reductions, for a type that follows from the op or stands in a message
  kExact,  // unnamed dimensions if they say everything, else named ones
  kNamed,  // named dimensions
};

class Printer {
 public:
  std::string out;
  Defects defects = {};

  void add(std::string_view text) { out += text; }
  void add(char c) { out.push_back(c); }
  template <class Integer>
  void add_integer(Integer value) {
    char buffer[24];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  }
  void add_double(double value);
  void add_line(int depth) {
    out.push_back('\n');
    out.append(static_cast<size_t>(depth) * 2, ' ');
  }
  // Calls `add_item(item)` for each item and puts commas between them.
  template <class List, class AddItem>
  void add_list(const List& list, AddItem add_item) {
    bool first = true;
    for (const auto& item : list) {
      if (!first) out += ", ";
      first = false;
      add_item(item);
    }
  }
  void add_integers(const std::vector<int64_t>& list) {
    add('[');
    add_list(list, [&](int64_t i) { add_integer(i); });
    add(']');
  }
  void add_name(char mark, std::string_view name);
  void add_word(std::string_view name);  // the name of a domain or a step list
  void add_literal(Dtype dtype, ConstantBits bits);
  void add_attrs(const Attrs& attrs);
  void add_value(const Graph& g, ValueId value);
  void add_type(const Graph& g, ValueId value, TypeForm form, int depth);

  // Adds operands by the slots of a format. `is_absent(i)` tells whether operand i is absent, `add_operand(i)` adds it.
  template <class IsAbsent, class AddOperand>
  void add_operands(const FormatRow& format, size_t count, IsAbsent is_absent, AddOperand add_operand) {
    const auto ranges = slot_ranges(format, count);
    if (!ranges) {  // the graph does not verify: the text shows the operands, but does not parse
      add(" <");
      for (size_t i = 0; i < count; ++i) {
        if (i > 0) add(", ");
        is_absent(i) ? add('_') : add_operand(i);
      }
      add('>');
      return;
    }
    bool first = true;
    for (int s = 0; s < format.slot_count; ++s) {
      const Slot& slot = format.slots[s];
      const SlotRange range = (*ranges)[static_cast<size_t>(s)];
      if (slot.optional && is_absent(range.begin) &&
          (!slot.keyword.empty() || !unnamed_follows(format, *ranges, s, is_absent)))
        continue;
      if (!slot.keyword.empty()) {
        add(' ');
        add(slot.keyword);
        add(' ');
      } else {
        add(first ? " " : ", ");
      }
      first = false;
      if (slot.list) add('[');
      for (uint32_t i = 0; i < range.count; ++i) {
        if (i > 0) add(", ");
        is_absent(range.begin + i) ? add('_') : add_operand(range.begin + i);
      }
      if (slot.list) add(']');
    }
  }

 private:
  void add_number(Dtype dtype, uint64_t bits);
  void add_extent(const Graph& g, const IterDomain& d);
  void add_unnamed_dimension(const Graph& g, const IterDomain& d);
  void add_declaration(const Graph& g, DomainId d);
  void add_reference(const Graph& g, const Tensor& t, DomainId d);
  void add_references(const Graph& g, const Tensor& t, std::string_view word, const std::vector<DomainId>& list);
  void add_dimension(const Graph& g, const Tensor& t, DomainId d);
  void add_transform(const Graph& g, const Tensor& t, TransformId id);
  void add_details(const Graph& g, const Tensor& t, int depth);
  std::vector<DomainId> undeclared(const Graph& g, const Tensor& t);

  // Marks of domains while one tensor is written: a domain has a mark when its entry is the tensor's stamp.
  struct Marks {
    std::vector<uint32_t> stamps;
    // Sets the mark. Returns true if it was not set before.
    bool set(DomainId d, uint32_t stamp) {
      if (stamps.size() <= d.index) stamps.resize(d.index + size_t{1});
      const bool fresh = stamps[d.index] != stamp;
      stamps[d.index] = stamp;
      return fresh;
    }
    bool has(DomainId d, uint32_t stamp) const { return d.index < stamps.size() && stamps[d.index] == stamp; }
  };
  Marks declared_;
  Marks looped_;
  Marks seen_;
  uint32_t stamp_ = 0;

  // Whether an operand that is present follows in a slot without a keyword, after slot s and before the next keyword.
  template <class Ranges, class IsAbsent>
  static bool unnamed_follows(const FormatRow& format, const Ranges& ranges, int s, IsAbsent is_absent) {
    for (int i = s + 1; i < format.slot_count && format.slots[i].keyword.empty(); ++i)
      if (!format.slots[i].optional || !is_absent(ranges[static_cast<size_t>(i)].begin)) return true;
    return false;
  }
};

}  // namespace fusebox
