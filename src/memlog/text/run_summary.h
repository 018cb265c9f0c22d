// The summary of memlog run after the program has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "text/style.h"

namespace mtrace::text {

// Returns the peak, what is live at exit, and the functions that hold most of it, from the reports
// `files` of one process. Throws what reading them throws.
std::string run_summary(const std::vector<std::string>& files, Style style);

}  // namespace mtrace::text
