// Reads a memlog line by line.
#pragma once

#include <string>
#include <string_view>

#include "model/profile/model.h"

namespace mtrace::profile {

// A line is malformed; the text says why. The reader adds the file and the line number.
struct LineError {
  std::string what;
};

// Quotes a text for a message: in double quotes, escaped, shortened when long.
std::string message_quoted(std::string_view text);

// Returns the unescaped text. Throws LineError.
std::string unescape_or_throw(std::string_view text);

class ModuleTable;

// Whether a memlog begins with this line, in a version that can be read.
bool is_first_line(std::string_view line);

// Checks that no byte is left unescaped that must not be: control bytes, DEL, malformed UTF-8.
// `tabs`: tabs are allowed, as separators of fields. Throws LineError.
void check_bytes(std::string_view line, bool tabs);

// Reads "# key: value". The value stays escaped.
Field read_meta(std::string_view line);

// Reads "+63360\tblocks=+12\t...", with or without "@kind\t" in front.
Entry read_entry(std::string_view line);

// Returns Entry::fields for the other members and `further`: fields without a member, each with a
// tab before it.
std::string fields_of(const Entry& entry, const std::string& further);
// Throws LineError when a number is larger than the format allows.
void check_numbers(const Entry& entry);

// Returns whether Entry has a member for the field. Other fields are kept only in Entry::fields.
bool knows_field(std::string_view key);

// Reads a frame line without its leading tab. Finds its module in `modules`, or adds it.
Frame read_frame(std::string_view line, ModuleTable& modules);

}  // namespace mtrace::profile
