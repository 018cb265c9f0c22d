// Folded stacks: "main;f;g 1234", a line each, for flame graphs.
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// Stacks of the same functions are one line; a ";" in a name is a ":". Sorted by name.
std::string folded(const Stacks& stacks);

}  // namespace mtrace::exporting
