// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/memory.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "stepwell/core/error.h"
#include "stepwell/io/toml.h"
#include "stepwell/memory/distiller.h"
#include "stepwell/memory/set_encoder.h"
#include "stepwell/memory/updater.h"

#include "python/extension/arrays.h"
#include "python/extension/compute.h"
#include "python/extension/options.h"

namespace stepwell::python {

namespace {

using memory::MemoryUpdater;
using memory::SetEncoderTeacher;

// A module that several Python threads may use at once: calls share it, whoever changes it has it alone.
template <class M>
struct Held {
  std::unique_ptr<M> module;
  std::shared_mutex mutex;
};
using PyTeacher = Held<SetEncoderTeacher>;
using PyUpdater = Held<MemoryUpdater>;

// work(ctx, module) of a call that changes nothing.
template <class M, class F>
auto shared(Held<M>& self, F&& work) {
  return compute(Mode::Exact, [&](Context& ctx) {
    const std::shared_lock lock(self.mutex);
    const NoGrad constant;
    return std::forward<F>(work)(ctx, std::as_const(*self.module));
  });
}

// work(ctx, module) of a call that changes the module. Nothing interrupts it half-way: Ctrl-C waits for its end.
template <class M, class F>
auto alone(Held<M>& self, F&& work) {
  return compute(Mode::Exact, [&](Context& ctx) {
    ctx.set_interrupt(nullptr);
    const std::unique_lock lock(self.mutex);
    return std::forward<F>(work)(ctx, *self.module);
  });
}

// Copies: a training step writes into parameters and moments.
layers::NamedTensors copies_of(layers::NamedTensors tensors) {
  for (auto& [name, tensor] : tensors) tensor = tensor.clone();
  return tensors;
}

nb::dict dict_of(const memory::UpdateReport& report) {
  nb::dict figures;
  figures["memory_loss"] = report.memory_loss;
  figures["readout_loss"] = report.readout_loss;
  figures["gradient_norm"] = report.gradient_norm;
  figures["clipped"] = report.clipped;
  figures["skipped"] = report.skipped;
  return figures;
}

PyTeacher* make_teacher(std::int64_t token_width, std::int64_t output_width, const nb::dict& options,
                        std::uint64_t seed, bool wide) {
  const auto config = memory::SetEncoderConfig::read(token_width, output_width, config_of(options, "teacher"));
  auto self = std::make_unique<PyTeacher>();
  const nb::gil_scoped_release unlocked;
  self->module = std::make_unique<SetEncoderTeacher>(config, Rng(seed));
  if (wide) self->module->to(DType::F64);
  return self.release();
}

PyUpdater* make_updater(const std::string& type, std::int64_t token_width, std::int64_t output_width,
                        std::int64_t memory_width, const nb::dict& options, std::uint64_t seed, bool wide) {
  const Config config = config_of(options, type);
  auto self = std::make_unique<PyUpdater>();
  const nb::gil_scoped_release unlocked;
  self->module = memory::make_updater(type, memory_width, token_width, output_width, config, Rng(seed));
  if (wide) self->module->to(DType::F64);
  return self.release();
}

nb::object encode(PyTeacher& self, nb::handle windows) {
  const Tensor x = tensor_of(windows, "windows");
  return array_of(
      shared(self, [&](Context& ctx, const SetEncoderTeacher& teacher) { return teacher.encode(ctx, x).value(); }));
}

nb::object encode_trajectory(PyTeacher& self, nb::handle sequences) {
  const Tensor x = tensor_of(sequences, "x");
  return array_of(
      shared(self, [&](Context& ctx, const SetEncoderTeacher& teacher) { return teacher.encode_trajectory(ctx, x); }));
}

nb::object decode(PyTeacher& self, nb::handle memory) {
  const Tensor m = tensor_of(memory, "memory");
  return array_of(
      shared(self, [&](Context& ctx, const SetEncoderTeacher& teacher) { return teacher.predict(ctx, m).value(); }));
}

nb::dict train_teacher(PyTeacher& self, nb::handle windows, nb::handle next, double lr) {
  const Tensor x = tensor_of(windows, "windows"), y = tensor_of(next, "next");
  return dict_of(
      alone(self, [&](Context& ctx, SetEncoderTeacher& teacher) { return teacher.train_step(ctx, x, y, lr); }));
}

nb::object initial_memory(PyUpdater& self, std::int64_t batch) {
  STEPWELL_CHECK(batch >= 0, "batch", std::to_string(batch) + ", expected at least 0");
  return array_of(
      shared(self, [&](Context& ctx, const MemoryUpdater& cell) { return cell.initial_memory(ctx, batch); }));
}

nb::object step(PyUpdater& self, nb::handle memory, nb::handle tokens) {
  const Tensor m = tensor_of(memory, "memory"), x = tensor_of(tokens, "tokens");
  return array_of(shared(self, [&](Context& ctx, const MemoryUpdater& cell) { return cell.step(ctx, m, x); }));
}

nb::object predict(PyUpdater& self, nb::handle memory) {
  const Tensor m = tensor_of(memory, "memory");
  return array_of(shared(self, [&](Context& ctx, const MemoryUpdater& cell) { return cell.predict(ctx, m); }));
}

// Without `next`: of the memory alone.
nb::dict train_updater(PyUpdater& self, nb::handle memory, nb::handle tokens, nb::handle target, nb::handle next,
                       double lr) {
  const memory::Transitions examples{.memory = tensor_of(memory, "memory"),
                                     .tokens = tensor_of(tokens, "tokens"),
                                     .target = tensor_of(target, "target"),
                                     .next = next.is_none() ? Tensor() : tensor_of(next, "next")};
  return dict_of(alone(self, [&](Context& ctx, MemoryUpdater& cell) {
    return examples.next.defined() ? cell.train_step(ctx, examples, lr) : cell.train_step_memory(ctx, examples, lr);
  }));
}

double contraction_estimate(PyUpdater& self, nb::handle memory, nb::handle tokens) {
  const Tensor m = tensor_of(memory, "memory"), x = tensor_of(tokens, "tokens");
  return compute(Mode::Exact, [&](Context& ctx) {  // with gradients
    const std::shared_lock lock(self.mutex);
    return std::as_const(*self.module).contraction_estimate(ctx, m, x);
  });
}

// Lets Python's signal handlers run after every step; where one raises, the run stops there.
class SignalsAfterSteps : public memory::DistillObserver {
 public:
  void on_step(const memory::DistillStep&, std::int64_t) override {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) stop_ = true;
  }
  const std::atomic<bool>& stop() const { return stop_; }

