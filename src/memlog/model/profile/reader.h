// Reads a memlog (format/memlog.h, doc/memlog-format.md). Rejects any file that is not exactly a
// complete memlog, so that later steps can trust its numbers.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/profile/model.h"
#include "util/input.h"

namespace mtrace::profile {

class KnownStacks;

// Reads the memlog in `text`. `name` is for messages. `known`: shared by the reads of all reports
// of a process; modules of the earlier reports may then be among this one's, not described. Throws
// FormatError at the first malformed line.
Memlog read(const std::string& name, std::string_view text, KnownStacks* known = nullptr);

// Like read(), for the file at `path`; "-" is the standard input. Also throws FileError.
Memlog read_path(const std::string& path, KnownStacks* known = nullptr);

// Where a file ended that was cut short, and what had been read by then.
struct CutShort {
  size_t line = 0;
  std::string why;
  size_t stacks = 0;  // heap; so is `sum`
  Total sum;
};

// Like read_path(), but for a file that ends too early returns the entries before the end, and
// stores where that was in `cut`. Leaves out the last entry if its frames may be incomplete. Still
// throws FormatError when the file ends before its entries begin, or anything else is wrong with
// it.
Memlog read_partly(const std::string& path, std::optional<CutShort>& cut);

// Reads a large memlog in pieces of a few thousand entries, to save memory.

// Gets a memlog with some of the entries; may take them.
using Piece = std::function<void(Memlog&)>;

// By id. One that an entry ends with may not have come yet.
using Tails = absl::flat_hash_map<uint64_t, std::shared_ptr<Frames>>;

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
  util::Window window_;
  Memlog head_;
  Tails tails_;
};

}  // namespace mtrace::profile
