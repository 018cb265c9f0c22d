#include "profile/window.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "profile/error.h"

namespace mtrace::profile {

Window::Window(std::string path)
    : path_(std::move(path)),
      file_(path_ == "-" ? 0 : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_.get() < 0) throw FileError("cannot open " + path_, errno);
  struct stat state = {};
  if (::fstat(file_.get(), &state) == 0 && S_ISREG(state.st_mode)) {
    size_ = static_cast<size_t>(state.st_size);
  }
}

bool Window::more(size_t keep) {
  if (file_.get() < 0 || ended_) return false;
  buffer_.erase(0, keep - start_);
  start_ = keep;
  const size_t held = buffer_.size();
  // A line that does not fit takes twice the room each time, so that it is not moved too often.
  const size_t step = std::max(kStep, held);
  buffer_.resize(held + step);
  ssize_t got = 0;
  do {
    got = ::read(file_.get(), buffer_.data() + held, step);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(held + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  text_ = buffer_;
  if (got < 0) throw FileError("cannot read " + path_, errno);
  ended_ = got == 0;
  return !ended_;
}

void Window::rewind() {
  if (::lseek(file_.get(), 0, SEEK_SET) != 0)
    throw FileError("cannot read " + path_ + " twice", errno);
  buffer_.clear();
  text_ = buffer_;
  start_ = 0;
  ended_ = false;
}

}  // namespace mtrace::profile
