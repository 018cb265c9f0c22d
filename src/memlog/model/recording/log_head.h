// The first frame of an event log: what it says of the process.
#pragma once

#include <string>

#include "format/event_ring.h"

namespace mtrace::events {

// Returns the content of the frame.
std::string log_head(const format::EventRingHeader& header);

}  // namespace mtrace::events
