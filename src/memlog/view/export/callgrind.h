// Callgrind's profile format 1, for kcachegrind and callgrind_annotate.
#pragma once

#include <string>

#include "view/export/call_graph.h"

namespace mtrace::exporting {

std::string callgrind(const Stacks& stacks, const CallGraph& graph);

}  // namespace mtrace::exporting
