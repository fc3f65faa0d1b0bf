// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "stepwell/core/config.h"
#include "stepwell/core/error.h"
#include "stepwell/io/safetensors.h"

#include "io/json_lexer.h"
#include "io/safetensors_format.h"

namespace stepwell::io {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian and mapped as they are");

namespace {

constexpr std::uint64_t kLengthBytes = 8;

std::optional<DType> dtype_from_name(std::string_view name) {
  constexpr DType kAll[] = {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I8,
                            DType::U8,  DType::I32, DType::I64,  DType::Bool};
  for (const DType dtype : kAll) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// The string whose opening quote stands at `position` of a checked header, as written. Ends with the header at the
// latest, even if somebody changes the file under the mapping.
std::string_view raw_key(std::string_view header, std::size_t position) {
  const std::size_t begin = position + 1;
  std::size_t end = begin;
  while (end < header.size() && header[end] != '"') end += header[end] == '\\' ? 2 : 1;
  return header.substr(begin, end - begin);
}

std::string decoded_key(std::string_view header, std::size_t position) {
  return decode_raw_string(raw_key(header, position));
}

// Compares strings as written by what they stand for.
int compare_raw(std::string_view a, std::string_view b) {
  constexpr auto npos = std::string_view::npos;
  if (a.find('\\') == npos && b.find('\\') == npos) return a.compare(b);
  return decode_raw_string(a).compare(decode_raw_string(b));
}

// Reads "shape": at most Shape::kMaxRank extents whose product is far from overflow.
Shape read_shape(JsonLexer& lexer) {
  std::int64_t extents[Shape::kMaxRank];
  std::size_t rank = 0;
  std::uint64_t product = 1;
  lexer.expect('[');
  while (!lexer.take(']')) {
    if (rank > 0) lexer.expect(',');
    const std::size_t at = lexer.position();
    const std::uint64_t extent = lexer.unsigned_integer();
    if (rank == Shape::kMaxRank) {
      lexer.fail_at(at, "more than " + std::to_string(Shape::kMaxRank) + " dimensions");
    }
    // Extents of 0 do not hide others: their product must fit all the same.
    constexpr std::uint64_t kLargest = std::uint64_t{1} << 57;
    if (extent > kLargest / product) lexer.fail_at(at, "the product of the extents is more than 2^57");
    product *= std::max<std::uint64_t>(extent, 1);
    extents[rank++] = static_cast<std::int64_t>(extent);
  }
  return Shape(std::span<const std::int64_t>(extents, rank));
}

std::uint64_t byte_count(const TensorInfo& info) {
  return static_cast<std::uint64_t>(info.shape.size() * dtype_size(info.dtype));
}

// Reads one tensor's description, {"dtype": …, "shape": […], "data_offsets": […]} in any order, nothing else.
TensorInfo read_description(JsonLexer& lexer) {
  TensorInfo info;
  bool has_dtype = false, has_shape = false, has_offsets = false;
  lexer.expect('{');
  do {
    const std::size_t at = lexer.position();
    const std::string_view key = lexer.raw_string();
    lexer.expect(':');
    auto once = [&](bool& seen) {
      if (std::exchange(seen, true)) lexer.fail_at(at, "\"" + std::string(key) + "\" twice");
    };
    if (key == "dtype") {
      once(has_dtype);
      const std::string name = lexer.string();
      const auto dtype = dtype_from_name(name);
      if (!dtype) lexer.fail("unknown dtype " + quoted_for_message(name));
      info.dtype = *dtype;
    } else if (key == "shape") {
      once(has_shape);
      info.shape = read_shape(lexer);
    } else if (key == "data_offsets") {
      once(has_offsets);
      lexer.expect('[');
      info.begin = lexer.unsigned_integer();
      lexer.expect(',');
      info.end = lexer.unsigned_integer();
      lexer.expect(']');
    } else {
      lexer.fail_at(at, "unknown key " + quoted_for_message(key));
    }
  } while (lexer.take(','));
  lexer.expect('}');
  if (!has_dtype || !has_shape || !has_offsets) {
    lexer.fail(std::string("no \"") + (!has_dtype ? "dtype" : !has_shape ? "shape" : "data_offsets") + "\"");
  }
  return info;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------- parsing

class SafetensorsFile::Parser {
 public:
  explicit Parser(SafetensorsFile& file) : file_(file), lexer_(file.header_, file.where_) {}

  void run() {
    if (file_.header_.front() != '{') lexer_.fail("the header does not begin with '{'");
    lexer_.expect('{');
    if (!lexer_.take('}')) {
      do read_member();
      while (lexer_.take(','));
      lexer_.expect('}');
    }
    if (!lexer_.at_end()) lexer_.fail("text after the header's end");
    check_coverage();
    order_by_name();
  }

 private:
  void read_member() {
    lexer_.peek();
    const std::size_t key = lexer_.position();
    const std::string_view raw = lexer_.raw_string();
    if (compare_raw(raw, kMetadataKey) == 0) {
      if (std::exchange(has_metadata_, true)) lexer_.fail_at(key, "\"__metadata__\" twice");
      lexer_.expect(':');
      return read_metadata();
    }
    lexer_.set_subject(raw);
    lexer_.expect(':');
    const TensorInfo info = read_description(lexer_);
    check_bytes(info);
    lexer_.set_subject({});
    file_.entries_.push_back({info.begin, info.end, static_cast<std::uint32_t>(key)});
  }

  void read_metadata() {
    lexer_.expect('{');
    if (lexer_.take('}')) return;
    do {
      lexer_.peek();
      file_.metadata_.push_back(static_cast<std::uint32_t>(lexer_.position()));
      lexer_.raw_string();
      lexer_.expect(':');
      if (lexer_.peek() != '"') lexer_.fail("a value of \"__metadata__\" is no string");
      lexer_.raw_string();
    } while (lexer_.take(','));
    lexer_.expect('}');
  }

  void check_bytes(const TensorInfo& info) const {
    const std::uint64_t size = file_.data_.size();
    const std::string offsets = "[" + std::to_string(info.begin) + ", " + std::to_string(info.end) + "]";
    if (info.begin > info.end) lexer_.fail("data_offsets " + offsets + " are reversed");
    if (info.end > size) {
      lexer_.fail("data_offsets " + offsets + " reach beyond the " + std::to_string(size) + " bytes of data");
    }
    const std::uint64_t expected = byte_count(info);
    if (info.end - info.begin != expected) {
      lexer_.fail(std::string(dtype_name(info.dtype)) + " " + info.shape.to_string() + " takes " +
                  std::to_string(expected) + " bytes, data_offsets " + offsets + " hold " +
                  std::to_string(info.end - info.begin));
    }
  }

  // Every byte of data belongs to exactly one tensor.
  void check_coverage() {
    std::sort(file_.entries_.begin(), file_.entries_.end(),
              [](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
    std::uint64_t reached = 0;
    for (const Entry& entry : file_.entries_) {
      if (entry.begin != reached) {
        lexer_.set_subject(raw_key(file_.header_, entry.key));
        lexer_.fail_at(entry.key, (entry.begin < reached ? "overlaps the tensor before it: it begins at byte "
                                                         : "leaves a gap before it: it begins at byte ") +
                                      std::to_string(entry.begin) + ", expected " + std::to_string(reached));
      }
      reached = entry.end;
    }
    if (reached != file_.data_.size()) {
      fail(ErrorCode::File, file_.where_,
           std::to_string(file_.data_.size() - reached) + " bytes after the last tensor, at byte " +
               std::to_string(reached) + " of the data, belong to no tensor");
    }
  }

  void order_by_name() {
    const std::string_view header = file_.header_;
    auto compare = [&](std::size_t a, std::size_t b) { return compare_raw(raw_key(header, a), raw_key(header, b)); };
    auto refuse = [&](std::size_t key, const char* what) {
      lexer_.fail_at(key, what + quoted_for_message(decoded_key(header, key)) + " twice");
    };
    auto& entries = file_.entries_;
    std::sort(entries.begin(), entries.end(),
              [&](const Entry& a, const Entry& b) { return compare(a.key, b.key) < 0; });
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (compare(entries[i - 1].key, entries[i].key) == 0) refuse(entries[i].key, "tensor ");
    }
    auto& keys = file_.metadata_;
    std::sort(keys.begin(), keys.end(), [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) < 0; });
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (compare(keys[i - 1], keys[i]) == 0) refuse(keys[i], "metadata key ");
    }
  }

  SafetensorsFile& file_;
  JsonLexer lexer_;
  bool has_metadata_ = false;
};

SafetensorsFile SafetensorsFile::open(const std::string& path) { return open(MappedFile::open(path), path); }

SafetensorsFile SafetensorsFile::open(const MappedFile& file, std::string path) {
  return parse(file.bytes(), std::move(path), file.owner());
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string where,
                                       std::shared_ptr<const void> owner) {
  SafetensorsFile file;
  file.where_ = std::move(where);
  file.owner_ = std::move(owner);
  auto refuse = [&](const std::string& message) { fail(ErrorCode::File, file.where_, message); };
  if (bytes.size() < kLengthBytes) {
    refuse("has " + std::to_string(bytes.size()) + " bytes, too few for a safetensors file");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) {
    refuse("the header has " + std::to_string(length) + " bytes, the file " + std::to_string(bytes.size()) +
           ": cut off, or not a safetensors file");
  }
  if (length > kLargestHeader) {
    refuse("the header has " + std::to_string(length) + " bytes, expected at most " + std::to_string(kLargestHeader));
  }
  if (length < 2) refuse("the header has " + std::to_string(length) + " bytes, expected at least 2");
  file.header_ = {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, static_cast<std::size_t>(length)};
  file.data_ = bytes.subspan(static_cast<std::size_t>(kLengthBytes + length));
  Parser(file).run();
  return file;
}

// ---------------------------------------------------------------------------------------------------------- look-up

std::size_t SafetensorsFile::index_of(std::string_view name) const {
  auto compare = [&](const Entry& entry) {
    const std::string_view raw = raw_key(header_, entry.key);
    return raw.find('\\') == std::string_view::npos ? raw.compare(name) : decode_raw_string(raw).compare(name);
  };
  const auto at =
      std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& e) { return compare(e) < 0; });
  if (at == entries_.end() || compare(*at) != 0) return entries_.size();
  return static_cast<std::size_t>(at - entries_.begin());
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) names.push_back(decoded_key(header_, entry.key));
  return names;
}

