// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "stepwell/layers/mamba.h"

namespace stepwell::layers {

// First values of Mamba's parameters (MambaInit). Every tensor has the stream of random numbers of its
// name.
class MambaInitialiser {
 public:
  MambaInitialiser(const MambaConfig& config, const Rng& rng) : config_(config), rng_(rng) {}

  Tensor projection(std::string_view name, const Shape& shape, std::int64_t fan_in) const;
  Tensor conv_bias(std::string_view name) const;    // [D]
  Tensor step_weight(std::string_view name) const;  // [D, R]
  Tensor step_bias(std::string_view name) const;    // [D], inverse softplus of the first step sizes
  Tensor A_log() const;                             // [D, N]

 private:
  const MambaConfig& config_;
  const Rng& rng_;
};

}  // namespace stepwell::layers
