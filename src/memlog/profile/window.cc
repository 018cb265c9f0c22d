#include "profile/window.h"

#include <algorithm>

namespace mtrace::profile {

Window::Window(const std::string& path) : input_(std::in_place, path) {
  size_ = input_->expected_size();
}

bool Window::more(size_t keep) {
  if (!input_ || ended_) return false;
  buffer_.erase(0, keep - start_);
  start_ = keep;
  const size_t held = buffer_.size();
  // A line that does not fit takes twice the room each time, so that it is not moved too often.
  const size_t step = std::max(kStep, held);
  buffer_.resize(held + step);
  size_t got = 0;
  try {
    got = input_->read(buffer_.data() + held, step);
  } catch (...) {
    buffer_.resize(held);
    text_ = buffer_;
    throw;
  }
  buffer_.resize(held + got);
  text_ = buffer_;
  ended_ = got == 0;
  return !ended_;
}

void Window::rewind() {
  input_->rewind();
  buffer_.clear();
  text_ = buffer_;
  start_ = 0;
  ended_ = false;
}

}  // namespace mtrace::profile
