// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/case_file.h"

#include <filesystem>

#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"

namespace stepwell::verify {

CaseFile::CaseFile(const std::string& path) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  const auto& metadata = file.metadata();
  auto require = [&](const char* key) {
    const auto found = metadata.find(key);
    if (found == metadata.end())
      fail(ErrorCode::File, path, std::string("metadata has no \"") + key + "\", expected a case file");
    return found->second;
  };
  if (const std::string format = require("format"); format != "stepwell-case-1") {
    fail(ErrorCode::File, path, "format \"" + format + "\", expected stepwell-case-1");
  }
  kind_ = require("kind");
  name_ = require("name");
  config_ = io::parse_json(require("config"), path + ": config");
  tolerance_ = io::parse_json(require("tol"), path + ": tol");
  for (const std::string& name : file.names()) tensors_.emplace(name, file.tensor(name));
}

std::string CaseFile::group() const {
  const Config* type = config_.find("type");
  return type && type->is_string() ? kind_ + " " + type->as_string("type") : kind_;
}

std::vector<std::pair<std::string, Tensor>> CaseFile::tensors(std::string_view prefix) const {
  std::vector<std::pair<std::string, Tensor>> found;
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), tensor);
  }
  return found;
}

Tensor CaseFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? Tensor() : found->second;
}

bool CaseFile::runs_in(DType dtype) const {
  const Config* limit = tolerance_.find(dtype == DType::F32 ? "f32" : "f64");
  return limit && !limit->is_null();
}

CaseFile::Tolerance CaseFile::tolerance(const std::string& tensor, DType dtype) const {
  const bool single = dtype == DType::F32;
  Tolerance t{0, 0};
  auto apply = [&](const Config& limits) {
    if (const Config* r = limits.find(single ? "f32" : "f64"); r && r->is_number()) t.relative = r->as_double("tol");
    if (const Config* a = limits.find("abs"); a && a->is_number()) t.absolute = a->as_double("tol");
    if (const Config* a = limits.find("abs_f32"); single && a && a->is_number()) t.absolute = a->as_double("tol");
  };
  apply(tolerance_);
  if (const Config* special = tolerance_.find("tensors"); special && special->is_object()) {
    const Config* best = nullptr;
    std::size_t length = 0;
    for (const auto& [key, limits] : special->as_object("tensors")) {
      const bool matches = tensor == key || (key.ends_with('.') && tensor.starts_with(key));
      if (matches && key.size() >= length) {
        best = &limits;
        length = key.size();
      }
    }
    if (best) apply(*best);
  }
  return t;
}

}  // namespace stepwell::verify
