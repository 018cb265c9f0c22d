// Reads the header of an event log.
#pragma once

#include <string_view>

#include "events/event_log.h"

namespace mtrace::events {

// Reads the content of the first frame behind its mark. Keys that are not known say nothing. Throws
// DamagedChunk.
EventHeader read_header(std::string_view content);

}  // namespace mtrace::events
