// Reads a memlog line by line.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"

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

// Reads meta lines into the Header and the modules.

// Where a meta line may be: before the entries, after them, or both.
enum class Section { kBefore, kAfter, kAnywhere };
// Returns kAnywhere for a note and for a key that this program does not know.
Section section_of(const std::string& key);

// Reads one line into `header` or `modules`. Throws LineError when it is malformed, or repeats a
// key that may be used only once.
void read_header_line(const Field& line, Header& header, ModuleTable& modules,
                      std::vector<std::string>& seen);

// Returns the first required key that is missing from `seen`, or nullptr.
const char* missing_key(const std::vector<std::string>& seen);

// Reads the values of meta lines. Each function takes the whole line, so that its LineError can
// name the key.

// Throws LineError: the value is not what `expected` says.
[[noreturn]] void bad_value(const Field& line, const char* expected);

// Reads a number without sign, from `minimum` (0 or 1) to `maximum`.
int64_t number_value(const Field& line, int64_t minimum, int64_t maximum);
// Reads "2026-11-20T20:15:31.123456Z".
std::string time_value(const Field& line);
// Reads "N bytes M blocks", both with a sign or both without.
Total total_value(const Field& line, bool with_sign);
// Reads "N bytes".
uint64_t bytes_value(const Field& line);
// Reads "N bytes TIME".
Peak peak_value(const Field& line);
// Reads "NAME N bytes M blocks".
KindTotal kind_value(const Field& line);
// Reads "resident=N size=N NAME".
RegionUse region_value(const Field& line);
// Reads "name=N name=N ...". Names are keys or, with `any_name`, any text without spaces and "=";
// names stay escaped.
std::vector<Field> counts_value(const Field& line, bool any_name);
// Reads "N.NNN" followed by `unit`, which begins with a space. Returns only the number.
std::string decimal_value(const Field& line, std::string_view unit, const char* expected);

}  // namespace mtrace::profile
