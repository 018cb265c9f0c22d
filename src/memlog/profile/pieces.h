// A memlog that is not held in memory: a few thousand entries at a time are.
#pragma once

#include <functional>
#include <string>

#include "profile/model.h"
#include "profile/window.h"

namespace mtrace::profile {

// Takes the entries, or some, from a memlog that is otherwise whole.
using Piece = std::function<void(Memlog&)>;

class Pieces {
 public:
  // Reads the regular file at `path` to its end, as strictly as read_path(). Throws FormatError,
  // FileError.
  explicit Pieces(const std::string& path);

  // All but the entries.
  const Memlog& head() const { return head_; }
  // Reads it again. `action` gets the entries in the order of the file; at least once, though there
  // be none. Throws likewise when the file was changed meanwhile, and what `action` throws.
  void each(const Piece& action);

 private:
  std::string path_;
  Window window_;
  Memlog head_;
};

}  // namespace mtrace::profile
