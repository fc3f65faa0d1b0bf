// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/seal.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/safetensors.h"

#include "tests/io/random_tensor.h"
#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using io::SealRule;
using io::SealState;

template <class F>
std::string file_fault(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() == ErrorCode::File ? e.what() : std::string("wrong code: ") + e.what();
  }
  return "";
}

TEST(Seal, TellsChangedFilesFromMissingOnes) {
  TemporaryFolder folder;
  const std::string path = folder.file("model");
  EXPECT_EQ(io::verify_seal(path), SealState::MissingFile);
  io::write_file(path, "content");
  EXPECT_EQ(io::verify_seal(path), SealState::MissingSeal);
  io::write_seal(path);
  EXPECT_EQ(io::verify_seal(path), SealState::Intact);
  io::write_file(path, "Content");
  EXPECT_EQ(io::verify_seal(path), SealState::Changed);
  std::filesystem::remove(path);
  EXPECT_EQ(io::verify_seal(path), SealState::MissingFile);
}

TEST(Seal, OpensOnlyWhatWasSealed) {
  TemporaryFolder folder;
  const std::string path = folder.file("model");
  EXPECT_NE(file_fault([&] { io::open_sealed(path); }).find("No such file"), std::string::npos);
  io::write_file(path, "content");
  EXPECT_EQ(io::open_sealed(path).bytes().size(), 7u);
  EXPECT_NE(file_fault([&] { io::open_sealed(path, SealRule::Required); }).find("has no seal"), std::string::npos);
  io::write_seal(path);
  EXPECT_EQ(io::open_sealed(path, SealRule::Required).bytes().size(), 7u);
  io::write_file(path, "Content");
  EXPECT_NE(file_fault([&] { io::open_sealed(path); }).find("was changed after it was sealed"), std::string::npos);

  const io::Digest expected = io::blake3(std::as_bytes(std::span("Content", 7)));
  EXPECT_EQ(io::open_sealed(path, expected).bytes().size(), 7u);
  EXPECT_NE(file_fault([&] { io::open_sealed(path, io::blake3({})); }).find("expected af1349b9"), std::string::npos);
}

TEST(Seal, IsCheckedBeforeTheFileIsParsed) {
  TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  io::write_safetensors(path, NamedTensors{{"w", random_tensor({4}, DType::F32, 1)}});
  io::write_seal(path);
  io::write_file(path, "no safetensors file");
  const std::string fault = file_fault([&] { io::SafetensorsFile::open(io::open_sealed(path), path); });
  EXPECT_NE(fault.find("was changed"), std::string::npos) << fault;
}

TEST(Seal, ChangesWithEveryByteOfTheFile) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  std::string content(100, 'x');
  io::write_file(path, content);
  io::write_seal(path);
  for (std::size_t i = 0; i < content.size(); i += 9) {
    std::string other = content;
    other[i] = 'y';
    io::write_file(path, other);
    EXPECT_EQ(io::verify_seal(path), SealState::Changed);
  }
  io::write_file(path, content + "x");
  EXPECT_EQ(io::verify_seal(path), SealState::Changed);
  io::write_file(path, content);
  EXPECT_EQ(io::verify_seal(path), SealState::Intact);
}

TEST(Seal, RefusesWhatIsNoSeal) {
  TemporaryFolder folder;
  const std::string path = folder.file("f"), hex = io::to_hex(io::blake3({}));
  io::write_file(path, "");
  for (const std::string& line : {std::string(), std::string("\\"), hex, hex + "  ", hex + " f\n", "x" + hex + "  f\n",
                                  hex + "  f\n" + hex + "  g\n", std::string(64, 'g') + "  f\n"}) {
    io::write_file(io::seal_path(path), line);
    EXPECT_NE(file_fault([&] { io::verify_seal(path); }).find("is no seal"), std::string::npos) << line;
  }
  for (const std::string& line : {hex + "  f\n", hex + "  f", hex + "  another\n", "\\" + hex + "  a\\nb\n"}) {
    io::write_file(io::seal_path(path), line);
    EXPECT_EQ(io::verify_seal(path), SealState::Intact) << line;
  }
}

