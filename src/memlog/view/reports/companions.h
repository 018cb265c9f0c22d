// What lies beside reports: event logs and timelines of the same processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "model/profile/timeline.h"

namespace mtrace::reports {

// Event logs beside reports.

// Returns the paths of the event logs in a directory, by name; of a file, its own path if its name
// is that of an event log. None: the path cannot be read, or there are none.
std::vector<std::string> event_logs(const std::string& path);

// Finds the timeline that memlog run recorded of a process.

// Returns the timeline beside the report at `path` of the process in `header`, and where it is in
// `found` if given; nothing: there is none that can be read.
std::optional<profile::Timeline> timeline_beside(const std::string& path,
                                                 const profile::Header& header,
                                                 std::string* found = nullptr);

}  // namespace mtrace::reports
