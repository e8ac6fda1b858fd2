// Attributes are the constant parts of ops and steps: a short list of keys and values. One table (attr_table.inc) gives
// each key its word in the text form and the kind of its value.
//
// Invariants: the list is sorted by key, and each key stands in it once. An enumerator is stored as its wire id.
//
//   Attrs a; a.set(AttrKey::kAxes, std::vector<int64_t>{1}); a.ints(AttrKey::kAxes)[0] == 1
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/table/dtype.h"
#include "ir/table/enums.h"

namespace fusebox {

enum class AttrKey : uint8_t {
#define FUSEBOX_ATTR(name, text, kind) name,
#include "ir/table/attr_table.inc"
#undef FUSEBOX_ATTR
};

enum class AttrKind : uint8_t {
  kInt,
  kBool,
  kInts,
  kDtype,
  kString,
#define FUSEBOX_TYPE(type) k##type,
  FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
};

struct AttrRow {
  AttrKey key;
  std::string_view text;
  AttrKind kind;
};
std::span<const AttrRow> attr_rows();
inline const AttrRow& row_of(AttrKey key) { return attr_rows()[static_cast<size_t>(key)]; }
// The texts of an enumeration kind, in wire order; empty for the other kinds.
std::span<const std::string_view> enum_texts_of(AttrKind kind);

// kInt, kBool and enumerations are int64_t; kDtype is Dtype.
using AttrValue = std::variant<int64_t, Dtype, std::string, std::vector<int64_t>>;

struct Attr {
  AttrKey key;
  AttrValue value;
  bool operator==(const Attr&) const = default;
};

class Attrs {
 public:
  const std::vector<Attr>& list() const { return list_; }
  bool empty() const { return list_.empty(); }
  const AttrValue* find(AttrKey key) const {
    for (const Attr& a : list_)
      if (a.key == key) return &a.value;
    return nullptr;
  }
  bool has(AttrKey key) const { return find(key) != nullptr; }
  // Replaces or inserts, keeping the order by key.
  void set(AttrKey key, AttrValue value) {
    auto it = list_.begin();
    while (it != list_.end() && it->key < key) ++it;
    if (it != list_.end() && it->key == key)
      it->value = std::move(value);
    else
      list_.insert(it, Attr{key, std::move(value)});
  }
  void set_flag(AttrKey key) { set(key, int64_t{1}); }
  template <class E>
    requires kIsProgramEnum<E>
  void set_enum(AttrKey key, E value) {
    set(key, static_cast<int64_t>(value));
  }
  void erase(AttrKey key) {
    std::erase_if(list_, [&](const Attr& a) { return a.key == key; });
  }

  int64_t integer(AttrKey key, int64_t otherwise = 0) const {
    const AttrValue* v = find(key);
    return v ? std::get<int64_t>(*v) : otherwise;
  }
  bool flag(AttrKey key) const { return integer(key) != 0; }
  // Empty when absent.
  std::span<const int64_t> ints(AttrKey key) const {
    const AttrValue* v = find(key);
    return v ? std::span<const int64_t>(std::get<std::vector<int64_t>>(*v)) : std::span<const int64_t>();
  }
  std::string_view string(AttrKey key) const {
    const AttrValue* v = find(key);
    return v ? std::string_view(std::get<std::string>(*v)) : std::string_view();
  }
  template <class E>
    requires kIsProgramEnum<E>
  E enumerator(AttrKey key, E otherwise = {}) const {
    return static_cast<E>(integer(key, static_cast<int64_t>(otherwise)));
  }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<Attr> list_;
};

}  // namespace fusebox
