// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "stepwell/io/blake3.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"
#include "stepwell/models/model.h"

#include "models/format.h"

namespace stepwell::models {

namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kParametersFile = "model.safetensors";
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

std::unique_ptr<Model> load_model(const std::string& folder) {
  const std::string config_path = io::join_path(folder, kConfigFile);
  const std::string parameters_path = io::join_path(folder, kParametersFile);
  const io::MappedFile config_file = io::open_sealed(config_path);
  const Config config = io::parse_json(text_of(config_file), config_path, io::JsonDialect::Config);
  const auto file = io::SafetensorsFile::open(io::open_sealed(parameters_path), parameters_path);
  const io::Metadata metadata = file.metadata();
  io::check_format(metadata, kModelFormat, parameters_path);
  try {
    auto model = make_model(config, Rng(0));
    const auto written_for = metadata.find(kConfigKey);
    if (written_for == metadata.end() || written_for->second != io::to_json(model->config(), 0)) {
      fail(ErrorCode::File, parameters_path, "was written for another configuration than " + config_path);
    }
    const layers::NamedTensors parameters = file.tensors();
    if (!parameters.empty() && parameters.front().second.dtype() == DType::F64) model->to(DType::F64);
    model->set_named_parameters(parameters);
    return model;
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
