// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/options.h"

#include <nanobind/stl/string.h>

namespace stepwell::python {

Config config_of(nb::handle value, const std::string& where) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::dict>(value)) {
    Config::Object members;
    for (const auto& [key, member] : nb::borrow<nb::dict>(value)) {
      std::string name = nb::cast<std::string>(nb::str(key));
      Config converted = config_of(member, where + "." + name);
      members.emplace_back(std::move(name), std::move(converted));
    }
    return members;
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    Config::Array items;
    for (nb::handle item : value) items.push_back(config_of(item, where));
    return items;
  }
  if (PyIndex_Check(value.ptr())) {  // NumPy's integers too
    const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    std::int64_t integer = 0;
    if (!nb::try_cast(number, integer)) fail(ErrorCode::Config, where, "an integer of more than 64 bits");
    return integer;
  }
  if (PyNumber_Check(value.ptr())) {
    const nb::object number = nb::steal(PyNumber_Float(value.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    return nb::cast<double>(number);
  }
  fail(ErrorCode::Config, where,
       "a " + nb::cast<std::string>(value.type().attr("__name__")) +
           ", expected None, a truth value, a number, a string, a list or a dict");
}

nb::object value_of(const Config& config) {
  constexpr const char* kWhere = "config";
  if (config.is_null()) return nb::none();
  if (config.is_bool()) return nb::bool_(config.as_bool(kWhere));
  if (config.is_integer()) return nb::int_(config.as_integer(kWhere));
  if (config.is_number()) return nb::float_(config.as_double(kWhere));
  if (config.is_string()) return nb::str(config.as_string(kWhere).c_str());
  if (config.is_array()) {
    nb::list items;
    for (const Config& item : config.as_array(kWhere)) items.append(value_of(item));
    return items;
  }
  nb::dict members;
  for (const auto& [key, member] : config.as_object(kWhere)) members[key.c_str()] = value_of(member);
  return members;
}

}  // namespace stepwell::python
