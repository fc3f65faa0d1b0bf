// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "stepwell/io/file.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"

#include "tests/io/temporary_folder.h"
#include "tests/models/model_case.h"

namespace stepwell {
namespace {

using models::Model;

std::string bytes_of(const std::string& path) { return io::read_file(path, 1 << 26); }

void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

// X5.
TEST(ModelFiles, SaveLoadSaveGivesTheSameBytes) {
  for (const std::string& mixer : mixer_names()) {
    const auto lm = small_lm(mixer, false), forecaster = small_forecaster(mixer);
    for (const Model* model : {lm.get(), forecaster.get()}) {
      const TemporaryFolder folder;
      models::save_model(*model, folder.file("a"));
      const auto loaded = models::load_model(folder.file("a"));
      models::save_model(*loaded, folder.file("b"));
      for (const char* name : {"config.json", "model.safetensors", "config.json.b3", "model.safetensors.b3"}) {
        EXPECT_EQ(bytes_of(folder.file("a") + "/" + name), bytes_of(folder.file("b") + "/" + name)) << name;
      }
      EXPECT_EQ(loaded->type(), model->type());
      EXPECT_EQ(models::fingerprint(*loaded), models::fingerprint(*model));
    }
  }
}

TEST(ModelFiles, KeepDoubles) {
  const TemporaryFolder folder;
  const auto lm = small_lm();
  lm->to(DType::F64);
  models::save_model(*lm, folder.path());
  EXPECT_EQ(models::fingerprint(*models::load_model(folder.path())), models::fingerprint(*lm));
}

TEST(ModelFiles, TheFingerprintFollowsConfigurationAndParameters) {
  const auto lm = small_lm();
  const std::string original = models::fingerprint(*lm);
  EXPECT_EQ(models::fingerprint(*small_lm()), original);
  EXPECT_NE(models::fingerprint(*small_lm("linear_attention")), original);
  layers::Parameter& parameter = *lm->parameters().back();
  const Tensor old = parameter.value.value(), moved = old.clone();
  moved.span<float>()[0] += 1;
  parameter.set(moved);
  EXPECT_NE(models::fingerprint(*lm), original);
  parameter.set(old);
  EXPECT_EQ(models::fingerprint(*lm), original);
}

std::string message_of(const std::string& folder) {
  try {
    models::load_model(folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::File) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(ModelFiles, DamagedFilesAreErrors) {
  const TemporaryFolder folder;
  const std::string config = folder.file("config.json"), parameters = folder.file("model.safetensors");
  models::save_model(*small_lm(), folder.path());
  const std::string good_config = bytes_of(config), good_parameters = bytes_of(parameters);
  EXPECT_EQ(message_of(folder.path()), "no error");

  std::string flipped = good_parameters;
  flipped[flipped.size() / 2] ^= 1;
  overwrite(parameters, flipped);
  EXPECT_NE(message_of(folder.path()).find("model.safetensors"), std::string::npos) << message_of(folder.path());
  overwrite(parameters, good_parameters);
  overwrite(config, good_config + " ");
  EXPECT_NE(message_of(folder.path()).find("config.json"), std::string::npos) << message_of(folder.path());

  // Without seals the contents are checked all the same.
  std::filesystem::remove(io::seal_path(config));
  std::filesystem::remove(io::seal_path(parameters));
  EXPECT_EQ(message_of(folder.path()), "no error");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good_config;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {replaced("stepwell-model-1", "stepwell-model-9"), "format"},
           {replaced("causal_lm", "causal_ml"), "type"},
           {replaced("\"width\": 12", "\"width\": 14"), "another configuration"},
           {replaced("\"width\"", "\"widht\""), "did you mean width"},
           {"{", "config.json"},
           {"", "config.json"}}) {
    overwrite(config, text);
    EXPECT_NE(message_of(folder.path()).find(word), std::string::npos) << message_of(folder.path());
  }
  overwrite(config, good_config);
  for (const std::size_t n : {std::size_t{0}, std::size_t{7}, std::size_t{100}, good_parameters.size() - 1}) {
    overwrite(parameters, good_parameters.substr(0, n));
    EXPECT_NE(message_of(folder.path()).find("model.safetensors"), std::string::npos) << n;
  }
  EXPECT_NE(message_of(folder.file("nowhere")), "no error");
}

// Parameters that do not fit are all listed, and the folder is named.
TEST(ModelFiles, ForeignParametersAreListed) {
  const TemporaryFolder folder;
  const auto lm = small_lm(), other = small_lm("linear_attention");
  models::save_model(*lm, folder.path());
  const std::string path = folder.file("model.safetensors");
  const auto metadata = io::SafetensorsFile::open(path).metadata();
  std::filesystem::remove(io::seal_path(path));
  io::write_safetensors(path, other->named_parameters(), metadata);
  const std::string message = message_of(folder.path());
  for (const char* part : {"mixer.A_log", "missing", "mixer.q_proj.weight", "unexpected"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace stepwell