TEST(Seal, IsUnderstoodByB3sum) {
  if (std::system("b3sum --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "NOT RUN: b3sum is not installed";
  TemporaryFolder folder;
  for (const char* name : {"plain", "with space", "back\\slash", "line\nend"}) {
    const std::string path = folder.file(name);
    io::write_file(path, "content of the file");
    io::write_seal(path);
    const std::string check = "cd '" + folder.path() + "' && b3sum --check '" + name + ".b3' >/dev/null";
    EXPECT_EQ(std::system(check.c_str()), 0) << name;
    io::write_file(path, "other content");
    EXPECT_NE(std::system((check + " 2>&1").c_str()), 0) << name;
  }
}

TEST(Seal, WriteSealedNeverLeavesAWrongSeal) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  io::write_sealed(path, [&] { io::write_file(path, "one"); });
  EXPECT_EQ(io::verify_seal(path), SealState::Intact);
  EXPECT_THROW(io::write_sealed(path,
                                [&] {
                                  io::write_file(path, "two");
                                  fail(ErrorCode::Internal, "test", "stopped before the seal");
                                }),
               Error);
  EXPECT_EQ(io::verify_seal(path), SealState::MissingSeal);
  io::write_sealed(path, [&] { io::write_file(path, "three"); });
  EXPECT_EQ(io::verify_seal(path), SealState::Intact);
}

TEST(ParametersHash, DependsOnNamesTypesShapesAndBytesOnly) {
  const Tensor a = random_tensor({2, 3}, DType::F32, 1), b = random_tensor({4}, DType::F64, 2);
  const io::Digest hash = io::parameters_hash(NamedTensors{{"a", a}, {"b", b}});
  EXPECT_EQ(io::parameters_hash(NamedTensors{{"b", b}, {"a", a.clone()}}), hash);

  Tensor other = a.clone();
  other.data<float>()[5] = 1.0f;
  const Tensor same_bytes = Tensor::wrap(a.raw(), {2, 3}, DType::I32, nullptr);
  for (const NamedTensors& changed :
       {NamedTensors{{"a", other}, {"b", b}}, NamedTensors{{"a", a.reshape({3, 2})}, {"b", b}},
        NamedTensors{{"a", same_bytes}, {"b", b}}, NamedTensors{{"a2", a}, {"b", b}}, NamedTensors{{"a", a}},
        NamedTensors{{"a", a}, {"b", b}, {"c", Tensor::zeros({0})}}}) {
    EXPECT_NE(io::parameters_hash(changed), hash);
  }
  EXPECT_THROW(io::parameters_hash(NamedTensors{{"a", a}, {"a", a}}), Error);
  EXPECT_THROW(io::parameters_hash(NamedTensors{{"a", Tensor()}}), Error);
}

TEST(ParametersHash, IsTheDocumentedOne) {
  const float values[] = {1.0f, -2.0f};
  const Tensor t = Tensor::from<float>(values, {2, 1});
  auto integer = [](std::int64_t v) { return std::string(reinterpret_cast<const char*>(&v), 8); };
  const std::string bytes = integer(1) + "w" + integer(3) + "F32" + integer(2) + integer(2) + integer(1) +
                            std::string(reinterpret_cast<const char*>(values), 8);
  EXPECT_EQ(io::parameters_hash(NamedTensors{{"w", t}}), io::blake3(std::as_bytes(std::span(bytes))));
}

TEST(ParametersHash, TakesStridedTensorsAsTheirValues) {
  const Tensor part = random_tensor({4, 6}, DType::F32, 3).slice(-1, 2, 3);
  EXPECT_EQ(io::parameters_hash(NamedTensors{{"w", part}}), io::parameters_hash(NamedTensors{{"w", part.clone()}}));
}

}  // namespace
}  // namespace stepwell
