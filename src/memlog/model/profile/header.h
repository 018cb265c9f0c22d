// Reads meta lines into the Header and the modules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/profile/line.h"
#include "model/profile/model.h"

namespace mtrace::profile {

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
