// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace stepwell::train {

// Whether a child process that runs `work` (on one thread) is killed by SIGKILL in it.
template <class Work>
bool is_killed_in(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace stepwell::train
