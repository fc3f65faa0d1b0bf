// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stepwell/core/config.h"

namespace stepwell::train {

// The folder of one run on disk (see Trainer), locked against other processes for as long as the object lives. A lock
// ends with its process, however that ends.
class RunFolder {
 public:
  // Makes a run: the folder and recipe.json. Throws Error (File) if it holds a run already or cannot be written.
  static RunFolder create(const std::string& path, const Config& recipe);
  // Opens a run to go on with it, removing what an unfinished save left. Throws Error (File) if there is none.
  static RunFolder open(const std::string& path);

  // Steps of the checkpoints in the run in `path`, increasing.
  static std::vector<std::int64_t> checkpoints(const std::string& path);
  static std::string checkpoint_folder(const std::string& path, std::int64_t step);
  static Config read_recipe(const std::string& path);

  const std::string& path() const { return path_; }

  // Has `write` fill a new folder, which then becomes the checkpoint of `step` in one indivisible move; removes older
  // ones but the one before. Returns its path.
  std::string save_checkpoint(std::int64_t step, const std::function<void(const std::string& folder)>& write);

  // Drops lines of steps after `step` (and a torn last line), then appends.
  void continue_metrics(std::int64_t step);
  void append_metrics(const Config& line);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit RunFolder(std::string path);

  std::string path_;
  std::shared_ptr<void> lock_;
  std::unique_ptr<std::FILE, CloseFile> metrics_;
};

}  // namespace stepwell::train
