// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "stepwell/io/safetensors.h"

#include "tests/io/safetensors_bytes.h"
#include "verify/counted_heap.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSlack = 1 << 20;  // what a broken file may cost beyond its own size

// Expects an Error that names the file and holds `part`, at no more memory than the file has bytes and kSlack.
void expect_fault(const std::string& bytes, const std::string& part) {
  verify::HeapMeter meter;
  const std::string fault = parse_fault(bytes);
  EXPECT_LE(meter.peak(), static_cast<std::int64_t>(bytes.size()) + kSlack);
  EXPECT_EQ(fault.substr(0, 18), "[made.safetensors]") << fault;
  EXPECT_NE(fault.find(part), std::string::npos) << "\"" << fault << "\" does not say \"" << part << "\"";
}

// One tensor "w" with the given members and `bytes` zero bytes of data.
std::string one_tensor(const std::string& members, std::size_t bytes) {
  return safetensors_bytes("{\"w\":{" + members + "}}", std::string(bytes, '\0'));
}

std::string with_offsets(const std::string& offsets) {
  return one_tensor(R"("dtype":"F32","shape":[2],"data_offsets":)" + offsets, 8);
}

std::string with_shape(const std::string& shape) {
  return one_tensor(R"("dtype":"F32","data_offsets":[0,16],"shape":)" + shape, 16);
}

std::string entry(const std::string& name, int begin, int end) {
  return "\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(FieldReport, P42_FileOfZeroSevenOrEightBytes) {
  expect_fault("", "0 bytes, too few");
  expect_fault(std::string(7, '\0'), "7 bytes, too few");
  expect_fault(std::string(8, '\0'), "header has 0 bytes");
  expect_fault(std::string(8, '\xFF'), "cut off");
}

TEST(FieldReport, P42_HeaderLength) {
  const std::string header = "{}      ", data(16, 'x');
  const std::uint64_t size = 8 + header.size() + data.size();
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}}) {
    expect_fault(safetensors_bytes(header, data, length), "expected at least 2");
  }
  for (const std::uint64_t length : {size - 7, size, size + 1, std::uint64_t{1} << 31, std::uint64_t{1} << 63,
                                     ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    expect_fault(safetensors_bytes(header, data, length), "cut off");
  }
}

TEST(FieldReport, P42_HeaderOverTheFormatsLimit) {
  std::string header = "{}";
  header.resize(100'000'001, ' ');
  expect_fault(safetensors_bytes(header), "expected at most 100000000");
  header.pop_back();
  EXPECT_EQ(parse_fault(safetensors_bytes(header)), "");
}

TEST(FieldReport, P42_NotJson) {
  expect_fault(safetensors_bytes("hello world"), "does not begin with '{'");
  expect_fault(safetensors_bytes(" {}"), "does not begin with '{'");
  expect_fault(safetensors_bytes("{} x"), "after the header's end");
  expect_fault(safetensors_bytes(std::string("{}\0", 3)), "after the header's end");
  expect_fault(safetensors_bytes("{]"), "expected a string");
  expect_fault(safetensors_bytes("{\"w\"}"), "expected ':'");
  expect_fault(safetensors_bytes("{\"w\":1}"), "tensor \"w\": expected '{'");
  expect_fault(safetensors_bytes("{\"w\":{}}"), "tensor \"w\": expected a string");
  expect_fault(safetensors_bytes("{\"w"), "does not end");
  expect_fault(safetensors_bytes("{\"a\nb\":{}}"), "control character");
  expect_fault(safetensors_bytes("{" + entry("w", 0, 1) + ",}", "x"), "expected a string");
  expect_fault(safetensors_bytes("{" + entry("w", 0, 1) + "/**/}", "x"), "expected '}'");
  expect_fault(safetensors_bytes("{" + entry("w", 0, 1), "x"), "expected '}', the text ends");
}

TEST(FieldReport, P42_ArrayAtTop) { expect_fault(safetensors_bytes("[{}]"), "does not begin with '{'"); }

TEST(FieldReport, P42_Nesting100000Deep) {
  const std::size_t depth = 100'000;
  expect_fault(safetensors_bytes(std::string(depth, '[')), "does not begin with '{'");
  expect_fault(safetensors_bytes("{\"w\":" + std::string(depth, '[') + std::string(depth, ']') + "}"), "expected '{'");
  expect_fault(with_shape(std::string(depth, '[')), "expected a number");
  std::string objects;
  for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
  expect_fault(safetensors_bytes(objects), "tensor \"a\": unknown key \"a\"");
  expect_fault(safetensors_bytes("{\"__metadata__\":{\"a\":" + objects), "no string");
}

