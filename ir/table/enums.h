// The enumerations that programs store. One table (enum_table.h) lists their enumerators, texts and wire ids.
//
//   text(ParallelType::kGridX) == "grid.x";  parse_enum<ParallelType>("grid.x") == ParallelType::kGridX
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/table/enum_table.h"

namespace fusebox {

#define FUSEBOX_ENUMERATOR(name, text) name,
#define FUSEBOX_DECLARE(type) enum class type : uint8_t { FUSEBOX_##type(FUSEBOX_ENUMERATOR) };
FUSEBOX_ENUM_TYPES(FUSEBOX_DECLARE)
#undef FUSEBOX_DECLARE
#undef FUSEBOX_ENUMERATOR

template <class E>
inline constexpr bool kIsProgramEnum = false;
// The texts of a type, in enumerator order.
template <class E>
constexpr std::span<const std::string_view> enum_texts();

#define FUSEBOX_TEXT(name, text) std::string_view(text),
#define FUSEBOX_TEXTS(type)                                                            \
  inline constexpr std::string_view k##type##Texts[] = {FUSEBOX_##type(FUSEBOX_TEXT)}; \
  template <>                                                                          \
  inline constexpr bool kIsProgramEnum<type> = true;                                   \
  template <>                                                                          \
  constexpr std::span<const std::string_view> enum_texts<type>() {                     \
    return k##type##Texts;                                                             \
  }
FUSEBOX_ENUM_TYPES(FUSEBOX_TEXTS)
#undef FUSEBOX_TEXTS
#undef FUSEBOX_TEXT

template <class E>
  requires kIsProgramEnum<E>
std::string_view text(E value) {
  return enum_texts<E>()[static_cast<size_t>(value)];
}

template <class E>
std::optional<E> parse_enum(std::string_view word) {
  const auto texts = enum_texts<E>();
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i] == word) return static_cast<E>(i);
  return std::nullopt;
}

inline bool is_grid(ParallelType p) { return p >= ParallelType::kGridX && p <= ParallelType::kGridZ; }
inline bool is_block(ParallelType p) { return p >= ParallelType::kBlockX && p <= ParallelType::kBlockZ; }
inline bool is_thread(ParallelType p) { return is_grid(p) || is_block(p); }

}  // namespace fusebox
