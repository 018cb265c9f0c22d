// Profiles for pprof at the paths where Go's services have theirs.
#pragma once

#include <string>

#include "analyze/responsible.h"
#include "profile/model.h"

namespace mtrace::serve {

// Returns profile.proto, compressed, of a memlog with names. `shown`: the sample type that pprof
// shows first, "inuse_space" or "alloc_space".
std::string heap_profile(profile::Memlog& memlog, const char* shown,
                         const analyze::Responsible& responsible);

}  // namespace mtrace::serve
