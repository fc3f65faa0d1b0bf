// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "stepwell/simd/isa.h"
#include "stepwell/verify/verify.h"

namespace stepwell::verify {
namespace {

enum class Fault {
  None,
  Splits,
  Batch,
  Threads,
  Packed,
  Future,
  Unrepeatable,
  InstructionSet,
  Rounding,
  Gradient,
  LostState
};

// A short convolution with a fault of our choice built in.
class FaultyLayer final : public layers::Layer {
 public:
  explicit FaultyLayer(Fault fault) : fault_(fault) {
    const Rng rng(3);
    weight_ = &add_parameter("weight", rng.stream("weight").normal({kWidth, kKernel}, 0, 1));
    bias_ = &add_parameter("bias", rng.stream("bias").normal({kWidth}, 0, 1));
  }
  std::string_view type() const override { return "faulty"; }
  Config config() const override { return {}; }
  std::int64_t width() const override { return kWidth; }
  const std::vector<layers::StateField>& state_fields() const override {
    static const std::vector<layers::StateField> kFields = {{"conv_state", {kKernel, kWidth}}};
    return kFields;
  }

 protected:
  layers::LayerOutput forward_rows(Context& ctx, const Variable& x, layers::State state,
                                   const Segments& segments) const override {
    static int calls = 0;
    ++calls;
    if (fault_ == Fault::LostState && !state.empty()) state = state.detach();
    const Variable weight = fault_ == Fault::Gradient ? scale(ctx, weight_->value.detach(), 1) : weight_->value;
    const Segments used = fault_ == Fault::Packed && segments.count() == 4
                              ? Segments::uniform(segments.count(), x.size(0) / segments.count())
                              : segments;
    auto [y, last] = short_conv(ctx, x, weight, bias_->value, state.take(0), used);
    double shift = 0;
    switch (fault_) {
      case Fault::Splits: shift = segments.count() == 0 ? 0 : static_cast<double>(segments.length(0)) * 1e-6; break;
      case Fault::Batch: shift = static_cast<double>(segments.count()) * 1e-6; break;
      case Fault::Threads: shift = ctx.threads() * 1e-6; break;
      case Fault::InstructionSet: shift = simd::current_isa() == simd::Isa::Scalar ? 1e-6 : 0; break;
      case Fault::Unrepeatable: y = scale(ctx, y, 1 + calls * 1e-6); break;
      case Fault::Rounding: y = scale(ctx, y, x.dtype() == DType::F32 ? 1 + 1e-4 : 1); break;
      case Fault::Future: y = add(ctx, y, scale(ctx, gather_rows(ctx, x, reversed(x.size(0))), 1e-3)); break;
      default: break;
    }
    if (shift != 0) y = add(ctx, y, Tensor::full(y.shape(), shift, y.dtype()));
    layers::State out;
    out.push(last);
    return {y, std::move(out)};
  }

 private:
  static constexpr std::int64_t kWidth = 5, kKernel = 3;
  static Tensor reversed(std::int64_t n) {
    Tensor index = Tensor::empty({n}, DType::I64);
    for (std::int64_t i = 0; i < n; ++i) index.data<std::int64_t>()[i] = n - 1 - i;
    return index;
  }
  Fault fault_;
  layers::Parameter *weight_, *bias_;
};

Report verified(Fault fault) {
  Subject subject;
  subject.name = "layer faulty";
  subject.variant = "planted";
  subject.layer = std::make_unique<FaultyLayer>(fault);
  Report report;
  verify_subjects({&subject}, {}, report);
  return report;
}

Outcome outcome_of(const Report& report, std::string_view promise) {
  for (const Check& check : report.checks()) {
    if (check.promise == promise) return check.outcome;
  }
  ADD_FAILURE() << "no promise " << promise;
  return Outcome::NotRun;
}

TEST(PlantedFault, SoundLayerPassesEverything) {
  const Report report = verified(Fault::None);
  EXPECT_TRUE(report.passed());
  for (const Check& check : report.checks()) EXPECT_EQ(check.outcome, Outcome::Pass) << Report::line(check);
}

struct Planted {
  Fault fault;
  const char* promise;
};

class EachFault : public testing::TestWithParam<Planted> {};

TEST_P(EachFault, IsFoundByItsPromise) {
  const Report report = verified(GetParam().fault);
  EXPECT_EQ(outcome_of(report, GetParam().promise), Outcome::Fail);
  EXPECT_FALSE(report.passed());
}

INSTANTIATE_TEST_SUITE_P(
    PlantedFault, EachFault,
    testing::Values(Planted{Fault::Splits, "X1 splits"}, Planted{Fault::Batch, "X1 batch"},
                    Planted{Fault::Threads, "X1 threads"}, Planted{Fault::Packed, "X1 packed and padded"},
                    Planted{Fault::Future, "X2 causal"}, Planted{Fault::Unrepeatable, "X3 repeatable gradients"},
                    Planted{Fault::InstructionSet, "X7 instruction sets"}, Planted{Fault::Rounding, "form = reference"},
                    Planted{Fault::Gradient, "finite differences"},
                    Planted{Fault::LostState, "gradient through state"}));

TEST(Report, NothingRunIsNotPassed) {
  Report report;
  EXPECT_FALSE(report.passed());
  report.add({"layer x", "X6", Outcome::NotRun, "", "no counter", 0});
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.summary(), "0 passed, 0 failed, 1 not run");
}

}  // namespace
}  // namespace stepwell::verify
