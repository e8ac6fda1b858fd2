// The places of the domains and transforms of one tensor in its drawing. The drawing has layers, from the root at the
// top over the logical domain to the loops at the bottom. Each of these is a row in the order of its list.
//
// A domain that is in two rows (a logical domain that is a loop too) is drawn in both, joined by a line. Sizes are in
// pixels. Texts are measured by their number of letters in a monospaced font, so layout needs no font.
//
// Invariants: boxes of a layer do not overlap and keep the order of their list. No x or y is negative.
//
//   i0 = split by 4 -> o, t     layers: i0 | split 4 | o t
#pragma once

#include <string>
#include <vector>

#include "replay/picture/picture.h"

namespace fusebox::picture {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double middle() const { return x + width / 2; }
};

enum class Row : uint8_t { kRoot, kLogical, kBetween, kLoop };

struct PlacedDomain {
  size_t domain = 0;  // of Picture::domains
  Row row = Row::kBetween;
  bool is_shared_loop = false;  // with every consumer
  Box box;
};

struct PlacedTransform {
  size_t transform = 0;  // of TensorPicture::transforms
  Box box;
};

struct Point {
  double x = 0, y = 0;
};

// A line from the lower edge of one box to the upper edge of another.
struct Line {
  std::vector<Point> points;
  bool is_same_domain = false;
};

struct RowLabel {
  std::string text;  // a name on each line
  double y = 0;      // the middle of the row
};

struct TensorLayout {
  double width = 0, height = 0;
  std::vector<PlacedDomain> domains;
  std::vector<PlacedTransform> transforms;
  std::vector<Line> lines;
  std::vector<RowLabel> labels;
};

TensorLayout lay_out(const Picture& picture, size_t tensor);

// A mark in a domain's box.
struct Mark {
  enum class Kind : uint8_t { kParallel, kAllocation, kHoles, kCheck } kind = Kind::kParallel;
  std::string text;
};
struct BoxText {
  std::string name, type;
  std::vector<Mark> marks;
};
BoxText box_text(const DomainPicture& d);

// The first letters of a text, with `…` if it is longer than `most` letters. Counts and cuts UTF-8.
std::string shortened(const std::string& text, size_t most);
size_t letters(const std::string& text);

// The width of a letter, relative to the size of the font.
inline constexpr double kLetter = 0.62;
inline constexpr double kNameSize = 13, kTextSize = 11, kMarkSize = 10;
inline constexpr double kPadding = 8, kMarkPadding = 4, kMarkGap = 4;

}  // namespace fusebox::picture
