// Reads a memlog (format/memlog.h, doc/memlog-format.md). Strict: a file that is not exactly a
// complete memlog is refused, so that no later step has to doubt its numbers.
#pragma once

#include <string>
#include <string_view>

#include "profile/model.h"

namespace mtrace::profile {

class KnownStacks;

// The memlog that `text` holds; `name` stands in messages. Throws FormatError at the first line
// that is wrong. `known`: reports of the same process were read with it before; modules that only
// these named may then be among this one's, not described.
Memlog read(const std::string& name, std::string_view text, KnownStacks* known = nullptr);

// Likewise for the file at `path`, "-" for the standard input. Also throws FileError.
Memlog read_path(const std::string& path, KnownStacks* known = nullptr);

}  // namespace mtrace::profile
