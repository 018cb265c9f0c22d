#include "process/run/sent_logs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

#include "process/inspect/process.h"
#include "util/error.h"

namespace mtrace::process {
namespace {

bool is_running(pid_t pid) {
  const ProcessHandle process(pid);
  return process.valid() && !process.wait_end(0);
}

}  // namespace

SentLogs::SentLogs(const std::string& other) : directory_("memlog-run", other) {
  if (::mkfifo(path().c_str(), 0600) == 0) {
    pipe_ = util::Descriptor(::open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  if (pipe_.get() < 0) throw util::FileError(path(), errno);
}

void SentLogs::settle(const std::function<void()>& waits) {
  constexpr int kLook = 100;  // milliseconds
  for (int looks = 0;; ++looks) {
    bool pending = false;
    for (Log& log : logs_) {
      if (log.ended || log.sender == 0) continue;
      log.gone = !is_running(log.sender);  // who ends by itself has told before
      pending |= !log.gone && !is_running(log.pid);
    }
    const bool told = read_lines();
    if (looks > 0 && (!pending || !told)) return;
    if (looks == 1000 / kLook) waits();
    pollfd one = {pipe_.get(), POLLIN, 0};
    if (looks > 0) ::poll(&one, 1, kLook);
  }
}

// False: no sender is left.
bool SentLogs::read_lines() {
  char buffer[4096];
  ssize_t got;
  while ((got = ::read(pipe_.get(), buffer, sizeof buffer)) > 0) {
    read_.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = read_.find('\n')) != std::string::npos; read_.erase(0, end + 1)) {
      take(read_.substr(0, end));
    }
  }
  return got < 0;
}

void SentLogs::take(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  Log log;
  words >> what;
  if (std::string pids; what == "begin" && words >> log.pid >> log.sender >> pids >> log.url) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/ns/pid", error);
    if (pids != own.string()) log.sender = 0;
    logs_.push_back(log);
  }
  if (what != "end" || !(words >> log.url >> log.missing >> log.lost)) return;
  std::getline(words >> std::ws, log.why);
  for (Log& one : logs_) {
    if (one.url != log.url) continue;
    one.ended = true;
    one.missing = log.missing;
    one.lost = log.lost;
    one.why = log.why;
  }
}

}  // namespace mtrace::process
