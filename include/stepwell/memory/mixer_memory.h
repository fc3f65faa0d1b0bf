// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stepwell/layers/layer.h"
#include "stepwell/memory/updater.h"

namespace stepwell::memory {

// The state of any registered mixer as a memory: it is trained one step at a time like the small cells, by the mixer's
// own kernels and their adjoints.
//
// The memory is what the mixer's state holds but for the rings of its short convolutions, in the layout and order of
// Layer::export_state(). Rings need no teaching: they are the last tokens' projections, so an update reads the last
// context() tokens instead, the width of the convolution.
//
// Parameters: w_in [width, token], w_read [out, Mem], mixer.* (the layer's own). What only the layer's output depends
// on (output projections, gates and norms) has no part in the memory and stays at its first value.
class MixerMemory : public MemoryUpdater {
 public:
  // Options: width (default 16; of the mixer), clamp (default 0: none), mixer (the layer's options). Throws Error for a
  // mixer whose state grows.
  MixerMemory(std::string_view mixer, std::int64_t token_width, std::int64_t output_width, const Config& options,
              const Rng& rng);

  std::string_view type() const override { return type_; }
  Config config() const override;
  Variable transition(Context& ctx, const Variable& memory, const Variable& tokens) const override;
  Tensor initial_memory(Context& ctx, std::int64_t batch) const override;

  const layers::Layer& layer() const { return *parts_.layer; }
  // Between states and memories; differentiable. `rings` gives what a memory leaves out.
  Variable memory_of(Context& ctx, const layers::State& state) const;
  layers::State state_of(Context& ctx, const Variable& memory, const layers::State& rings) const;

 private:
  struct Field {
    std::int64_t before, after;  // numbers of one sequence: extents before the batch's, and after it, multiplied
    bool ring;
    std::int64_t size() const { return before * after; }
  };
  // The layer and what its state looks like, known before the base class is made.
  struct Parts {
    std::unique_ptr<layers::Layer> layer;
    std::vector<Field> fields;  // as exported
    std::int64_t memory_width = 0, context = 1;
  };
  static Parts describe(std::unique_ptr<layers::Layer> layer);
  MixerMemory(std::string_view mixer, std::int64_t token_width, std::int64_t output_width, double clamp, Parts parts,
              const Rng& rng);

  std::string type_;
  Parts parts_;
  layers::Parameter* in_;
};

}  // namespace stepwell::memory
