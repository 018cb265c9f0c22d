// No event log beside the tables: notes go to no other place.
#include "events/logging.h"

namespace mtrace::events {

constinit bool g_logging = false;
void noted(const char*) {}

}  // namespace mtrace::events
