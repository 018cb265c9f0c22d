// Profiles for pprof at the paths where Go's services have theirs, and for google-pprof at those of
// gperftools.
#pragma once

#include <string>

#include "model/profile/model.h"
#include "view/analyze/responsible.h"

namespace mtrace::serve {

// Returns profile.proto, compressed, of a memlog with names. `shown`: the sample type that pprof
// shows first, "inuse_space" or "alloc_space".
std::string heap_profile(profile::Memlog& memlog, const char* shown,
                         const analyze::Responsible& responsible);

// Returns what google-pprof reads at /pprof/heap of a memlog with names.
std::string gperftools_profile(profile::Memlog& memlog);

// Returns what it reads at /pprof/symbol. `asked`: addresses in hexadecimal, with "+" between them.
// Leaves out those that no stack has.
std::string gperftools_symbols(profile::Memlog& memlog, const std::string& asked);

}  // namespace mtrace::serve