 private:
  std::atomic<bool> stop_{false};
};

// A recipe (a dict, or the path of a file) starts a run; None goes on with the one in the folder.
nb::object distill(nb::handle recipe, const std::string& folder) {
  const bool is_path = nb::isinstance<nb::str>(recipe);
  const std::string path = is_path ? nb::cast<std::string>(recipe) : std::string();
  const Config given = is_path ? Config() : config_of(recipe, "recipe");
  const bool resume = recipe.is_none();
  SignalsAfterSteps signals;
  const Config report = compute(Mode::Exact, [&](Context& ctx) {
    ctx.set_interrupt(nullptr);  // a run stops between steps, where it can be saved
    const auto begin = [&] {
      if (resume) return memory::Distiller::resume(ctx, folder);
      return memory::Distiller::start(ctx, memory::DistillRecipe::read(is_path ? io::read_toml(path) : given), folder);
    };
    memory::Distiller run = begin();
    run.run(signals, signals.stop());
    return run.report();
  });
  if (signals.stop()) throw nb::python_error();
  return value_of(report);
}

template <class M>
std::unique_ptr<Held<M>> held_copy(std::unique_ptr<M> fresh, const M& trained) {
  fresh->set_named_parameters(trained.named_parameters());
  fresh->set_optimizer_state(trained.optimizer_state());
  auto held = std::make_unique<Held<M>>();
  held->module = std::move(fresh);
  return held;
}

// → (cell, teacher or None) of the newest checkpoint of a distillation.
nb::tuple load_distillation(const std::string& folder) {
  std::unique_ptr<PyUpdater> updater;
  std::unique_ptr<PyTeacher> encoder;
  compute(Mode::Exact, [&](Context& ctx) {
    const memory::Distiller run = memory::Distiller::resume(ctx, folder);
    const memory::Distillation& d = run.distillation();
    if (d.step() == 0) fail(ErrorCode::File, "run", folder + " holds no checkpoint yet");
    const MemoryUpdater& cell = d.cell();
    updater = held_copy(memory::make_updater(cell.type(), cell.memory_width(), cell.token_width(), cell.output_width(),
                                             cell.config(), Rng(0)),
                        cell);
    if (const SetEncoderTeacher* teacher = d.teacher()) {
      encoder = held_copy(std::make_unique<SetEncoderTeacher>(teacher->config(), Rng(0)), *teacher);
    }
  });
  const nb::object cell = nb::cast(updater.release(), nb::rv_policy::take_ownership);
  return nb::make_tuple(cell, encoder ? nb::cast(encoder.release(), nb::rv_policy::take_ownership) : nb::none());
}

// What teachers and updaters have in common.
template <class M>
nb::class_<Held<M>> bind_held(nb::module_& m, const char* name) {
  using Self = Held<M>;
  return nb::class_<Self>(m, name)
      .def_prop_ro("wide", [](Self& self) { return self.module->dtype() == DType::F64; })
      .def("named_parameters",
           [](Self& self) {
             return named_arrays_of(
                 shared(self, [](Context&, const M& module) { return copies_of(module.named_parameters()); }));
           })
      .def("set_named_parameters",
           [](Self& self, const nb::dict& arrays) {
             const layers::NamedTensors tensors = named_tensors_of(arrays);
             alone(self, [&](Context&, M& module) { module.set_named_parameters(tensors); });
           })
      .def("optimizer_state",
           [](Self& self) {
             return named_arrays_of(
                 shared(self, [](Context&, const M& module) { return copies_of(module.optimizer_state()); }));
           })
      .def("set_optimizer_state", [](Self& self, const nb::dict& arrays) {
        const layers::NamedTensors tensors = named_tensors_of(arrays);
        alone(self, [&](Context&, M& module) { module.set_optimizer_state(tensors); });
      });
}

}  // namespace

