// Reads a memlog (format/memlog.h, doc/memlog-format.md). Rejects any file that is not exactly a
// complete memlog, so that later steps can trust its numbers.
#pragma once

#include <string>
#include <string_view>

#include "profile/model.h"

namespace mtrace::profile {

class KnownStacks;

// Reads the memlog in `text`. `name` is for messages. `known`: shared by the reads of all reports
// of a process; modules of the earlier reports may then be among this one's, not described. Throws
// FormatError at the first malformed line.
Memlog read(const std::string& name, std::string_view text, KnownStacks* known = nullptr);

// Like read(), for the file at `path`; "-" is the standard input. Also throws FileError.
Memlog read_path(const std::string& path, KnownStacks* known = nullptr);

}  // namespace mtrace::profile
