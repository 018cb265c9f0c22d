#include "util/pager.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "util/columns.h"

namespace mtrace::util {

Pager::Pager(FILE* out, const Screen& screen, std::string command)
    : out_(out), screen_(screen), command_(std::move(command)) {
  cookie_io_functions_t functions = {};
  functions.write = take;
  stream_ = ::fopencookie(this, "w", functions);
  if (stream_ == nullptr) throw std::runtime_error("cannot make a stream");
}

Pager::~Pager() {
  std::fclose(stream_);
  if (process_ == 0) {
    std::fwrite(text_.data(), 1, text_.size(), out_);
    return;
  }
  ::close(pipe_);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

ssize_t Pager::take(void* self, const char* text, size_t size) {
  auto& pager = *static_cast<Pager*>(self);
  pager.text_.append(text, size);
  if (pager.process_ == 0 && !pager.fits()) pager.start();
  if (pager.process_ != 0) pager.pass_on();
  return static_cast<ssize_t>(size);
}

// A line is left for the shell's prompt.
bool Pager::fits() const {
  size_t rows = 1;
  for (size_t at = 0; at < text_.size() && rows <= screen_.rows;) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    const size_t columns = columns_of(std::string_view(text_).substr(at, end - at));
    rows += std::max<size_t>(1, (columns + screen_.columns - 1) / screen_.columns);
    at = end + 1;
  }
  return rows <= screen_.rows;
}

void Pager::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  // As git has it: leave at once what fits, show colours, leave the screen as it is.
  ::setenv("LESS", "FRX", 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  const char* arguments[] = {"sh", "-c", command_.c_str(), nullptr};
  const int error = ::posix_spawn(&process_, "/bin/sh", &actions, nullptr,
                                  const_cast<char**>(arguments), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[0]);
  pipe_ = ends[1];
  if (error != 0) throw std::runtime_error("cannot run /bin/sh");
  // Ctrl-C is for the pager, which goes on, and one that is closed early ends nothing here.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
}

void Pager::pass_on() {
  std::string_view left = text_;
  while (!left.empty() && !closed_) {
    const ssize_t written = ::write(pipe_, left.data(), left.size());
    if (written > 0) left.remove_prefix(static_cast<size_t>(written));
    closed_ = written < 0 && errno != EINTR;
  }
  text_.clear();
}

}  // namespace mtrace::util
