// speedscope's file format (https://www.speedscope.app/file-format-schema.json).
#pragma once

#include <string>

#include "view/export/stacks.h"

namespace mtrace::exporting {

// Returns a sampled profile whose weights are the stacks' numbers.
std::string speedscope(const Stacks& stacks);

}  // namespace mtrace::exporting
