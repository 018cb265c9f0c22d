// Finds the timeline that memlog run recorded of a process.
#pragma once

#include <optional>
#include <string>

#include "profile/model.h"
#include "profile/timeline.h"

namespace mtrace::collect {

// Returns the timeline beside the report at `path` of the process in `header`, and where it is in
// `found` if given; nothing: there is none that can be read.
std::optional<profile::Timeline> timeline_beside(const std::string& path,
                                                 const profile::Header& header,
                                                 std::string* found = nullptr);

}  // namespace mtrace::collect
