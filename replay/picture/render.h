// Pictures as strings: a listing, a dot graph, an SVG document, and an HTML page that stands alone.
//
// All show the groups of one id graph; the page holds all five and switches between them. A group is shown by its
// number as well as by its colour. Names are user text: each format gets them escaped, so that any name gives a
// well-formed document.
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
// One document, the pictures below each other. What hovering tells is in <title>.
std::string to_svg(std::span<const Picture> pictures, IdGraphKind kind);
// `kind` is what the page shows first.
std::string to_html(std::span<const Picture> pictures, IdGraphKind kind);

// -- what the formats share

// Index, holes, check, group and readers of a domain, by lines.
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

// A group's look: a colour, and a pattern once the colours are used up. Number 0, alone, has neither.
inline constexpr size_t kStyles = 32;
inline size_t style_of(uint32_t group) { return group == 0 ? 0 : (group - 1) % kStyles + 1; }
std::string colour_of(uint32_t group);  // #rrggbb

// What is no UTF-8, or no character that XML 1.0 can hold, becomes U+FFFD.
std::string printable(std::string_view text);
// For text and attributes of XML and HTML: printable, and markup becomes entities.
std::string escaped(std::string_view text);

}  // namespace fusebox::picture
