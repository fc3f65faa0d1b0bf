// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

#include "stepwell/core/config.h"
#include "stepwell/core/error.h"

namespace stepwell::cli {

namespace {

std::string shown(double x) {
  std::string s = std::to_string(x);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.ends_with('.')) s.pop_back();
  return s;
}

// A check of a number's range for CLI11, which reads numbers itself.
CLI::Validator range_check(double low, double high) {
  const std::string rule = "a number from " + shown(low) + " to " + shown(high);
  return CLI::Validator(
      [low, high, rule](std::string& input) {
        double x = 0;
        const bool good = CLI::detail::lexical_cast(input, x) && x >= low && x <= high;
        return good ? std::string() : input + ", expected " + rule;
      },
      "");
}

// The nearest name to a word that is not known, as the tail of a message.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const auto near = nearest_name(word, known);
  return near.empty() ? "" : "; did you mean " + std::string(near) + "?";
}

// What CLI11 could not place: the first word, with the nearest option or command.
std::string unknown_word(const CLI::App& app) {
  const CLI::App* inner = &app;
  while (!inner->get_subcommands().empty()) inner = inner->get_subcommands().front();
  std::vector<std::string> words = app.remaining(true), known;
  if (words.empty()) return {};
  for (const CLI::Option* option : inner->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const CLI::App* command : inner->get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::string word = words.front().substr(0, words.front().find('='));
  return "unknown " + std::string(word.starts_with("-") ? "option " : "argument ") + word + suggestion(word, known);
}

int usage_error(const CLI::App& app, const std::string& message) {
  const CLI::App* inner = &app;
  std::string name = app.get_name();
  while (!inner->get_subcommands().empty()) {
    inner = inner->get_subcommands().front();
    name += " " + inner->get_name();
  }
  std::fprintf(stderr, "%s: %s\nTry: %s --help\n", name.c_str(), message.c_str(), name.c_str());
  return kUsage;
}

// Results that did not arrive are a failure: a full disk would pass for success.
void flush_results() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  fail(ErrorCode::File, "standard output", "cannot write the results" + reason);
}

int run_action(const std::string& name, const Action& action) {
  const auto complain = [&name](const char* message) {
    std::fprintf(stderr, "stepwell %s: %s\n", name.c_str(), message);
    return kFailure;
  };
  try {
    const int status = action();
    flush_results();
    return status;
  } catch (const Error& error) {
    complain(error.what());
    return error.code() == ErrorCode::Config ? kUsage : kFailure;
  } catch (const std::bad_alloc&) {
    return complain("out of memory: these sizes (batch, length, width, layers) need more than there is");
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

void Options::flag(const std::string& names, bool& target, const std::string& help) {
  app_.add_flag(names, target, help);
}
void Options::text(const std::string& names, std::string& target, const char* kind, const std::string& help) {
  app_.add_option(names, target, help)->type_name(kind);
}
void Options::texts(const std::string& names, std::vector<std::string>& target, bool several, const char* kind,
                    const std::string& help) {
  app_.add_option(names, target, help)->type_name(kind)->allow_extra_args(several);
}
void Options::integer(const std::string& names, std::int64_t& target, std::int64_t low, std::int64_t high,
                      const std::string& help) {
  app_.add_option(names, target, help)
      ->type_name("N")
      ->check(range_check(static_cast<double>(low), static_cast<double>(high)));
}
void Options::number(const std::string& names, double& target, double low, double high, const std::string& help) {
  app_.add_option(names, target, help)->type_name("X")->check(range_check(low, high));
}
void Options::argument(const std::string& name, std::string& target, bool required, const std::string& help) {
  app_.add_option(name, target, help)->type_name("")->required(required);
}
void Options::arguments(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  app_.add_option(name, target, help)->type_name("")->required();
}
void Options::threads(int& target) {
  const std::string standard = std::to_string(target);
  app_.add_option("--threads", target, "Threads to compute on (default " + standard + "; 0: one per processor)")
      ->type_name("N")
      ->check(range_check(0, 1024));
}
void Options::json(bool& target) { flag("--json", target, "Print results as JSON"); }

int run_command_line(std::span<const Command> commands, int argc, const char* const* argv) {
  CLI::App app("Train, fine-tune and stream linear-recurrent models.", "stepwell");
  app.set_version_flag("--version", std::string("stepwell ") + STEPWELL_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<const CLI::App*, Action>> actions;
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    Options options(*sub);
    actions.emplace_back(sub, command.declare(options));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_word(app);
    return usage_error(app, unknown.empty() ? error.what() : unknown);
  }
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return run_action(sub->get_name(), action);
  }
  return kUsage;
}

}  // namespace stepwell::cli
