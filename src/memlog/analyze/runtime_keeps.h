// Memory that the C and C++ runtimes keep to the end and never free, in every program.
#pragma once

#include <vector>

#include "analyze/suppressions.h"

namespace mtrace::analyze {

// The text of a suppressions file.
extern const char kRuntimeKeeps[];

std::vector<StackPattern> runtime_keeps();

}  // namespace mtrace::analyze
