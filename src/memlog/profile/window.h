// A text that is read from its beginning to its end, of which only a part is in memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "profile/descriptor.h"

namespace mtrace::profile {

// Positions are bytes from the beginning of the text.
class Window {
 public:
  // All of `text`, which must live on.
  explicit Window(std::string_view text) : text_(text), size_(text.size()) {}
  // The file at `path`; "-" is the standard input. Throws FileError, as all of these.
  explicit Window(std::string path);

  // What is in memory from `position` on, until more() is called.
  std::string_view from(size_t position) const { return text_.substr(position - start_); }
  // Reads on. False at the end of the text. What stands before `keep` is forgotten.
  bool more(size_t keep);
  // To the beginning of a file that is not a pipe.
  void rewind();
  // Of the text, as far as that is known before its end; else 0.
  size_t size() const { return size_; }

 private:
  static constexpr size_t kStep = 1 << 20;

  std::string path_;
  Descriptor file_;  // none: the text is in memory
  std::string buffer_;
  std::string_view text_;  // what is in memory
  size_t start_ = 0;       // its position
  bool ended_ = false;
  size_t size_ = 0;
};

}  // namespace mtrace::profile
