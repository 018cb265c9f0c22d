// Threads that do the same at once, and children of fork.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace mtrace {

// Runs body(0) to body(count - 1), each in a thread of its own, from one moment on to their ends.
template <typename Body>
void run_threads(unsigned count, const Body& body) {
  std::atomic<unsigned> ready = 0;
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&ready, &body, count, t] {
      ++ready;
      while (ready < count) std::this_thread::yield();
      body(t);
    });
  }
}

// The exit status, body's answer, of a child of fork; that of waitpid where a signal ends it.
template <typename Body>
int status_in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

}  // namespace mtrace