TensorInfo SafetensorsFile::info(std::size_t i) const {
  STEPWELL_CHECK(i < entries_.size(), where_,
                 "tensor number " + std::to_string(i) + " of " + std::to_string(entries_.size()));
  JsonLexer lexer(header_, where_, entries_[i].key);
  std::string name = lexer.string();
  lexer.expect(':');
  TensorInfo info = read_description(lexer);
  info.name = std::move(name);
  // The places that were checked at opening, not what the mapping says now.
  info.begin = entries_[i].begin;
  info.end = entries_[i].end;
  if (byte_count(info) != info.end - info.begin) fail(ErrorCode::File, where_, "was changed while it was open");
  return info;
}

std::optional<TensorInfo> SafetensorsFile::find(std::string_view name) const {
  const std::size_t i = index_of(name);
  if (i == entries_.size()) return std::nullopt;
  return info(i);
}

Tensor SafetensorsFile::tensor(std::string_view name) const {
  const std::size_t i = index_of(name);
  if (i == entries_.size()) {
    const auto known = names();
    const auto near = nearest_name(name, known);
    fail(ErrorCode::File, where_,
         "no tensor " + quoted_for_message(name) +
             (near.empty() ? "" : "; the nearest name is " + quoted_for_message(near)));
  }
  return tensor(info(i));
}