void bind_memory(nb::module_& m) {
  bind_held<SetEncoderTeacher>(m, "Teacher")
      .def_prop_ro("config", [](const PyTeacher& self) { return value_of(self.module->config().options()); })
      .def_prop_ro("token_width", [](const PyTeacher& self) { return self.module->config().token_width; })
      .def_prop_ro("output_width", [](const PyTeacher& self) { return self.module->config().output_width; })
      .def("encode", &encode)
      .def("encode_trajectory", &encode_trajectory)
      .def("predict", &decode)
      .def("train_step", &train_teacher);
  bind_held<MemoryUpdater>(m, "Updater")
      .def_prop_ro("type", [](const PyUpdater& self) { return std::string(self.module->type()); })
      .def_prop_ro("config", [](const PyUpdater& self) { return value_of(self.module->config()); })
      .def_prop_ro("token_width", [](const PyUpdater& self) { return self.module->token_width(); })
      .def_prop_ro("output_width", [](const PyUpdater& self) { return self.module->output_width(); })
      .def_prop_ro("memory_width", [](const PyUpdater& self) { return self.module->memory_width(); })
      .def_prop_ro("context", [](const PyUpdater& self) { return self.module->context(); })
      .def_prop_ro("clamp", [](const PyUpdater& self) { return self.module->clamp(); })
      .def("initial_memory", &initial_memory)
      .def("step", &step)
      .def("predict", &predict)
      .def("train_step", &train_updater, nb::arg("memory"), nb::arg("tokens"), nb::arg("target"),
           nb::arg("next").none(), nb::arg("lr"))
      .def("contraction_estimate", &contraction_estimate);
  m.def("make_teacher", &make_teacher, nb::rv_policy::take_ownership);
  m.def("make_updater", &make_updater, nb::rv_policy::take_ownership);
  m.def("distill", &distill, nb::arg("recipe").none(), nb::arg("folder"));
  m.def("load_distillation", &load_distillation);
}

}  // namespace stepwell::python
