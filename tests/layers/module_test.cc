// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/module.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace stepwell {
namespace {

using layers::Module;
using layers::NamedTensors;
using layers::Parameter;

class Part : public Module {
 public:
  Part() {
    weight = &add_matrix("weight", Tensor::full({2, 3}, 1));
    bias = &add_parameter("bias", Tensor::full({2}, 2), false);
  }
  using Module::apply;
  Parameter *weight, *bias;
};

class Whole : public Module {
 public:
  Whole() {
    add_part("a", a);
    kernel = &add_parameter("conv.weight", Tensor::full({4, 1, 3}, 3));
    add_part("b.c", b);
  }
  Part a, b;
  Parameter* kernel;
};

class Outer : public Module {
 public:
  Outer() { add_part("outer", whole); }
  Whole whole;
};

TEST(Module, NamesParametersOfPartsInOrder) {
  const Outer outer;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : outer.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"outer.conv.weight", "outer.a.weight", "outer.a.bias", "outer.b.c.weight",
                                             "outer.b.c.bias"}));
  EXPECT_EQ(outer.parameter_count(), 12 + 2 * (6 + 2));
}

TEST(Module, TakesNamedTensorsOfAnyFloatType) {
  Whole whole;
  const Tensor weight = Tensor::full({2, 3}, 0.5, DType::F64);
  whole.set_named_parameters({{"b.c.bias", Tensor::full({2}, 8, DType::BF16)},
                              {"b.c.weight", Tensor::full({2, 3}, 7)},
                              {"a.bias", Tensor::full({2}, 6, DType::F16)},
                              {"a.weight", weight},
                              {"conv.weight", Tensor::full({4, 3}, 9)}});
  EXPECT_EQ(whole.a.weight->value.dtype(), DType::F32);
  EXPECT_EQ(whole.a.weight->value.value().at(0), 0.5);
  EXPECT_EQ(whole.a.bias->value.value().at(1), 6);
  EXPECT_EQ(whole.b.bias->value.value().at(1), 8);
  EXPECT_EQ(whole.kernel->value.shape(), Shape({4, 1, 3})) << "a convolution's weight may come without its 1";
  EXPECT_EQ(whole.kernel->value.value().at(11), 9);
}

TEST(Module, CopiesWhatItIsGiven) {
  Part part;
  const Tensor weight = Tensor::full({2, 3}, 5), bias = Tensor::full({2}, 5);
  part.set_named_parameters({{"weight", weight}, {"bias", bias}});
  weight.fill(0);
  EXPECT_EQ(part.weight->value.value().at(0), 5);
}

TEST(Module, ListsAllFaultsAndChangesNothing) {
  Whole whole;
  const NamedTensors before = whole.named_parameters();
  const NamedTensors faulty = {{"a.weight", Tensor::zeros({3, 2})},
                               {"a.bias", Tensor::zeros({2}, DType::I64)},
                               {"b.c.weight", Tensor::zeros({2, 3})},
                               {"b.c.weight", Tensor::zeros({2, 3})},
                               {"b.c.bias", Tensor()},
                               {"extra", Tensor::zeros({1})}};
  try {
    whole.set_named_parameters(faulty);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const char* part :
         {"6 faults", "a.weight is [3, 2], expected [2, 3]", "a.bias is I64", "b.c.weight is given twice",
          "b.c.bias is not defined", "extra [1] is unexpected", "conv.weight [4, 1, 3] is missing"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    }
  }
  const NamedTensors after = whole.named_parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(after[i].second.same_bits(before[i].second)) << before[i].first;
    EXPECT_TRUE(after[i].second.shares_storage(before[i].second)) << before[i].first;
  }
}

TEST(Module, ConvertsToDoubleAndBack) {
  Outer outer;
  EXPECT_EQ(outer.dtype(), DType::F32);
  outer.to(DType::F64);
  EXPECT_EQ(outer.dtype(), DType::F64);
  for (const Parameter* parameter : outer.parameters()) EXPECT_EQ(parameter->value.dtype(), DType::F64);
  EXPECT_THROW(outer.to(DType::BF16), Error);
}

TEST(Module, PreparedCopiesFollowTheValue) {
  Context ctx = Context::serial();
  Part part;
  part.prepare(ctx);
  EXPECT_TRUE(part.weight->packed.defined());
  EXPECT_FALSE(part.bias->packed.defined());
  part.weight->set(Tensor::full({2, 3}, 2));
  EXPECT_FALSE(part.weight->packed.defined());
  const Variable y = Part::apply(ctx, Tensor::full({1, 3}, 1), *part.weight, part.bias);
  EXPECT_EQ(y.value().at(0), 8);
  part.prepare(ctx);
  part.to(DType::F64);
  EXPECT_FALSE(part.weight->packed.defined());
}

}  // namespace
}  // namespace stepwell
