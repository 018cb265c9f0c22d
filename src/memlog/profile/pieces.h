// Reads a large memlog in pieces of a few thousand entries, to save memory.
#pragma once

#include <functional>
#include <string>

#include "profile/model.h"
#include "profile/window.h"

namespace mtrace::profile {

// Gets a memlog with some of the entries; may take them.
using Piece = std::function<void(Memlog&)>;

class Pieces {
 public:
  // Reads the regular file at `path` to its end and checks it as strictly as read_path() does.
  // Throws FormatError, FileError.
  explicit Pieces(const std::string& path);

  // The memlog without its entries.
  const Memlog& head() const { return head_; }
  // Reads the file again and gives `action` the entries, in file order. Calls it at least once,
  // also when there are no entries. Throws FormatError or FileError, also when the file has changed
  // since, and whatever `action` throws.
  void each(const Piece& action);

 private:
  Window window_;
  Memlog head_;
};

}  // namespace mtrace::profile
