#include "mercer/report/line_chart.hpp"

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"

namespace mercer::report {
namespace line_chart_test {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(LineChart, DrawsEveryPointThatAnAxisHas) {
  LineChart chart;
  chart.title = "A & B";
  chart.lines = {{"first", {{1, 0.1, "100"}, {10, 0.01, "300"}, {0, 5, "never"}}},
                 {"second", {{2, 0.5, ""}}}};
  const auto picture = svg(chart);
  EXPECT_NE(picture.find("A &amp; B"), std::string::npos);
  EXPECT_EQ(count_of(picture, "<path"), 2u);
  EXPECT_EQ(count_of(picture, "<circle"), 3u + 2u);  // points, and one for each name
  EXPECT_NE(picture.find(">300<"), std::string::npos);
  EXPECT_EQ(picture.find("never"), std::string::npos);
}

// Further right is more, further up is more: pixels grow downwards.
TEST(LineChart, AxesPointTheUsualWay) {
  LineChart chart;
  chart.lines = {{"a", {{1, 0.1, ""}, {100, 10, ""}}}};
  const auto picture = svg(chart);
  const auto path = picture.substr(picture.find("<path d=\"M") + 10, 60);
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  ASSERT_EQ(std::sscanf(path.c_str(), "%lf %lf L%lf %lf", &x1, &y1, &x2, &y2), 4);
  EXPECT_LT(x1, x2);
  EXPECT_GT(y1, y2);
}

TEST(LineChart, AMarkIsWithinTheAxis) {
  LineChart chart;
  chart.lines = {{"a", {{1, 1, ""}}}};
  chart.mark = 1000;
  chart.mark_label = "exact";
  const auto picture = svg(chart);
  EXPECT_EQ(count_of(picture, "stroke-dasharray"), 1u);
  EXPECT_NE(picture.find(">exact<"), std::string::npos);
  EXPECT_NE(picture.find(">1000<"), std::string::npos);  // the axis goes that far
}

TEST(LineChart, WithoutAPointThereIsNoPicture) {
  LineChart chart;
  chart.lines = {{"a", {{-1, 1, ""}}}};
  EXPECT_THROW(svg(chart), InvalidArgument);
}

}  // namespace line_chart_test
}  // namespace mercer::report
