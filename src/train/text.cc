// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

namespace stepwell::train {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void file_error(const std::string& message) { fail(ErrorCode::File, "text", message); }

bool hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

// Adds the files below `folder`. Unreadable folders are errors: silently training on less would be worse.
void add_folder(const fs::path& folder, std::set<std::string>& files) {
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  while (!error && it != end) {
    const fs::directory_entry& entry = *it;
    const bool link = entry.is_symlink(error);
    if (hidden(entry.path()) || link) {
      if (!link && entry.is_directory(error)) it.disable_recursion_pending();
    } else if (entry.is_regular_file(error) && entry.file_size(error) > 0) {
      files.insert(entry.path().lexically_normal().native());
    }
    it.increment(error);
  }
  if (error) file_error("cannot read folder " + folder.native() + ": " + error.message());
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;  // let the last * take one byte more
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> list_files(std::span<const std::string> paths) {
  std::set<std::string> files;
  for (const std::string& name : paths) {
    const fs::path path = fs::path(name).lexically_normal();
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
      add_folder(path, files);
    } else if (fs::is_regular_file(status)) {
      if (fs::file_size(path, error) == 0) file_error("file " + name + " is empty");
      files.insert(path.native());
    } else {
      file_error(fs::exists(status) ? name + " is neither a file nor a folder" : "no file or folder " + name);
    }
  }
  if (files.empty()) file_error("no files with content" + (paths.empty() ? "" : " in " + paths.front()));
  return {files.begin(), files.end()};
}

ByteText ByteText::load(std::span<const std::string> paths, std::string_view hold_out, double fraction) {
  STEPWELL_CHECK(fraction >= 0 && fraction < 1, "text",
                 "held-out fraction " + std::to_string(fraction) + ", expected a number in [0, 1)");
  ByteText text;
  const std::vector<std::string> files = list_files(paths);
  for (const std::string& path : files) {
    const io::MappedFile file = io::MappedFile::open(path);
    const std::string_view content(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (!hold_out.empty() && matches(hold_out, fs::path(path).filename().native())) {
      text.held_out.emplace_back(content);
    } else {
      text.train += content;
    }
  }
  if (!hold_out.empty()) {
    const std::string pattern(hold_out);
    if (text.held_out.empty()) file_error("none of " + std::to_string(files.size()) + " files matches " + pattern);
    if (text.train.empty())
      file_error("all " + std::to_string(files.size()) + " files match " + pattern + ", none is left to train on");
  } else {
    const auto kept =
        text.train.size() - static_cast<std::size_t>(std::floor(fraction * static_cast<double>(text.train.size())));
    if (kept < text.train.size()) text.held_out.push_back(text.train.substr(kept));
    text.train.resize(kept);
  }
  return text;
}

std::int64_t ByteText::held_out_bytes() const {
  std::int64_t total = 0;
  for (const std::string& document : held_out) total += static_cast<std::int64_t>(document.size());
  return total;
}

Unigram::Unigram(std::string_view text) {
  std::array<double, 256> count;
  count.fill(1);
  for (const char c : text) count[static_cast<unsigned char>(c)] += 1;
  const double total = static_cast<double>(text.size()) + 256;
  for (std::size_t i = 0; i < count.size(); ++i) bits_[i] = -std::log2(count[i] / total);
}

}  // namespace stepwell::train
