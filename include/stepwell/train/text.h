// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::train {

// Whether a whole file name matches a pattern of letters, ? (any one byte) and * (any run of bytes).
bool matches(std::string_view pattern, std::string_view name);

// The regular files that `paths` name, sorted and each once. A folder stands for everything below it but symbolic
// links, hidden files and empty files. Throws Error (File) for a path that is missing, an empty file named itself, and
// when nothing is left.
std::vector<std::string> list_files(std::span<const std::string> paths);

// Text as bytes, cut into a part to train on and documents held out.
struct ByteText {
  std::string train;
  std::vector<std::string> held_out;

  // Reads `paths` (list_files). Files whose name matches `hold_out` are held out; without a pattern the last `fraction`
  // (in [0, 1)) of all bytes is. Throws Error (File): unreadable files, a pattern that matches no file or all of them.
  static ByteText load(std::span<const std::string> paths, std::string_view hold_out, double fraction);

  std::int64_t held_out_bytes() const;
};

// Byte frequencies with add-one smoothing: the model without memory that others are compared with.
class Unigram {
 public:
  explicit Unigram(std::string_view text);
  double bits(unsigned char byte) const { return bits_[byte]; }  // −log2 p

 private:
  std::array<double, 256> bits_;
};

}  // namespace stepwell::train
