// What the blocks of a stack are, as the functions tell that allocate them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/profile/model.h"

namespace mtrace::analyze {

// Returns "std::vector<int>", "node of std::list<Session>", "Session (make_shared)", from the
// template arguments of the standard library's functions in the frames up to `last`, innermost
// first; empty: they do not tell.
std::string block_type(const profile::Frames& frames, size_t last);

// Returns what a block is that begins with an object of this class.
std::string class_type(const std::string& name);

}  // namespace mtrace::analyze
