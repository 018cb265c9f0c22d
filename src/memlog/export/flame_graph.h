// A flame graph as SVG, which can be searched and zoomed where scripts may run.
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// A box for each function, above its caller's and as wide as the bytes (or blocks) of its stacks.
// Of a comparison (`base`: when that which it is with was taken), or when something shrank, the
// width is all that moved, and the colour says which way: red what grew, blue what shrank. Throws
// std::runtime_error when a sum does not fit 64 bits.
std::string flame_graph(const Stacks& grew, const Stacks& shrank, const std::string& base);

}  // namespace mtrace::exporting
