// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/blake3.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

// The published test input: byte i is i mod 251.
std::string input(std::size_t length) {
  std::string bytes(length, '\0');
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(i % 251);
  return bytes;
}

std::string hash(const std::string& bytes) { return io::to_hex(io::blake3(std::as_bytes(std::span(bytes)))); }

TEST(Blake3, GivesThePublishedHashes) {
  const std::pair<std::size_t, const char*> vectors[] = {
      {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
      {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
      {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
      {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
      {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
      {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
      {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
      {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
      {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
      {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
      {3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
      {8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"},
      {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
      {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
  };
  for (const auto& [length, hex] : vectors) EXPECT_EQ(hash(input(length)), hex) << length << " bytes";
}

TEST(Blake3, DoesNotDependOnHowTheInputIsCut) {
  std::mt19937 engine(11);
  for (const std::size_t length : {1u, 1024u, 4096u, 4097u, 5000u, 8192u, 8193u, 65536u, 70001u}) {
    const std::string bytes = input(length);
    for (int trial = 0; trial < 20; ++trial) {
      io::Blake3 hasher;
      std::string_view rest = bytes;
      while (!rest.empty()) {
        const std::size_t most = std::size_t{1} << engine() % 15;
        const std::size_t piece = std::min<std::size_t>(rest.size(), engine() % (most + 1));
        hasher.update(rest.substr(0, piece));
        rest.remove_prefix(piece);
      }
      EXPECT_EQ(io::to_hex(hasher.digest()), hash(bytes)) << length << " bytes";
    }
  }
}

TEST(Blake3, GoesOnAfterADigest) {
  const std::string bytes = input(6000);
  io::Blake3 hasher;
  hasher.update(bytes.substr(0, 4096));
  EXPECT_EQ(io::to_hex(hasher.digest()), hash(bytes.substr(0, 4096)));
  hasher.update(bytes.substr(4096));
  EXPECT_EQ(io::to_hex(hasher.digest()), hash(bytes));
}

// What b3sum prints for a file; "" where it is not installed.
std::string b3sum(const std::string& path) {
  FILE* pipe = ::popen(("b3sum --no-names '" + path + "' 2>/dev/null").c_str(), "r");
  if (!pipe) return "";
  char hex[65] = "";
  if (!std::fgets(hex, sizeof(hex), pipe)) hex[0] = '\0';
  ::pclose(pipe);
  return hex;
}

TEST(Blake3, AgreesWithB3sum) {
  TemporaryFolder folder;
  io::write_file(folder.file("f"), "");
  if (b3sum(folder.file("f")).empty()) GTEST_SKIP() << "NOT RUN: b3sum is not installed";
  std::mt19937 engine(5);
  for (int trial = 0; trial < 20; ++trial) {
    std::string bytes(engine() % (1u << trial), '\0');
    for (char& c : bytes) c = static_cast<char>(engine());
    io::write_file(folder.file("f"), bytes);
    EXPECT_EQ(hash(bytes), b3sum(folder.file("f"))) << bytes.size() << " bytes";
  }
}

TEST(Digest, GoesThroughHexadecimalAndBack) {
  const io::Digest digest = io::blake3({});
  EXPECT_EQ(io::digest_from_hex(io::to_hex(digest)), digest);
  const std::string hex = io::to_hex(digest);
  for (const std::string& bad : {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1), "A" + hex.substr(1)}) {
    EXPECT_THROW(io::digest_from_hex(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace stepwell