Tensor SafetensorsFile::tensor(const TensorInfo& info) const {
  const std::byte* bytes = data_.data() + info.begin;
  const auto size = static_cast<std::size_t>(info.end - info.begin);
  if (info.dtype == DType::Bool) {
    for (std::size_t i = 0; i < size; ++i) {
      if (bytes[i] > std::byte{1}) {
        fail(ErrorCode::File, where_,
             "tensor " + quoted_for_message(info.name) + ": BOOL element " + std::to_string(i) + " is " +
                 std::to_string(std::to_integer<int>(bytes[i])) + ", expected 0 or 1");
      }
    }
  }
  const auto alignment = static_cast<std::uintptr_t>(dtype_size(info.dtype));
  if (reinterpret_cast<std::uintptr_t>(bytes) % alignment == 0) {
    return Tensor::wrap(const_cast<std::byte*>(bytes), info.shape, info.dtype, owner_);
  }
  Tensor copy = Tensor::empty(info.shape, info.dtype);
  if (size > 0) std::memcpy(copy.raw(), bytes, size);
  return copy;
}

std::vector<std::pair<std::string, Tensor>> SafetensorsFile::tensors() const {
  std::vector<std::pair<std::string, Tensor>> all;
  all.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    TensorInfo about = info(i);
    Tensor t = tensor(about);
    all.emplace_back(std::move(about.name), std::move(t));
  }
  return all;
}

Metadata SafetensorsFile::metadata() const {
  Metadata metadata;
  for (const std::uint32_t key : metadata_) {
    JsonLexer lexer(header_, where_, key);
    std::string name = lexer.string();
    lexer.expect(':');
    metadata.emplace(std::move(name), lexer.string());
  }
  return metadata;
}

}  // namespace stepwell::io
