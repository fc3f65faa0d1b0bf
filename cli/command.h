// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace stepwell::cli {

// Exit statuses of every command. An interrupted command ends with 128 + SIGINT, as a shell reports it.
inline constexpr int kSuccess = 0, kFailure = 1, kUsage = 2, kInterrupted = 130;

// What a command does once its options are read; returns the exit status.
using Action = std::function<int()>;

// Declares the options of one command; values arrive in the targets before the action runs, which keep their value when
// an option is not given. Names are "--name" or "-n,--name"; `kind` is what help shows for the value ("FILE").
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  void flag(const std::string& names, bool& target, const std::string& help);
  void text(const std::string& names, std::string& target, const char* kind, const std::string& help);
  // An option given many times, or with many values after it (`several`).
  void texts(const std::string& names, std::vector<std::string>& target, bool several, const char* kind,
             const std::string& help);
  // An integer, or a finite number, from `low` to `high`.
  void integer(const std::string& names, std::int64_t& target, std::int64_t low, std::int64_t high,
               const std::string& help);
  void number(const std::string& names, double& target, double low, double high, const std::string& help);
  // Arguments without a name: one, or one or more.
  void argument(const std::string& name, std::string& target, bool required, const std::string& help);
  void arguments(const std::string& name, std::vector<std::string>& target, const std::string& help);

  // Options that several commands have.
  void threads(int& target);  // --threads: 0 = all processors; the default is what the target holds
  void json(bool& target);    // --json: results as JSON

 private:
  CLI::App& app_;
};

struct Command {
  std::string_view name, summary;
  Action (*declare)(Options& options);
};

// Reads the command line and runs the command it names; returns the exit status. Faults go to stderr.
int run_command_line(std::span<const Command> commands, int argc, const char* const* argv);

// One file each.
Action declare_train(Options& options);
Action declare_distill(Options& options);
Action declare_eval(Options& options);
Action declare_forecast(Options& options);
Action declare_generate(Options& options);
Action declare_inspect(Options& options);
Action declare_verify(Options& options);
Action declare_equivalence(Options& options);
Action declare_bench(Options& options);
Action declare_report(Options& options);
Action declare_info(Options& options);

}  // namespace stepwell::cli
