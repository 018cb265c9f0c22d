// One line of a memlog at a time, and what is wrong with it.
#pragma once

#include <string>
#include <string_view>

#include "profile/model.h"

namespace mtrace::profile {

// A line is wrong: text says what. The reader adds file and line number.
struct LineError {
  std::string what;
};

// Texts as messages quote them: in double quotes, escaped, cut when long.
std::string quoted(std::string_view text);

// The unescaped form; throws LineError.
std::string unescape_or_throw(std::string_view text);

class ModuleTable;

// Control bytes, DEL and what is not UTF-8 must be escaped in a memlog; a tab separates fields.
void check_bytes(std::string_view line, bool tabs);

// "# key: value"; the value stays escaped.
Field read_meta(std::string_view line);

// "+63360\tblocks=+12\t...", with or without "@kind\t" before.
Entry read_entry(std::string_view line);

// Whether Entry has a member for the field; others stand in Entry::fields alone.
bool knows_field(std::string_view key);

// A frame line without its leading tab. The module it names is looked up in, or added to,
// `modules`.
Frame read_frame(std::string_view line, ModuleTable& modules);

}  // namespace mtrace::profile
