// A call graph for Graphviz.
#pragma once

#include <string>

#include "export/call_graph.h"

namespace mtrace::exporting {

// Returns the functions and calls that are at least `percent` of the whole.
std::string dot(const Stacks& stacks, const CallGraph& graph, double percent);

}  // namespace mtrace::exporting
