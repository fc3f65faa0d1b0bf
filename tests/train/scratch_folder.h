// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepwell::train {

// A folder for one test's files, gone with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stepwell-train-XXXXXX").native();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    root_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path(std::string_view name) const { return (root_ / name).native(); }
  void write(std::string_view name, std::string_view content) const {
    const std::filesystem::path file = root_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace stepwell::train
