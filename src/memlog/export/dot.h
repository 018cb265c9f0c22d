// A call graph for graphviz.
#pragma once

#include <string>

#include "export/call_graph.h"

namespace mtrace::exporting {

// Functions and calls with at least `percent` of the whole.
std::string dot(const Stacks& stacks, const CallGraph& graph, double percent);

}  // namespace mtrace::exporting
