// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepwell::io {

// One HTML page that needs nothing but itself, no script among it; light or dark as the reader's system prefers. Texts
// may hold anything.
class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // Columns whose title starts with '>' hold numbers and are aligned to the right (the sign is not shown). No head
  // if every title is empty.
  void table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows);
  // An SVG as to_svg makes it, trusted; the caption says what to see in it.
  void chart(std::string_view svg, std::string_view caption = {});
  // Text as it is, folded away behind `summary`.
  void folded(std::string_view summary, std::string_view text);

  std::string html() const;

 private:
  std::string title_, body_;
};

}  // namespace stepwell::io
