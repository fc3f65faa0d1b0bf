// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/page.h"

#include <algorithm>

#include "io/markup.h"

namespace stepwell::io {

namespace {

std::string style() {
  return std::string(":root{color-scheme:light dark;") + kLightColours + "--page:#f4f6fa}" +
         "@media (prefers-color-scheme:dark){:root{" + kDarkColours + "--page:#0b0e13}}" +
         "body{margin:0;background:var(--page);color:var(--ink);"
         "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}"
         "main{max-width:1000px;margin:0 auto;padding:24px 20px 64px}"
         "h1{font-size:26px;line-height:1.25;margin:8px 0 16px}h2{font-size:19px;margin:36px 0 10px}"
         "p{max-width:75ch;margin:8px 0}figure{margin:16px 0;padding:0}"
         "figure svg{display:block;max-width:100%;height:auto;border-radius:8px}"
         "figcaption{color:var(--note);font-size:14px;margin-top:6px;max-width:75ch}"
         ".wide{overflow-x:auto;margin:12px 0}table{border-collapse:collapse;background:var(--ground);"
         "border-radius:8px;font-variant-numeric:tabular-nums}"
         "th,td{padding:5px 14px;text-align:left;border-bottom:1px solid var(--grid);white-space:nowrap}"
         "th{color:var(--note);font-weight:600;font-size:14px}tr:last-child td{border-bottom:0}"
         ".number{text-align:right}details{margin:12px 0}summary{cursor:pointer;color:var(--note)}"
         "pre{background:var(--ground);padding:12px 16px;border-radius:8px;overflow-x:auto;font-size:13px}";
}

std::string element(std::string_view tag, std::string_view text) {
  return "<" + std::string(tag) + ">" + escape_markup(text) + "</" + std::string(tag) + ">\n";
}

}  // namespace

HtmlPage::HtmlPage(std::string_view title) : title_(title) {}

void HtmlPage::heading(std::string_view text) { body_ += element("h2", text); }
void HtmlPage::paragraph(std::string_view text) { body_ += element("p", text); }

void HtmlPage::table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  const auto row = [&](const std::vector<std::string>& cells, const std::string& tag, bool head) {
    body_ += "<tr>";
    for (std::size_t i = 0; i < titles.size(); ++i) {
      const bool number = titles[i].starts_with('>');
      const std::string_view text = i < cells.size() ? std::string_view(cells[i]) : std::string_view();
      body_ += "<" + tag + (number ? " class=\"number\">" : ">") + escape_markup(text.substr(head && number ? 1 : 0)) +
               "</" + tag + ">";
    }
    body_ += "</tr>\n";
  };
  body_ += "<div class=\"wide\"><table>\n";
  if (std::ranges::any_of(titles, [](const std::string& title) { return !title.empty() && title != ">"; })) {
    row(titles, "th", true);
  }
  for (const auto& cells : rows) row(cells, "td", false);
  body_ += "</table></div>\n";
}

void HtmlPage::chart(std::string_view svg, std::string_view caption) {
  body_ += "<figure>\n" + std::string(svg) + (caption.empty() ? "" : element("figcaption", caption)) + "</figure>\n";
}

void HtmlPage::folded(std::string_view summary, std::string_view text) {
  body_ += "<details>" + element("summary", summary) + element("pre", text) + "</details>\n";
}

std::string HtmlPage::html() const {
  return "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n" +
         element("title", title_) + "<style>" + style() + "</style>\n</head>\n<body><main>\n" + element("h1", title_) +
         body_ + "</main></body>\n</html>\n";
}

}  // namespace stepwell::io
