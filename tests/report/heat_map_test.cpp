#include "mercer/report/heat_map.hpp"

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"

namespace mercer::report {
namespace heat_map_test {

HeatMap small_map() {
  HeatMap map;
  map.title = "A & B <test>";
  map.columns = {"0.1", "1"};
  map.rows = {"1e-4"};
  map.panels = {{"first", {{{-1.5, "-1.50"}, {1.5, "1.50"}}}},
                {"second", {{{0.0, "0.00"}, {std::nullopt, "-"}}}}};
  return map;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(HeatMap, DrawsEveryCellInItsColour) {
  const std::string picture = svg(small_map());
  EXPECT_EQ(occurrences(picture, "stroke=\"#999\""), 4u);  // one frame per cell
  EXPECT_NE(picture.find(">-1.50<"), std::string::npos);
  // Full blue, full red, white at nothing gained, grey where there is no value; the first two also
  // end the colour bar.
  EXPECT_EQ(occurrences(picture, "#2166ac"), 2u);
  EXPECT_EQ(occurrences(picture, "#b2182b"), 2u);
  EXPECT_EQ(occurrences(picture, "fill=\"#eeeeee\""), 1u);
}

TEST(HeatMap, EscapesText) {
  const std::string picture = svg(small_map());
  EXPECT_NE(picture.find("A &amp; B &lt;test&gt;"), std::string::npos);
  EXPECT_EQ(picture.find("<test>"), std::string::npos);
}

TEST(HeatMap, RefusesPanelsOfAnotherShape) {
  auto map = small_map();
  map.panels[0].cells[0].pop_back();
  EXPECT_THROW(svg(map), InvalidArgument);
  map.panels[0].cells.clear();
  EXPECT_THROW(svg(map), InvalidArgument);
}

}  // namespace heat_map_test
}  // namespace mercer::report
