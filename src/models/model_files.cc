// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <utility>

#include "stepwell/io/blake3.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"
#include "stepwell/models/model.h"

#include "models/format.h"
#include "models/published.h"

namespace stepwell::models {

namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kParametersFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";  // of parameters in several files
constexpr const char* kPickleFile = "pytorch_model.bin";
constexpr const char* kConfigKey = "config";  // in the parameters' metadata: which configuration they belong to

std::string_view text_of(const io::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

void save_model(const Model& model, const std::string& folder) {
  io::make_folder(folder);
  const Config config = model.config();
  const std::string config_path = io::join_path(folder, kConfigFile);
  const std::string parameters_path = io::join_path(folder, kParametersFile);
  io::write_sealed(config_path, [&] { io::write_file(config_path, io::to_json(config) + "\n"); });
  io::write_sealed(parameters_path, [&] {
    io::write_safetensors(parameters_path, model.named_parameters(),
                          {{"format", std::string(kModelFormat)}, {kConfigKey, io::to_json(config, 0)}});
  });
}

namespace {

// A model that save_model wrote.
std::unique_ptr<Model> load_own(const Config& config, const std::string& folder) {
  const std::string path = io::join_path(folder, kParametersFile);
  const auto file = io::SafetensorsFile::open(io::open_sealed(path), path);
  const io::Metadata metadata = file.metadata();
  io::check_format(metadata, kModelFormat, path);
  auto model = make_model(config, Rng(0));
  const auto written_for = metadata.find(kConfigKey);
  if (written_for == metadata.end() || written_for->second != io::to_json(model->config(), 0)) {
    fail(ErrorCode::File, path, "was written for another configuration than " + io::join_path(folder, kConfigFile));
  }
  const layers::NamedTensors parameters = file.tensors();
  if (!parameters.empty() && parameters.front().second.dtype() == DType::F64) model->to(DType::F64);
  model->set_named_parameters(parameters);
  return model;
}

// Which files the tensors of a published model are in: one, or those of an index.
std::set<std::string> parameter_files(const std::string& folder) {
  const std::string index_path = io::join_path(folder, kIndexFile);
  if (io::file_exists(io::join_path(folder, kParametersFile)) || !io::file_exists(index_path)) return {kParametersFile};
  const Config index = io::read_json(index_path);
  const Config* map = index.find("weight_map");
  if (!map) fail(ErrorCode::File, index_path, "has no weight_map");
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->as_object(index_path)) {
    const std::string& name = file.as_string(tensor);
    if (name.find('/') != std::string::npos) fail(ErrorCode::File, index_path, name + " is not in the same folder");
    files.insert(name);
  }
  return files;
}

std::unique_ptr<Model> load_published(const Config& config, const std::string& folder) {
  if (!io::file_exists(io::join_path(folder, kParametersFile)) && !io::file_exists(io::join_path(folder, kIndexFile)) &&
      io::file_exists(io::join_path(folder, kPickleFile))) {
    fail(ErrorCode::File, folder,
         std::string(kPickleFile) + " is a program for Python's pickle, expected " + kParametersFile +
             ": save its tensors with safetensors.torch.save_file");
  }
  layers::NamedTensors tensors;
  for (const std::string& name : parameter_files(folder)) {
    const std::string path = io::join_path(folder, name);
    for (auto& tensor : io::SafetensorsFile::open(io::open_sealed(path), path).tensors()) {
      tensors.push_back(std::move(tensor));
    }
  }
  const bool wide = !tensors.empty() && tensors.front().second.dtype() == DType::F64;
  return read_published(config, tensors, wide ? DType::F64 : DType::F32, folder).model;
}

}  // namespace

std::unique_ptr<Model> load_model(const std::string& folder) {
  const std::string config_path = io::join_path(folder, kConfigFile);
  const io::MappedFile config_file = io::open_sealed(config_path);
  const Config config = io::parse_json(text_of(config_file), config_path, io::JsonDialect::Config);
  if (!config.is_object()) fail(ErrorCode::File, config_path, "holds no JSON object");
  try {
    // What save_model writes says what format it has.
    return config.find("format") ? load_own(config, folder) : load_published(config, folder);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::File) throw;
    fail(ErrorCode::File, folder, error.what());
  }
}

std::string fingerprint(const Model& model) {
  io::Blake3 hash;
  hash.update(io::to_json(model.config(), 0));
  hash.update(io::to_hex(io::parameters_hash(model.named_parameters())));
  return io::to_hex(hash.digest());
}

}  // namespace stepwell::models
