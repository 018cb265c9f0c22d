// Event logs beside reports.
#pragma once

#include <string>
#include <vector>

namespace mtrace::collect {

// Returns the paths of the event logs in a directory, by name; of a file, its own path if its name
// is that of an event log. None: the path cannot be read, or there are none.
std::vector<std::string> event_logs(const std::string& path);

}  // namespace mtrace::collect
