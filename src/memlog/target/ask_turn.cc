#include "target/ask_turn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace mtrace::target {

AskTurn::AskTurn(pid_t pid, std::chrono::steady_clock::time_point deadline)
    : directory_(::open(fmt::format("/proc/{}", pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  for (int pause = 1;; pause = std::min(pause * 2, 20)) {
    held_ = directory_ < 0 || ::flock(directory_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (held_ || std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

AskTurn::~AskTurn() {
  if (directory_ >= 0) ::close(directory_);
}

}  // namespace mtrace::target
