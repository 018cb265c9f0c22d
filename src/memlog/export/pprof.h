// pprof's profile.proto, compressed as pprof wants it
// (https://github.com/google/pprof/blob/main/proto/profile.proto).
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// One sample type for each number that heap profiles have: alloc_objects, alloc_space,
// inuse_objects, inuse_space; and in front of them the one that was asked for, if it is another.
// `nanoseconds`: since 1970, when the report was taken. Throws std::runtime_error when it cannot be
// compressed.
std::string pprof(const Stacks& stacks, const analyze::Table& table, int64_t nanoseconds);

// `text` as gzip has it.
std::string gzip(const std::string& text);

}  // namespace mtrace::exporting
