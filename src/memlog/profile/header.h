// Reads meta lines into the Header and the modules.
#pragma once

#include "profile/line.h"
#include "profile/model.h"
#include "profile/module_table.h"

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

}  // namespace mtrace::profile
