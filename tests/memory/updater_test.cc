// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// What every cell has in common: the small ones and three mixers.
#include "stepwell/memory/updater.h"

#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/memory/examples.h"

namespace stepwell::memory {
namespace {

struct CellCase {
  const char *type, *options;
  friend void PrintTo(const CellCase& c, std::ostream* out) { *out << c.type << " " << c.options; }
};
constexpr CellCase kCells[] = {
    {"gated", "{}"},
    {"gated", R"({"bias": true})"},
    {"cloned", "{}"},
    {"mamba", R"({"width": 4, "mixer": {"d_state": 3, "init": "active"}})"},
    {"gated_delta_net2", R"({"width": 4, "mixer": {"num_heads": 2, "head_dim": 3}})"},
    {"mlstm", R"({"width": 8, "mixer": {"num_heads": 2, "inner_dim": 8, "init": "active"}})"},
};

std::unique_ptr<MemoryUpdater> make(const CellCase& c, std::uint64_t seed = 7) {
  return make_updater(c.type, 0, 3, 2, io::parse_json(c.options, "test"), Rng(seed));
}

class Updater : public ::testing::TestWithParam<CellCase> {
 protected:
  std::unique_ptr<MemoryUpdater> cell_ = make(GetParam());
  Context ctx_ = Context::serial();
};

INSTANTIATE_TEST_SUITE_P(Cells, Updater, ::testing::ValuesIn(kCells),
                         [](const auto& info) { return std::string(info.param.type) + std::to_string(info.index); });

TEST_P(Updater, StepsAndPredictsShapesAndFiniteNumbers) {
  for (const std::int64_t batch : {0, 1, 5}) {
    const Transitions at = random_transitions(*cell_, batch, 1);
    const Tensor next = cell_->step(ctx_, at.memory, at.tokens), y = cell_->predict(ctx_, next);
    EXPECT_EQ(next.shape(), Shape({batch, cell_->memory_width()}));
    EXPECT_EQ(y.shape(), Shape({batch, 2}));
    for (std::int64_t i = 0; i < next.numel(); ++i) EXPECT_TRUE(std::isfinite(next.at(i)));
  }
  EXPECT_EQ(cell_->initial_memory(ctx_, 4).shape(), Shape({4, cell_->memory_width()}));
  EXPECT_THROW(
      cell_->step(ctx_, Tensor::zeros({1, cell_->memory_width() + 1}), Tensor::zeros({1, cell_->context(), 3})), Error);
  EXPECT_THROW(cell_->step(ctx_, Tensor::zeros({1, cell_->memory_width()}), Tensor::zeros({2, cell_->context(), 3})),
               Error);
}

TEST_P(Updater, AStepHasTheBitsOfTrainingWhateverTheBatch) {
  Context parallel = Context::parallel(3);
  const Transitions at = random_transitions(*cell_, 5, 1);
  const Variable memory = cell_->transition(ctx_, Variable::leaf(at.memory), at.tokens);
  const Tensor stepped = cell_->step(ctx_, at.memory, at.tokens);
  EXPECT_TRUE(stepped.same_bits(memory.value()));
  EXPECT_TRUE(cell_->predict(ctx_, stepped).same_bits(cell_->readout(ctx_, memory).value()));
  EXPECT_TRUE(cell_->step(parallel, at.memory, at.tokens).same_bits(stepped));
  const Tensor one = cell_->step(ctx_, at.memory.slice(0, 3, 1).clone().reshape({cell_->memory_width()}),
                                 at.tokens.slice(0, 3, 1).clone().reshape({cell_->context(), 3}));
  EXPECT_TRUE(one.same_bits(stepped.slice(0, 3, 1).clone().reshape({cell_->memory_width()})));
}

TEST_P(Updater, EveryParameterHasTheGradientOfItsDefinition) { expect_cell_gradients(*cell_, 11); }

TEST_P(Updater, LearnsASingleTransitionMoreThanTenfold) {
  Transitions at = random_transitions(*cell_, 1, 1);
  // Not every memory is in reach of a mixer's update: one that another such mixer makes is.
  if (cell_->type() != "gated" && cell_->type() != "cloned")
    at.target = make(GetParam(), 8)->step(ctx_, at.memory, at.tokens);
  const UpdateReport first = cell_->train_step(ctx_, at, 1e-2);
  UpdateReport last;
  for (int i = 0; i < 400; ++i) last = cell_->train_step(ctx_, at, 1e-2);
  EXPECT_GT((first.memory_loss + first.readout_loss) / (last.memory_loss + last.readout_loss), 10);
  EXPECT_GT(first.memory_loss / last.memory_loss, 10);
  EXPECT_FALSE(last.skipped);
}

TEST_P(Updater, CorrectionLeavesTheReadoutAndItsOptimiserAlone) {
  const Transitions at = random_transitions(*cell_, 4, 1);
  cell_->train_step(ctx_, at, 1e-2);
  cell_->train_step_memory(ctx_, at, 0);  // makes the optimiser, so that both lists have the same tensors
  const layers::NamedTensors before = bits_of(*cell_);
  const UpdateReport report = cell_->train_step_memory(ctx_, at, 1e-2);
  EXPECT_GT(report.memory_loss, 0);
  EXPECT_EQ(report.readout_loss, 0);
  bool moved = false;
  for (const std::string& name : differing(before, bits_of(*cell_))) {
    EXPECT_NE(name, "w_read");
    EXPECT_FALSE(name.starts_with("cloning.")) << name;
    moved = moved || !name.starts_with("correction.");
  }
  EXPECT_TRUE(moved);
  cell_->reset_correction();
  for (const auto& [name, tensor] : cell_->optimizer_state()) EXPECT_TRUE(name.starts_with("cloning.")) << name;
}

TEST_P(Updater, AStepThatIsNotFiniteKeepsEveryBit) {
  Transitions at = random_transitions(*cell_, 4, 1);
  cell_->train_step(ctx_, at, 1e-2);
  cell_->train_step_memory(ctx_, at, 1e-2);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 3e38}) {
    at = random_transitions(*cell_, 4, 1);
    at.target.data<float>()[2] = static_cast<float>(bad);
    const layers::NamedTensors before = bits_of(*cell_);
    EXPECT_TRUE(cell_->train_step(ctx_, at, 1e-2).skipped) << bad;
    EXPECT_TRUE(cell_->train_step_memory(ctx_, at, 1e-2).skipped) << bad;
    for (const std::string& name : differing(before, bits_of(*cell_)))
      EXPECT_TRUE(name.ends_with(".adam.skipped")) << name;
  }
}

