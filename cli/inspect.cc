// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/error.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"
#include "stepwell/models/model.h"
#include "stepwell/train/trainer.h"

#include "cli/command.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

namespace fs = std::filesystem;

const char* describe(io::SealState state) {
  switch (state) {
    case io::SealState::Intact: return "intact";
    case io::SealState::Changed: return "CHANGED since it was sealed";
    case io::SealState::MissingFile: return "the file is missing";
    case io::SealState::MissingSeal: return "none";
  }
  return "";
}

// Collects what is found, as a report for people or as JSON; remembers whether a seal is broken.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  // With the parameters of the model that the file holds: also which of them weight decay applies to.
  void tensors(const std::string& path, const models::Model* model = nullptr) {
    const auto file = io::SafetensorsFile::open(path);
    begin(path);
    std::map<std::string, bool> decay;
    if (model) {
      for (const layers::Parameter* p : model->parameters()) decay[p->name] = p->decay;
    }
    Table table({"tensor", "type", "shape", ">elements", model ? "weight decay" : ""});
    Config::Array list;
    std::int64_t elements = 0, bytes = 0;
    for (std::size_t i = 0; i < file.size(); ++i) {
      const io::TensorInfo info = file.info(i);
      const std::int64_t n = info.shape.size();
      elements += n;
      bytes += static_cast<std::int64_t>(info.end - info.begin);
      const auto found = decay.find(info.name);
      table.row({printable(info.name), std::string(dtype_name(info.dtype)), info.shape.to_string(), with_commas(n),
                 found == decay.end() ? ""
                 : found->second      ? "yes"
                                      : "no"});
      Config::Array shape;
      for (const std::int64_t extent : info.shape.extents()) shape.emplace_back(extent);
      Config::Object entry{{"name", info.name}, {"dtype", std::string(dtype_name(info.dtype))}, {"shape", shape}};
      if (found != decay.end()) entry.emplace_back("weight_decay", found->second);
      list.emplace_back(std::move(entry));
    }
    Config metadata(Config::Object{});
    for (const auto& [key, value] : file.metadata()) metadata.set(key, value);
    if (!json_) {
      for (const auto& [key, value] : metadata.as_object(path)) {
        std::printf("  %s: %s\n", printable(key).c_str(), printable(value.as_string(path)).c_str());
      }
      table.print(stdout);
      std::printf("%s tensors, %s elements, %s bytes\n", with_commas(static_cast<long long>(file.size())).c_str(),
                  with_commas(elements).c_str(), with_commas(bytes).c_str());
    }
    end({{"metadata", std::move(metadata)}, {"tensors", std::move(list)}});
  }

  void config(const std::string& path) {
    Config content = io::read_json(path, io::JsonDialect::Config);
    begin(path);
    if (!json_) std::printf("%s\n", io::to_json(content).c_str());
    end({{"config", std::move(content)}});
  }

  int finish() {
    if (json_) std::printf("%s\n", io::to_json(Config(std::move(files_))).c_str());
    return broken_ ? kFailure : kSuccess;
  }

 private:
  void begin(const std::string& path) {
    const io::SealState state = io::verify_seal(path);
    broken_ = broken_ || state == io::SealState::Changed;
    path_ = path;
    seal_ = describe(state);
    if (!json_) std::printf("%s%s\n  seal: %s\n", files_.empty() ? "" : "\n", printable(path).c_str(), seal_.c_str());
  }
  void end(Config::Object found) {
    Config::Object entry{{"file", path_}, {"seal", seal_}};
    for (auto& member : found) entry.push_back(std::move(member));
    files_.emplace_back(std::move(entry));
  }

  bool json_, broken_ = false;
  std::string path_, seal_;
  Config::Array files_;
};

int inspect_command(const std::string& path, bool json) {
  Report report(json);
  if (!fs::is_directory(path)) {
    if (path.ends_with(".json")) report.config(path);
    else report.tensors(path);
    return report.finish();
  }
  const std::string folder = train::newest_checkpoint(path);
  if (folder != path) report.config(io::join_path(path, "recipe.json"));
  std::vector<std::string> tensors;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") tensors.push_back(entry.path().native());
  }
  std::sort(tensors.begin(), tensors.end());
  std::unique_ptr<models::Model> model;  // a distillation has none
  if (const std::string config = io::join_path(folder, "config.json"); io::file_exists(config)) {
    report.config(config);
    model = models::load_model(folder);
  }
  for (const std::string& file : tensors) {
    const bool parameters = fs::path(file).filename().native().starts_with("model");
    report.tensors(file, parameters ? model.get() : nullptr);
  }
  return report.finish();
}

}  // namespace

Action declare_inspect(Options& options) {
  struct Arguments {
    std::string path;
    bool json = false;
  };
  const auto a = std::make_shared<Arguments>();
  options.argument("path", a->path, true, "A .safetensors or .json file, a model folder, or a run");
  options.json(a->json);
  return [a] { return inspect_command(a->path, a->json); };
}

}  // namespace stepwell::cli
