// What memlog run says of a program that has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "text/style.h"

namespace mtrace::text {

// Peak, what is live at exit, and the largest stacks of it, from `files` of one process. Throws
// what reading them throws.
std::string run_summary(const std::vector<std::string>& files, const Style& style);

}  // namespace mtrace::text
