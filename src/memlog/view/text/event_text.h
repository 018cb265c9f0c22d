// An event as a line of text.
#pragma once

#include <string>

#include "model/events/event_log.h"
#include "view/json/stack.h"
#include "view/text/event_names.h"

namespace mtrace::text {

// Returns what the event is called: "malloc", "free", "realloc-begin", "mmap", "report".
const char* event_name(const events::Event& event, const events::EventLog& log);

// Returns "TIME TID NAME VALUES", without the newline. `names` knows the stack.
std::string event_line(const events::Event& event, const events::EventLog& log,
                       const EventNames& names);

// Returns the same as an object. Times are in nanoseconds since 1970.
json::Value event_json(const events::Event& event, const events::EventLog& log,
                       const EventNames& names);

}  // namespace mtrace::text
