// Parts of the manual pages generated from the program's tables; see doc/man.
#pragma once

#include <string>

namespace mtrace::cli {

// Escapes `text` so that roff shows it literally, even if it begins with a period.
std::string roff_text(const std::string& text);

// Returns the sections of memlog(1): one for each command, and one for the options that several
// commands share.
std::string command_pages();

}  // namespace mtrace::cli
