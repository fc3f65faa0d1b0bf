// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"

namespace stepwell::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "step-", kUnfinished = ".unfinished-";
constexpr std::size_t kKept = 2;  // checkpoints: the newest, and the one before in case the newest is damaged

[[noreturn]] void folder_error(const std::string& path, const std::string& message) {
  fail(ErrorCode::File, "run", path + ": " + message);
}

std::string system_message() { return std::generic_category().message(errno); }

// A folder opened for flock() or fsync().
class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0) folder_error(path, system_message());
  }
  ~OpenFolder() { ::close(descriptor_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The step in "step-00000100", or −1.
std::int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && stop == name.data() + name.size() ? step : -1;
}

std::string checkpoints_folder(const std::string& path) { return io::join_path(path, "checkpoints"); }
std::string recipe_file(const std::string& path) { return io::join_path(path, "recipe.json"); }
std::string metrics_file(const std::string& path) { return io::join_path(path, "metrics.jsonl"); }

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  return std::string(kPrefix) + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)) {
  auto folder = std::make_shared<OpenFolder>(path_);
  if (flock(folder->descriptor(), LOCK_EX | LOCK_NB) != 0) {
    folder_error(path_,
                 errno == EWOULDBLOCK ? "another process is training this run" : "cannot lock: " + system_message());
  }
  lock_ = std::move(folder);
}

RunFolder RunFolder::create(const std::string& path, const Config& recipe) {
  io::make_folder(path);
  RunFolder run(path);
  if (io::file_exists(recipe_file(path))) folder_error(path, "holds a run already; resume it, or name another folder");
  io::make_folder(checkpoints_folder(path));
  io::write_file(recipe_file(path), io::to_json(recipe) + "\n");
  run.continue_metrics(0);
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  if (!io::file_exists(recipe_file(path))) folder_error(path, "holds no run: there is no recipe.json");
  RunFolder run(path);
  io::make_folder(checkpoints_folder(path));
  for (const auto& entry : fs::directory_iterator(checkpoints_folder(path))) {
    if (entry.path().filename().native().starts_with(kUnfinished)) fs::remove_all(entry.path());
  }
  return run;
}

std::vector<std::int64_t> RunFolder::checkpoints(const std::string& path) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints_folder(path), error)) {
    const std::int64_t step = step_of(entry.path().filename().native());
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string RunFolder::checkpoint_folder(const std::string& path, std::int64_t step) {
  return io::join_path(checkpoints_folder(path), checkpoint_name(step));
}

Config RunFolder::read_recipe(const std::string& path) {
  if (!io::file_exists(recipe_file(path))) folder_error(path, "holds no run: there is no recipe.json");
  return io::read_json(recipe_file(path));
}

std::string RunFolder::save_checkpoint(std::int64_t step, const std::function<void(const std::string& folder)>& write) {
  const std::string parent = checkpoints_folder(path_), final_path = checkpoint_folder(path_, step);
  const std::string unfinished = io::join_path(parent, std::string(kUnfinished) + checkpoint_name(step));
  std::error_code error;
  fs::remove_all(unfinished, error);
  io::make_folder(unfinished);
  write(unfinished);
  {  // The files are on disk by now (io::AtomicFile); next the folder's entries, then the move.
    const OpenFolder folder(unfinished);
    if (fsync(folder.descriptor()) != 0) folder_error(unfinished, system_message());
  }
  if (std::rename(unfinished.c_str(), final_path.c_str()) != 0) folder_error(final_path, system_message());
  const OpenFolder folder(parent);
  if (fsync(folder.descriptor()) != 0) folder_error(parent, system_message());
  const std::vector<std::int64_t> all = checkpoints(path_);
  for (std::size_t i = 0; i + kKept < all.size(); ++i) fs::remove_all(checkpoint_folder(path_, all[i]), error);
  return final_path;
}

void RunFolder::continue_metrics(std::int64_t step) {
  const std::string path = metrics_file(path_);
  metrics_.reset();
  std::string kept;
  if (io::file_exists(path)) {
    const std::string old = io::read_file(path, std::numeric_limits<std::int64_t>::max());
    for (std::size_t begin = 0, end; (end = old.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = old.substr(begin, end - begin);
      const Config metrics = io::parse_json(line, path);
      const Config* at = metrics.find("step");
      if (at && at->as_integer(path) <= step) kept += line + "\n";
    }
  }
  io::write_file(path, kept);
  metrics_.reset(std::fopen(path.c_str(), "ab"));
  if (!metrics_) folder_error(path, system_message());
}

void RunFolder::append_metrics(const Config& line) {
  const std::string text = io::to_json(line, 0) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), metrics_.get()) != text.size() || std::fflush(metrics_.get()) != 0) {
    folder_error(metrics_file(path_), "cannot write: " + system_message());
  }
}

}  // namespace stepwell::train