TEST(FieldReport, P42_InvalidUtf8) {
  for (const char* bad : {"\xFF", "\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF0\x9F\x98", "\xF8\x88\x80\x80\x80"}) {
    expect_fault(safetensors_bytes(std::string("{\"") + bad + "\":{}}"), "not UTF-8");
    expect_fault(safetensors_bytes(std::string("{\"__metadata__\":{\"k\":\"") + bad + "\"}}"), "not UTF-8");
  }
  expect_fault(safetensors_bytes("{\xC3\xA9}"), "expected a string");
}

TEST(FieldReport, P42_LoneSurrogate) {
  for (const char* bad : {R"(\ud800)", R"(\udfff)", R"(\ud83dx)", R"(\ud83d\n)", R"(\ud83d\ud83d)", R"(\ud83dA)"}) {
    expect_fault(safetensors_bytes(std::string("{\"") + bad + "\":{}}"), "lone surrogate");
  }
  expect_fault(safetensors_bytes(R"({"\ud83d\u12"})"), "four hexadecimal digits");
  expect_fault(safetensors_bytes(R"({"\x"})"), "unknown escape");
}

TEST(FieldReport, P42_DuplicateTensorName) {
  expect_fault(safetensors_bytes("{" + entry("w", 0, 1) + "," + entry("v", 1, 2) + "," + entry("w", 2, 3) + "}", "abc"),
               "tensor \"w\" twice");
  expect_fault(safetensors_bytes("{" + entry("w", 0, 1) + "," + entry("\\u0077", 1, 2) + "}", "ab"),
               "tensor \"w\" twice");
  expect_fault(safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})"), "\"__metadata__\" twice");
  expect_fault(safetensors_bytes(R"({"__metadata__":{},"\u005f_metadata__":{}})"), "\"__metadata__\" twice");
  expect_fault(safetensors_bytes(R"({"__metadata__":{"a":"1","b":"","\u0061":"2"}})"), "metadata key \"a\" twice");
}

TEST(FieldReport, P42_DataOffsets) {
  expect_fault(with_offsets("[]"), "tensor \"w\": expected a number");
  expect_fault(with_offsets("[8]"), "tensor \"w\": expected ','");
  expect_fault(with_offsets("[0,8,8]"), "tensor \"w\": expected ']'");
  expect_fault(with_offsets("[8,0]"), "tensor \"w\": data_offsets [8, 0] are reversed");
  expect_fault(with_offsets("[-8,0]"), "-8, expected a non-negative integer");
  expect_fault(with_offsets("[0,8.0]"), "8.0, expected a non-negative integer");
  expect_fault(with_offsets("[1.5,9.5]"), "1.5, expected a non-negative integer");
  expect_fault(with_offsets("[0,1e30]"), "1e30, expected a non-negative integer");
  expect_fault(with_offsets("[0,08]"), "leading zero");
  expect_fault(with_offsets("[0,18446744073709551616]"), "2^64 or more");
  expect_fault(with_offsets("[0,9]"), "beyond the 8 bytes");
  expect_fault(with_offsets("[18446744073709551608,18446744073709551615]"), "beyond the 8 bytes");
  expect_fault(with_offsets("[0,Infinity]"), "expected a number");
  expect_fault(with_offsets("null"), "expected '['");
}

TEST(FieldReport, P42_ShapeOverflowOrNegative) {
  expect_fault(with_shape("[4611686018427387904,4]"), "tensor \"w\": the product of the extents is more than 2^57");
  expect_fault(with_shape("[4294967296,4294967296]"), "more than 2^57");
  expect_fault(with_shape("[0,18446744073709551615]"), "more than 2^57");
  expect_fault(with_shape("[4294967296,4294967296,0]"), "more than 2^57");
  expect_fault(with_shape("[4294967296,0,4294967296]"), "more than 2^57");
  expect_fault(with_shape("[-1]"), "-1, expected a non-negative integer");
  expect_fault(with_shape("[1,1,1,1,1,1,4]"), "more than 6 dimensions");
  expect_fault(with_shape("4"), "expected '['");
}

