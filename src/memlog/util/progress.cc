#include "util/progress.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

namespace mtrace::util {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kQuiet{1000};
constexpr milliseconds kStep{200};
constexpr char kErase[] = "\r\033[K";

// Past stdio, whose lock the other thread may hold.
void write_error(const char* text, size_t size) { (void)!::write(STDERR_FILENO, text, size); }

}  // namespace

Progress::Progress(size_t all) : all_(all) {
  if (::isatty(STDERR_FILENO) != 1) return;
  // Signals are for the command.
  sigset_t every;
  sigset_t before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void Progress::run() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (auto wait = kQuiet; !end_.wait_for(lock, wait, [this] { return ended_; }); wait = kStep) {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    char text[96];
    const int size = std::snprintf(text, sizeof text, "\r%zu of %zu report%s, %.0f s\033[K",
                                   done_.load(), all_, all_ == 1 ? "" : "s", time.count());
    write_error(text, static_cast<size_t>(size));
    shown = true;
  }
  if (shown) write_error(kErase, sizeof kErase - 1);
}

}  // namespace mtrace::util
