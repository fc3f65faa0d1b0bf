// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/layers.h"

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "stepwell/layers/registry.h"

#include "python/extension/arrays.h"
#include "python/extension/calls.h"
#include "python/extension/compute.h"
#include "python/extension/options.h"

namespace stepwell::python {

namespace {

using layers::Layer;

constexpr const char* kState = "state.";
constexpr const char* kParameter = "param.";

// A layer's parameters that one call replaces by its own, without a copy; put back at the end.
class LentParameters {
 public:
  LentParameters(Layer& layer, const Arguments& arrays) {
    std::string unknown;
    std::set<std::string> names;
    for (layers::Parameter* p : layer.parameters()) {
      names.insert(kParameter + p->name);
      const auto found = arrays.find(kParameter + p->name);
      if (found == arrays.end()) continue;
      STEPWELL_CHECK(found->second.shape() == p->value.shape() && found->second.dtype() == p->value.dtype(), p->name,
                     std::string(dtype_name(found->second.dtype())) + " " + found->second.shape().to_string() +
                         ", expected " + std::string(dtype_name(p->value.dtype())) + " " +
                         p->value.shape().to_string());
    }
    for (const auto& [name, value] : arrays) {
      if (name.starts_with(kParameter) && !names.contains(name)) unknown += " " + name.substr(6);
    }
    STEPWELL_CHECK(unknown.empty(), layer.type(), "no parameters of the layer:" + unknown);
    for (layers::Parameter* p : layer.parameters()) {
      const auto found = arrays.find(kParameter + p->name);
      if (found == arrays.end()) continue;
      own_.push_back({p, p->value, std::move(p->packed), std::move(p->derived)});
      p->value = found->second;
      p->unprepare();
    }
  }
  ~LentParameters() {
    for (Own& own : own_) {
      own.parameter->value = std::move(own.value);
      own.parameter->packed = std::move(own.packed);
      own.parameter->derived = std::move(own.derived);
    }
  }
  LentParameters(const LentParameters&) = delete;
  LentParameters& operator=(const LentParameters&) = delete;

 private:
  struct Own {
    layers::Parameter* parameter;
    Variable value;
    ops::PackedMatrix packed;
    Tensor derived;
  };
  std::vector<Own> own_;
};

// A layer that several Python threads may use at once: calls share it, whoever changes parameters has it alone.
struct PyLayer {
  std::unique_ptr<Layer> layer;
  std::shared_mutex mutex;
};

// A state in the layer's own layout.
struct PyState {
  layers::State state;
};

struct LayerRequest {
  Arguments arrays;  // "x", "state.FIELD" in the exchange format, "param.NAME"
  layers::State state;
  layers::Sequences sequences;
  bool with_fields = false;  // whether the state's fields are results too
};

layers::LayerOutput forward(PyLayer& self, Context& ctx, LayerRequest& request) {
  std::vector<Variable> fields;
  for (const auto& field : self.layer->state_fields()) {
    const auto found = request.arrays.find(kState + std::string(field.name));
    if (found != request.arrays.end()) fields.push_back(found->second);
  }
  if (!fields.empty()) {
    STEPWELL_CHECK(fields.size() == self.layer->state_fields().size(), self.layer->type(),
                   "a state of " + std::to_string(fields.size()) + " fields, expected " +
                       std::to_string(self.layer->state_fields().size()));
    request.state = self.layer->import_state(ctx, std::move(fields));
  }
  return self.layer->forward(ctx, request.arrays.at("x"), std::move(request.state), request.sequences);
}

Results run(PyLayer& self, Context& ctx, LayerRequest& request, PyState& last) {
  layers::LayerOutput out = forward(self, ctx, request);
  Results results = {{"y", out.y}};
  if (request.with_fields) {
    const std::vector<Variable> fields = self.layer->export_state(ctx, out.state);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      results.emplace_back(kState + std::string(self.layer->state_fields()[i].name), fields[i]);
    }
  }
  last.state = out.state.detach();
  return results;
}

Mode mode_of(const std::string& mode) {
  STEPWELL_CHECK(mode == "exact" || mode == "fast", "mode", "\"" + mode + "\", expected \"exact\" or \"fast\"");
  return mode == "exact" ? Mode::Exact : Mode::Fast;
}

// → (Call, state after the last token of every sequence)
nb::tuple call_layer(PyLayer& self, const nb::dict& arrays, const PyState* state, nb::handle borders, nb::handle mask,
                     const std::string& mode, const std::optional<std::set<std::string>>& wanted) {
  LayerRequest request;
  request.arrays = arguments_of(arrays, wanted.value_or(std::set<std::string>()));
  if (state) request.state = state->state;
  request.sequences.cu_seqlens = integers_of(borders, "cu_seqlens");
  if (!mask.is_none()) request.sequences.mask = tensor_of(mask, "mask");
  request.with_fields = wanted.has_value();
  bool lends = false;
  for (const auto& [name, value] : request.arrays) lends = lends || name.starts_with(kParameter);

  PyState last;
  Arguments leaves;
  Results results = compute(mode_of(mode), [&](Context& ctx) {
    std::optional<NoGrad> constant;
    if (!wanted || wanted->empty()) constant.emplace();
    if (!lends) {
      const std::shared_lock lock(self.mutex);
      for (const layers::Parameter* p : std::as_const(*self.layer).parameters()) {
        if (wanted && wanted->contains(kParameter + p->name)) leaves.emplace(kParameter + p->name, p->value);
      }
      return run(self, ctx, request, last);
    }
    const std::unique_lock lock(self.mutex);
    const LentParameters lent(*self.layer, request.arrays);
    return run(self, ctx, request, last);
  });
  if (wanted) {
    for (const auto& [name, value] : request.arrays) {
      if (wanted->contains(name)) leaves.insert_or_assign(name, value);
    }
  }
  return nb::make_tuple(Call(std::move(results), std::move(leaves)), last);
}

PyLayer* make_layer(const std::string& name, std::int64_t width, const nb::dict& options, std::uint64_t seed,
                    bool wide) {
  const Config config = config_of(options, name);
  STEPWELL_CHECK(width >= 1, name, "width = " + std::to_string(width) + ", expected at least 1");
  auto self = std::make_unique<PyLayer>();
  const nb::gil_scoped_release unlocked;
  self->layer = layers::find_mixer(name).make(width, config, Rng(seed));
  if (wide) self->layer->to(DType::F64);
  return self.release();
}

nb::dict fields_as_dict(const Layer& layer, std::vector<Variable> fields) {
  nb::dict by_name;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    by_name[std::string(layer.state_fields()[i].name).c_str()] = array_of(std::move(fields[i]).take());
  }
  return by_name;
}

