// Which code a stack is, whatever build it is from.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/model.h"

namespace mtrace::analyze {

// Returns a hash over the functions of the frames, innermost first, without template arguments and
// parameters: equal in all builds in which the same functions call each other. A frame without a
// name counts as its module. The hash is FNV-1a, 64 bits; 0: there are no frames.
uint64_t function_id(const profile::Frames& frames, const std::vector<profile::Module>& modules);

}  // namespace mtrace::analyze
