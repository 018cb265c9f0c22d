// The summary of memlog run after the program has ended.
#pragma once

#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/reports/run_reports.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns, of one process, its peak and what is live at exit, each with the functions that hold
// most. Of several, largest peak first and shells last: the same for those with a peak near the
// largest, and a line about each program of the others. `processes`: at least one. `python_seen`:
// interpreters of Python take each object from malloc. Throws what reading reports throws.
std::string run_summary(std::vector<reports::RunProcess> processes, bool python_seen, Style style);

// Returns what is definitely lost in a process, with the functions that lost most. `lost`: a report
// of nothing else; gets names. `when`: "at exit". `blocks`: looked at.
std::string lost_summary(profile::Memlog& lost, const char* when, size_t blocks, Style style);

}  // namespace mtrace::text
