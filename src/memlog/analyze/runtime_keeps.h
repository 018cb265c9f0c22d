// What the runtimes of C and C++ keep until the end and never free, whatever the program does.
#pragma once

#include <vector>

#include "analyze/suppressions.h"

namespace mtrace::analyze {

// A suppressions file.
extern const char kRuntimeKeeps[];

std::vector<StackPattern> runtime_keeps();

}  // namespace mtrace::analyze
