// Massif's output, for ms_print and massif-visualizer.
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// An empty snapshot at the start and one with the tree of all stacks, at `milliseconds`. Places
// below a hundredth of the whole are one.
std::string massif(const Stacks& stacks, uint64_t milliseconds);

}  // namespace mtrace::exporting
