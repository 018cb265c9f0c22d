// A text read from beginning to end, with only a part in memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "profile/input.h"

namespace mtrace::profile {

// Positions are bytes from the beginning of the text.
class Window {
 public:
  // Reads `text`, which must outlive this.
  explicit Window(std::string_view text) : text_(text), size_(text.size()) {}
  // Reads the file at `path`, see Input. All functions throw FileError.
  explicit Window(const std::string& path);

  // The file; empty: the text is in memory.
  std::string path() const { return input_ ? input_->path() : ""; }

  // Returns what is in memory from `position` on. Valid until more() is called.
  std::string_view from(size_t position) const { return text_.substr(position - start_); }
  // Reads more of the text; may drop what is before `keep`. Returns false at the end of the text.
  // Throws DamagedCompression, and keeps what was read before the damage.
  bool more(size_t keep);
  // Goes back to the beginning. Not for a pipe.
  void rewind();
  // Size of the text in bytes, about, if it is known before the end; else 0.
  size_t size() const { return size_; }

 private:
  static constexpr size_t kStep = 1 << 20;

  std::optional<Input> input_;  // none: the text is in memory
  std::string buffer_;
  std::string_view text_;  // what is in memory
  size_t start_ = 0;       // position of its first byte
  bool ended_ = false;
  size_t size_ = 0;
};

}  // namespace mtrace::profile
