// JSON for gprof2dot (gprof2dot -f json).
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

std::string gprof2dot(const Stacks& stacks, const analyze::Table& table);

}  // namespace mtrace::exporting
