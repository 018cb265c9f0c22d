// Meta lines -> Header and the modules' details.
#pragma once

#include "profile/line.h"
#include "profile/model.h"
#include "profile/module_table.h"

namespace mtrace::profile {

// Where a meta line may stand.
enum class Section { kBefore, kAfter, kAnywhere };
// kAnywhere: a note, or a key that this program does not know.
Section section_of(const std::string& key);

// Takes one line over. Throws LineError: malformed, or a key that may stand only once is repeated.
void read_header_line(const Field& line, Header& header, ModuleTable& modules,
                      std::vector<std::string>& seen);

// The first required key that is not among `seen`, or nullptr.
const char* missing_key(const std::vector<std::string>& seen);

}  // namespace mtrace::profile
