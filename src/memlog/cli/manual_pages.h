// The parts of the manual pages that the program's own tables know: see doc/man.
#pragma once

#include <string>

namespace mtrace::cli {

// `text` as roff shows it literally; also one that begins with a period.
std::string roff_text(const std::string& text);

// A section for each command, and one of the options that several have: of memlog(1).
std::string command_pages();

}  // namespace mtrace::cli