TEST(FieldReport, P42_SizeMismatch) {
  expect_fault(one_tensor(R"("dtype":"F64","shape":[4],"data_offsets":[0,16])", 16),
               "tensor \"w\": F64 [4] takes 32 bytes, data_offsets [0, 16] hold 16");
  expect_fault(one_tensor(R"("dtype":"F16","shape":[],"data_offsets":[0,0])", 0), "F16 [] takes 2 bytes");
}

TEST(FieldReport, P42_UnknownDtype) {
  for (const char* dtype : {"F8_E4M3", "F128", "f32", "", "U64"}) {
    expect_fault(one_tensor(R"("shape":[4],"data_offsets":[0,4],"dtype":")" + std::string(dtype) + "\"", 4),
                 "tensor \"w\": unknown dtype \"" + std::string(dtype) + "\"");
  }
  expect_fault(one_tensor(R"("shape":[4],"data_offsets":[0,4],"dtype":4)", 4), "expected a string");
}

TEST(FieldReport, P42_MissingRepeatedOrUnknownMember) {
  expect_fault(one_tensor(R"("shape":[4],"data_offsets":[0,4])", 4), "no \"dtype\"");
  expect_fault(one_tensor(R"("dtype":"U8","data_offsets":[0,4])", 4), "no \"shape\"");
  expect_fault(one_tensor(R"("dtype":"U8","shape":[4])", 4), "no \"data_offsets\"");
  expect_fault(one_tensor(R"("dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4])", 4), "\"dtype\" twice");
  expect_fault(one_tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"x":{})", 4), "unknown key \"x\"");
}

TEST(FieldReport, P42_Overlap) {
  const std::string data(8, 'x');
  expect_fault(safetensors_bytes("{" + entry("a", 0, 5) + "," + entry("b", 4, 8) + "}", data),
               "tensor \"b\": overlaps the tensor before it: it begins at byte 4, expected 5");
  expect_fault(safetensors_bytes("{" + entry("a", 0, 8) + "," + entry("b", 0, 8) + "}", data), "overlaps");
  expect_fault(safetensors_bytes("{" + entry("a", 0, 8) + "," + entry("b", 3, 3) + "}", data), "overlaps");
}

TEST(FieldReport, P42_Hole) {
  const std::string data(8, 'x');
  expect_fault(safetensors_bytes("{" + entry("a", 0, 3) + "," + entry("b", 4, 8) + "}", data),
               "tensor \"b\": leaves a gap before it: it begins at byte 4, expected 3");
  expect_fault(safetensors_bytes("{" + entry("a", 1, 8) + "}", data), "leaves a gap");
}

TEST(FieldReport, P42_UnindexedTail) {
  expect_fault(safetensors_bytes("{" + entry("a", 0, 3) + "}", "12345"),
               "2 bytes after the last tensor, at byte 3 of the data, belong to no tensor");
  expect_fault(safetensors_bytes("{}", "1"), "1 bytes after the last tensor");
}

TEST(FieldReport, P42_MetadataThatAreNoStrings) {
  for (const char* value : {"1", "null", "{}", "[]", "true"}) {
    expect_fault(safetensors_bytes(R"({"__metadata__":{"k":)" + std::string(value) + "}}"), "is no string");
  }
  expect_fault(safetensors_bytes(R"({"__metadata__":null})"), "expected '{'");
}

TEST(FieldReport, P42_LongNamesAreCutInMessages) {
  const std::string name(1 << 20, 'n');
  const std::string fault = parse_fault(safetensors_bytes("{\"" + name + "\":{\"dtype\":0}}"));
  EXPECT_LT(fault.size(), 300u) << fault;
  EXPECT_NE(fault.find("(1048576 bytes)"), std::string::npos) << fault;
}

// Headers made to cost much: as many tensors, or as many metadata, as the bytes allow.
TEST(FieldReport, P42_MemoryStaysBelowTheFilesSize) {
  std::string tensors = "{", metadata = R"({"__metadata__":{)";
  for (int i = 0; i < 100'000; ++i) {
    tensors += (i ? "," : "") + entry(std::to_string(i), 0, 0);
    metadata += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  }
  for (const std::string& header : {tensors + "}", metadata + "}}"}) {
    const std::string bytes = safetensors_bytes(header);
    verify::HeapMeter meter;
    const io::SafetensorsFile file = parse_safetensors(bytes);
    EXPECT_LE(meter.peak(), static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(file.size() + file.metadata().size(), 100'000u);
  }
}

}  // namespace
}  // namespace stepwell