TEST_P(Updater, ClipsLargeGradients) {
  Transitions at = random_transitions(*cell_, 4, 1);
  at.target = Tensor::full(at.target.shape(), 1e4);
  const UpdateReport report = cell_->train_step(ctx_, at, 1e-3);
  EXPECT_TRUE(report.clipped);
  EXPECT_GT(report.gradient_norm, kClipNorm);
}

TEST_P(Updater, ParametersAndOptimisersRoundTripBitForBit) {
  const Transitions at = random_transitions(*cell_, 4, 1);
  for (int i = 0; i < 3; ++i) {
    cell_->train_step(ctx_, at, 1e-2);
    cell_->train_step_memory(ctx_, at, 1e-2);
  }
  const auto copy = make(GetParam(), 8);
  copy->set_named_parameters(cell_->named_parameters());
  copy->set_optimizer_state(cell_->optimizer_state());
  EXPECT_TRUE(copy->step(ctx_, at.memory, at.tokens).same_bits(cell_->step(ctx_, at.memory, at.tokens)));
  for (const auto& cell : {cell_.get(), copy.get()}) {
    cell->train_step(ctx_, at, 1e-2);
    cell->train_step_memory(ctx_, at, 1e-2);
  }
  EXPECT_TRUE(differing(bits_of(*cell_), bits_of(*copy)).empty());

  layers::NamedTensors state = copy->optimizer_state();
  state.emplace_back("cloning.adam.m.nothing", Tensor::zeros({1}));
  EXPECT_THROW(copy->set_optimizer_state(state), Error);
  EXPECT_TRUE(differing(bits_of(*cell_), bits_of(*copy)).empty());
  layers::NamedTensors parameters = copy->named_parameters();
  parameters.pop_back();
  EXPECT_THROW(copy->set_named_parameters(parameters), Error);
}

TEST_P(Updater, ConfigurationMakesTheSameCell) {
  const auto copy = make_updater(cell_->type(), 0, 3, 2, cell_->config(), Rng(7));
  EXPECT_EQ(copy->config(), cell_->config());
  EXPECT_TRUE(differing(cell_->named_parameters(), copy->named_parameters()).empty());
  Config unknown = cell_->config();
  unknown.set("colour", "red");
  EXPECT_THROW(make_updater(cell_->type(), 0, 3, 2, unknown, Rng(7)), Error);
}

TEST(UpdaterNames, AnUnknownCellIsRefusedWithAllNames) {
  try {
    make_updater("gatd", 0, 3, 2, Config::Object{}, Rng(7));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("gated, cloned, mamba"), std::string::npos) << e.what();
  }
  EXPECT_THROW(make_updater("mamba", 5, 3, 2, Config::Object{}, Rng(7)), Error);
}

}  // namespace
}  // namespace stepwell::memory
