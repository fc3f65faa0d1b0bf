// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/run_stepwell.h"

#include <filesystem>
#include <functional>
#include <stdexcept>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepwell/io/file.h"

#include "tests/train/scratch_folder.h"

namespace stepwell::cli {

namespace {

void redirect(const std::string& path, int flags, int descriptor) {
  const int opened = open(path.c_str(), flags, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

// What arrives at `sink` instead of a file of its own is not in the result.
CommandResult run(const std::vector<std::string>& arguments, const std::string& input,
                  const std::function<void(pid_t)>& meanwhile, const char* sink = nullptr) {
  const train::ScratchFolder scratch;
  scratch.write("in", input);
  const std::string in = scratch.path("in"), out = scratch.path("out"), err = scratch.path("err");
  std::vector<char*> argv{const_cast<char*>(STEPWELL_CLI)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(sink ? sink : out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  if (child < 0) throw std::runtime_error("fork");
  meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  if (!sink) result.out = io::read_file(out, 1 << 24);
  result.err = io::read_file(err, 1 << 24);
  return result;
}

}  // namespace

CommandResult run_stepwell(const std::vector<std::string>& arguments, const std::string& input) {
  return run(arguments, input, [](pid_t) {});
}

CommandResult run_stepwell_to_full_disk(const std::vector<std::string>& arguments) {
  return run(arguments, "", [](pid_t) {}, "/dev/full");
}

CommandResult interrupt_stepwell(const std::vector<std::string>& arguments, const std::string& file, int signal) {
  return run(arguments, "", [&](pid_t child) {
    siginfo_t info = {};
    do {
      waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    } while (info.si_pid == 0 && !std::filesystem::exists(file));  // still running, and not that far
    kill(child, signal);
  });
}

}  // namespace stepwell::cli
