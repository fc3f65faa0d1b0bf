// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/chart.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/page.h"

#include "tests/io/well_formed.h"

namespace stepwell::io {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
const std::string kHostile = "<b>&\"'\x01\xFF\xC0\x80\xED\xA0\x80 é ∞";

std::string fault(const std::string& xml) { return WellFormed(xml).fault(); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

LineChart two_lines() {
  LineChart chart{.title = "Loss", .x = {.title = "step"}, .y = {.title = "nats"}};
  chart.lines = {{.name = "training", .x = {1, 2, 3}, .y = {3, 2, 1.5}},
                 {.name = "held out", .x = {1, 3}, .y = {3.5, 2}, .low = {3, 1.5}, .high = {4, 2.5}}};
  chart.marks = {{2, "here"}};
  return chart;
}

TEST(Chart, IsWellFormedAndTheSameEveryTime) {
  const std::string svg = to_svg(two_lines());
  EXPECT_EQ(fault(svg), "");
  EXPECT_EQ(svg, to_svg(two_lines()));
  for (const char* part :
       {">Loss<", ">step<", ">nats<", ">training<", ">held out<", ">here<", "prefers-color-scheme:dark",
        "class=\"area c1\"", "class=\"line c0\"", "xmlns=\"http://www.w3.org/2000/svg\""}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(count(svg, "url("), 0u) << "refers to something outside";
}

TEST(Chart, PutsValuesWhereTheyBelong) {
  LineChart chart{.y = {.low = 0.0, .high = 10.0}, .width = 400, .height = 200};
  chart.lines = {{.x = {0, 10}, .y = {0, 10}}};
  const std::string svg = to_svg(chart);
  // From the axes' corner to the opposite one: the tick labels "0" and "10" stand at the ends of the line.
  const std::size_t at = svg.find(" d=\"M");
  ASSERT_NE(at, std::string::npos);
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  ASSERT_EQ(std::sscanf(svg.c_str() + at, " d=\"M%lf %lfL%lf %lf\"", &x0, &y0, &x1, &y1), 4);
  EXPECT_LT(x0, 50);
  EXPECT_GT(x1, 370);
  EXPECT_GT(y0, 160);
  EXPECT_LT(y1, 30);
}

TEST(Chart, EscapesEveryText) {
  LineChart lines{.title = kHostile, .x = {.title = kHostile}, .y = {.title = kHostile}};
  lines.lines = {{.name = kHostile, .x = {1, 2}, .y = {1, 2}}, {.name = kHostile, .x = {1}, .y = {1}}};
  lines.marks = {{1, kHostile}};
  BarChart bars;
  bars.title = bars.value.title = kHostile;
  bars.series = {kHostile, kHostile};
  bars.groups = {{.name = kHostile, .values = {1, 2}}};
  SmallMultiples panels{.title = kHostile, .panels = {lines, lines}};
  HtmlPage page(kHostile);
  page.heading(kHostile);
  page.paragraph(kHostile);
  page.table({kHostile, ">" + kHostile}, {{kHostile, kHostile}, {}});
  page.chart(to_svg(bars), kHostile);
  page.folded(kHostile, kHostile);
  for (const std::string& text : {to_svg(lines), to_svg(bars), to_svg(panels), page.html()}) {
    EXPECT_EQ(fault(text), "");
    EXPECT_EQ(text.find("<b>"), std::string::npos);
    EXPECT_NE(text.find("&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST(Chart, DrawsWithoutData) {
  for (const bool logarithmic : {false, true}) {
    LineChart empty{.y = {.logarithmic = logarithmic}};
    EXPECT_EQ(fault(to_svg(empty)), "");
    EXPECT_NE(to_svg(empty).find("nothing to show"), std::string::npos);
    empty.lines = {{}, {.x = {kNan, 1, kInfinity}, .y = {1, kNan, 1}}};
    EXPECT_EQ(fault(to_svg(empty)), "");
    EXPECT_NE(to_svg(empty).find("nothing to show"), std::string::npos);
    EXPECT_EQ(fault(to_svg(BarChart{.value = {.logarithmic = logarithmic}})), "");
  }
  EXPECT_EQ(fault(to_svg(SmallMultiples{})), "");
  EXPECT_EQ(fault(to_svg(SmallMultiples{.panels = {{}, {}, {}}, .columns = 0, .width = -5, .panel_height = 0})), "");
  EXPECT_EQ(fault(to_svg(LineChart{.width = -1, .height = -1})), "");
  EXPECT_EQ(fault(HtmlPage("").html()), "");
}

TEST(Chart, DrawsConstantData) {
  for (const double value : {0.0, 7.0, -1e-9, 1e300, 5e-324}) {
    LineChart chart{.lines = {{.x = {1, 2}, .y = {value, value}}}};
    const std::string svg = to_svg(chart);
    EXPECT_EQ(fault(svg), "") << value;
    EXPECT_EQ(count(svg, "class=\"line c0\""), 1u) << value;
    EXPECT_EQ(svg.find("nan"), std::string::npos) << value;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << value;
  }
}

// A line breaks where a value is missing; a value alone becomes a dot.
TEST(Chart, LeavesOutWhatIsNotANumber) {
  LineChart chart{.lines = {{.x = {1, 2, 3, 4, 5, 6, 7}, .y = {1, 2, kNan, 4, kInfinity, 6, 7}}}};
  std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"line c0\""), 2u);
  EXPECT_EQ(count(svg, "<circle"), 1u);
  chart.y.logarithmic = true;
  chart.lines[0].y = {1, 2, 0, 4, -5, 6, 7};
  svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"line c0\""), 2u);
  EXPECT_EQ(count(svg, "<circle"), 1u);
  BarChart bars;
  bars.groups = {{.name = "a", .values = {kNan}}, {.name = "b", .values = {-2}, .low = {kNan}, .high = {1}}};
  EXPECT_EQ(count(to_svg(bars), "<title>"), 1u);
  EXPECT_EQ(fault(to_svg(bars)), "");
}

TEST(Chart, KeepsTheSpikesOfLongLines) {
  LineChart chart{.y = {.low = 0.0, .high = 1.0}};
  Line line;
  for (int i = 0; i < 100000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 54321 ? 1 : 0.5);
  }
  chart.lines = {line};
  const std::string with = to_svg(chart);
  EXPECT_LT(with.size(), 30000u);
  chart.lines[0].y[54321] = 0.5;
  EXPECT_NE(with, to_svg(chart));
}

// Points along a level line need not be written; its ends and corners do.
TEST(Chart, LevelLinesAreShort) {
  Line line;
  for (int i = 0; i < 500; ++i) {
    line.x.push_back(i);
    line.y.push_back(i < 250 ? 0 : 1);
  }
  const std::string svg = to_svg(LineChart{.lines = {line}});
  const std::size_t at = svg.find(" d=\"M");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(count(svg.substr(at, svg.find('"', at + 5) - at), "L"), 3u);
}

TEST(Chart, RefusesUnevenLines) {
  EXPECT_THROW(to_svg(LineChart{.lines = {{.x = {1, 2}, .y = {1}}}}), Error);
  EXPECT_THROW(to_svg(LineChart{.lines = {{.x = {1}, .y = {1}, .low = {0}}}}), Error);
  EXPECT_THROW(to_svg(SmallMultiples{.panels = {{.lines = {{.x = {1}}}}}}), Error);
}

TEST(HtmlPage, HoldsWhatIsPutIntoIt) {
  HtmlPage page("Runs");
  page.heading("Figures");
  page.table({"name", ">mse"}, {{"model", "0.1"}, {"persistence"}});
  page.chart(to_svg(two_lines()), "Both fall.");
  page.folded("Recipe", "steps = 3");
  const std::string html = page.html();
  EXPECT_EQ(fault(html), "");
  for (const char* part :
       {"<title>Runs</title>", "<h1>Runs</h1>", "<h2>Figures</h2>", "<th class=\"number\">mse</th>",
        "<td class=\"number\">0.1</td>", "<figcaption>Both fall.</figcaption>", "<pre>steps = 3</pre>"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const char* outside : {"<script", "src=", "href=", "@import", "url("}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
}

}  // namespace
}  // namespace stepwell::io
