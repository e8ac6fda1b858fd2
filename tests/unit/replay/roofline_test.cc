// The roofline as an SVG document: its points and roof lie where the numbers say, and any name is well-formed.
#include "replay/picture/roofline.h"

#include <gtest/gtest.h>
#include <regex>

namespace fusebox::picture {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// The places of the points, in their order.
std::vector<std::pair<double, double>> circles(const std::string& svg) {
  std::vector<std::pair<double, double>> found;
  const std::regex circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), circle); it != std::sregex_iterator(); ++it)
    found.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  return found;
}

TEST(Roofline, PointsStandByBytesAndRate) {
  // By rate from the highest on, as labels stand: 1e9, 1e8 and 1e7 bytes a second.
  const std::string svg = to_svg({.title = "t", .points = {{"c", 1e3, 100}, {"a", 1e5, 100}, {"b", 1e4, 100}}});
  const auto at = circles(svg);
  ASSERT_EQ(at.size(), 3u);
  EXPECT_GT(at[0].first, at[1].first);
  EXPECT_GT(at[1].first, at[2].first);
  EXPECT_LT(at[0].second, at[1].second);
  EXPECT_LT(at[1].second, at[2].second);
  // Decades are equally long.
  EXPECT_NEAR(at[0].first - at[1].first, at[1].first - at[2].first, 0.2);
  EXPECT_NEAR(at[1].second - at[0].second, at[2].second - at[1].second, 0.2);
}

TEST(Roofline, HasARoofOnlyWhereOneWasMeasured) {
  const std::vector<RooflinePoint> points = {{"a", 1e6, 10}};
  EXPECT_EQ(count(to_svg({.title = "host", .points = points}), "class=\"roof\""), 0u);
  const std::string svg = to_svg({.title = "gpu", .points = points, .copy_rate = 4.2e6, .empty_us = 2.9});
  EXPECT_EQ(count(svg, "class=\"roof\""), 1u);
  EXPECT_NE(svg.find("a copy: 4200 GB/s"), std::string::npos);
  EXPECT_NE(svg.find("2.9 µs"), std::string::npos);
  // A point on the roof: as many bytes a microsecond as the copy.
  const std::string on = to_svg({.title = "gpu", .points = {{"a", 4.2e9, 1000}}, .copy_rate = 4.2e6, .empty_us = 0});
  const double y = circles(on).at(0).second;
  std::smatch roof;
  ASSERT_TRUE(std::regex_search(on, roof, std::regex("class=\"roof\" d=\"M[0-9.]+ ([0-9.]+)L")));
  EXPECT_NEAR(std::stod(roof[1]), y, 0.1);
}

TEST(Roofline, NamesAreEscapedAndWhatHasNoPlaceIsNamed) {
  const std::string svg =
      to_svg({.title = "<&>", .points = {{"<x>&\"", 100, 1}, {"nothing", 0, 1}, {"no_time", 5, 0}}});
  EXPECT_EQ(svg.find("<x>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;x&gt;&amp;"), std::string::npos);
  EXPECT_NE(svg.find("not drawn: nothing, no_time"), std::string::npos);
  EXPECT_EQ(circles(svg).size(), 1u);
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "inf"), 0u);
}

TEST(Roofline, LabelsStandApartAndNoPointIsFine) {
  EXPECT_EQ(circles(to_svg({.title = "none"})).size(), 0u);
  std::vector<RooflinePoint> same;
  for (int i = 0; i < 30; ++i) same.push_back({"p" + std::to_string(i), 1e6, 10});
  const std::string svg = to_svg({.title = "t", .points = same});
  std::vector<double> heights;
  const std::regex label("y=\"([0-9.]+)\" class=\"tick\">p");
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), label); it != std::sregex_iterator(); ++it)
    heights.push_back(std::stod((*it)[1]));
  ASSERT_EQ(heights.size(), 30u);
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 11.9);
  EXPECT_LE(heights.back(), 600);
}

}  // namespace
}  // namespace fusebox::picture
