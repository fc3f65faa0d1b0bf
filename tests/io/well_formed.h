// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::io {

// Reads XML as far as charts and pages use it and says what is wrong with it, "" if nothing is: tags that do not match,
// attributes without quotes or twice in a tag, bare & and <, control characters.
class WellFormed {
 public:
  explicit WellFormed(std::string_view xml) : rest_(xml) {}

  std::string fault() {
    if (rest_.starts_with("<!DOCTYPE html>")) rest_.remove_prefix(15);
    while (!rest_.empty() && fault_.empty()) {
      if (rest_[0] == '<') tag();
      else content(rest_.find('<'));
    }
    if (fault_.empty() && !open_.empty()) fault_ = "not closed: " + open_.back();
    if (fault_.empty() && roots_ != 1) fault_ = std::to_string(roots_) + " roots";
    return fault_;
  }

 private:
  std::string_view take(std::size_t n) {
    const std::string_view part = rest_.substr(0, n);
    rest_.remove_prefix(part.size());
    return part;
  }
  std::string_view word() {
    std::size_t n = 0;
    while (n < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '-' || rest_[n] == ':'))
      ++n;
    return take(n);
  }
  void space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }
  void fail(const std::string& what) { fault_ = what + " before: " + std::string(rest_.substr(0, 40)); }

  void content(std::size_t n) {
    std::string_view text = take(n);
    if (open_.empty() && text.find_first_not_of(" \n") != std::string_view::npos) fail("text outside");
    while (!text.empty()) {
      const auto c = static_cast<unsigned char>(text[0]);
      if (c == '<') fail("bare <");
      if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') fail("control character");
      if (c == '&') {
        const std::string_view entity = text.substr(0, text.find(';') + 1);
        if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#39;")
          fail("bare &");
      }
      text.remove_prefix(1);
    }
  }

  void tag() {
    take(1);
    const bool closing = rest_.starts_with("/");
    if (closing) take(1);
    const std::string name(word());
    if (name.empty()) return fail("no name");
    std::vector<std::string> attributes;
    for (space(); !rest_.empty() && rest_[0] != '>' && rest_[0] != '/'; space()) {
      const std::string attribute(word());
      if (attribute.empty() || !rest_.starts_with("=\"")) return fail("attribute");
      for (const std::string& other : attributes) {
        if (other == attribute) return fail("attribute twice");
      }
      attributes.push_back(attribute);
      take(2);
      open_.push_back("attribute");
      content(rest_.find('"'));
      open_.pop_back();
      if (take(1) != "\"") return fail("no end of attribute");
    }
    const bool empty = rest_.starts_with("/");
    if (empty) take(1);
    if (take(1) != ">") return fail("no end of tag");
    if (closing) {
      if (open_.empty() || open_.back() != name) return fail("closes " + name);
      open_.pop_back();
      return;
    }
    if (open_.empty()) ++roots_;
    if (!empty) open_.push_back(name);
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  std::string fault_;
  int roots_ = 0;
};

}  // namespace stepwell::io
