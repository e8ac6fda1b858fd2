// Pictures as strings: a listing, a dot graph, an SVG document, and an HTML page that stands alone.
//
// All show the groups of one id graph; the page holds all five and switches between them. A group has a number and a
// colour. Names are user text: each format escapes them, so that any name gives a well-formed document.
//
//   Picture p = describe(scheduled);
//   write(path, to_html({{p}}, IdGraphKind::kExact))
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "replay/picture/picture.h"

namespace fusebox::picture {

std::string to_text(const Picture& picture, IdGraphKind kind);
// A digraph with a cluster for each tensor.
std::string to_dot(const Picture& picture, IdGraphKind kind);
// One document, the pictures below each other. <title> elements hold the texts for hovering.
std::string to_svg(std::span<const Picture> pictures, IdGraphKind kind);
// The page shows `kind` first.
std::string to_html(std::span<const Picture> pictures, IdGraphKind kind);

// -- shared by the formats

// Index, holes, check, group and readers of a domain, each on lines of its own.
std::string hover_text(const Picture& picture, size_t domain, IdGraphKind kind);
// One tensor's drawing as the content of an <svg>, and its size.
struct Drawing {
  std::string content;
  double width = 0, height = 0;
};
Drawing draw_tensor(const Picture& picture, size_t tensor, IdGraphKind kind);
// The rules and patterns that drawings refer to: <style> and <defs> content.
std::string drawing_style();
std::string drawing_definitions();

// A group's style: a colour, and a pattern when the colours are used up. Number 0 (alone) has neither.
inline constexpr size_t kStyles = 32;
inline size_t style_of(uint32_t group) { return group == 0 ? 0 : (group - 1) % kStyles + 1; }
std::string colour_of(uint32_t group);  // #rrggbb

// Replaces bytes that are no UTF-8, and characters that XML 1.0 cannot hold, by U+FFFD.
std::string printable(std::string_view text);
// For text and attributes of XML and HTML: printable, with markup as entities.
std::string escaped(std::string_view text);

}  // namespace fusebox::picture