nb::dict export_state(PyLayer& self, const PyState& state) {
  std::vector<Variable> fields = compute(Mode::Exact, [&](Context& ctx) {
    const NoGrad constant;
    return self.layer->export_state(ctx, state.state);
  });
  return fields_as_dict(*self.layer, std::move(fields));
}

PyState import_state(PyLayer& self, const nb::list& arrays) {
  std::vector<Variable> fields;
  for (nb::handle array : arrays) {
    const std::size_t i = fields.size();
    STEPWELL_CHECK(i < self.layer->state_fields().size(), self.layer->type(), "a state of too many fields");
    fields.emplace_back(tensor_of(array, std::string(self.layer->state_fields()[i].name)).clone());
  }
  return compute(Mode::Exact, [&](Context& ctx) {
    const NoGrad constant;
    return PyState{self.layer->import_state(ctx, std::move(fields))};
  });
}

PyState initial_state(PyLayer& self, std::int64_t sequences) {
  STEPWELL_CHECK(sequences >= 0, self.layer->type(), std::to_string(sequences) + " sequences, expected at least 0");
  return compute(Mode::Exact, [&](Context& ctx) {
    const NoGrad constant;
    return PyState{self.layer->initial_state(ctx, sequences).detach()};
  });
}

// Never with the interpreter's lock: whoever has the layer's may be waiting for that.
template <class F>
auto shared(PyLayer& self, F&& read) {
  const nb::gil_scoped_release unlocked;
  const std::shared_lock lock(self.mutex);
  return std::forward<F>(read)(std::as_const(*self.layer));
}

nb::dict named_parameters(PyLayer& self) {
  return named_arrays_of(shared(self, [](const Layer& layer) { return layer.named_parameters(); }));
}

bool is_wide(PyLayer& self) {
  return shared(self, [](const Layer& layer) { return layer.dtype() == DType::F64; });
}

void set_named_parameters(PyLayer& self, const nb::dict& arrays) {
  const layers::NamedTensors tensors = named_tensors_of(arrays);
  const nb::gil_scoped_release unlocked;
  const std::unique_lock lock(self.mutex);
  self.layer->set_named_parameters(tensors);
}

// Small configurations of a mixer that between them touch every option, as JSON.
std::vector<std::string> conformance_options(const std::string& name) {
  const auto options = layers::find_mixer(name).conformance_options;
  return {options.begin(), options.end()};
}

nb::list rows_of_registry() {
  nb::list rows;
  for (const layers::MixerRow& row : layers::mixers()) {
    rows.append(nb::make_tuple(std::string(row.name), std::string(row.summary), std::string(row.source)));
  }
  return rows;
}

}  // namespace

void bind_layers(nb::module_& m) {
  nb::class_<PyState>(m, "LayerState");
  nb::class_<PyLayer>(m, "Layer")
      .def_prop_ro("type", [](const PyLayer& self) { return std::string(self.layer->type()); })
      .def_prop_ro("width", [](const PyLayer& self) { return self.layer->width(); })
      .def_prop_ro("wide", &is_wide)
      .def_prop_ro("config", [](const PyLayer& self) { return value_of(self.layer->config()); })
      .def_prop_ro("state_fields",
                   [](const PyLayer& self) {
                     std::vector<std::string> names;
                     for (const auto& field : self.layer->state_fields()) names.emplace_back(field.name);
                     return names;
                   })
      .def_prop_ro("parameter_names",
                   [](const PyLayer& self) {
                     std::vector<std::string> names;
                     for (const layers::Parameter* p : std::as_const(*self.layer).parameters()) {
                       names.push_back(p->name);
                     }
                     return names;
                   })
      .def("named_parameters", &named_parameters)
      .def("set_named_parameters", &set_named_parameters)
      .def("to",
           [](PyLayer& self, bool wide) {
             const nb::gil_scoped_release unlocked;
             const std::unique_lock lock(self.mutex);
             self.layer->to(wide ? DType::F64 : DType::F32);
           })
      .def("prepare",
           [](PyLayer& self) {
             compute(Mode::Exact, [&](Context& ctx) {
               const std::unique_lock lock(self.mutex);
               self.layer->prepare(ctx);
             });
           })
      .def("call", &call_layer, nb::arg("arrays"), nb::arg("state").none(), nb::arg("cu_seqlens").none(),
           nb::arg("mask").none(), nb::arg("mode"), nb::arg("wanted").none())
      .def("export_state", &export_state)
      .def("import_state", &import_state)
      .def("initial_state", &initial_state);
  m.def("make_layer", &make_layer, nb::rv_policy::take_ownership);
  m.def("mixers", &rows_of_registry);
  m.def("conformance_options", &conformance_options);
}

}  // namespace stepwell::python
