// The functions that pprof leaves out of its views: allocators and what own code calls to get
// there.
#pragma once

#include <string>

#include "analyze/responsible.h"
#include "analyze/table.h"

namespace mtrace::exporting {

// Returns the drop_frames of a profile.proto: a regular expression (RE2) for whole names. pprof
// removes a frame that matches and all that it calls. So a function is in it only if no stack of
// `table` has own code inside it. Empty: there are none.
std::string dropped_frames(const analyze::Table& table, const analyze::Responsible& responsible);

}  // namespace mtrace::exporting
