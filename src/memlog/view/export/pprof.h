// pprof's profile.proto, gzip-compressed
// (https://github.com/google/pprof/blob/main/proto/profile.proto).
#pragma once

#include <string>

#include "view/export/stacks.h"

namespace mtrace::exporting {

// Returns a profile with the usual sample types of heap profiles (alloc_objects, alloc_space,
// inuse_objects, inuse_space), preceded by the requested one if it is another. `nanoseconds`: when
// the report was taken, since 1970. `responsible`: tells pprof which frames to leave out of its
// views; null: none. `shown`: the sample type that pprof shows first, unless another was requested.
// Throws std::runtime_error when compression fails.
std::string pprof(const Stacks& stacks, const analyze::Table& table, int64_t nanoseconds,
                  const analyze::Responsible* responsible, const char* shown = "inuse_space");

// Compresses `text` in gzip format.
std::string gzip(const std::string& text);

}  // namespace mtrace::exporting
