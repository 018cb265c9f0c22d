// A flame graph as SVG, with search and zoom where scripts may run.
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// Draws a box for each function, above its caller and as wide as the bytes (or blocks) of its
// stacks. In a comparison, or when something shrank, the width is the total movement, and the
// colour gives the direction: red grew, blue shrank. `base`: in a comparison, when the other side
// was taken. Throws std::runtime_error when a sum does not fit 64 bits.
std::string flame_graph(const Stacks& grew, const Stacks& shrank, const std::string& base);

}  // namespace mtrace::exporting
