// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "stepwell/core/config.h"
#include "stepwell/core/tensor.h"

namespace stepwell::models {

inline constexpr std::string_view kModelFormat = "stepwell-model-1";
inline constexpr std::string_view kCausalLM = "causal_lm";
inline constexpr std::string_view kForecaster = "forecaster";
inline constexpr std::string_view kXlstm = "xlstm";
inline constexpr std::string_view kXlstmLarge = "xlstm_large";

// A configuration that says what it is of.
Config new_config(std::string_view type);
// Takes `format` and `type`, where given; throws Error for others than these.
void check_kind(ConfigReader& reader, std::string_view type);

std::string describe(const Tensor& tensor);  // "F32 [2, 16]"

}  // namespace stepwell::models
