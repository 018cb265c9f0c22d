// A frame as text.
#pragma once

#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/table.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns the function; if it is unknown, the module's name with the offset.
std::string function_text(const analyze::Table& table, const profile::Frame& frame,
                          const Style& style);

// Returns "f ... 6 frames": a run of frames that one names.
std::string run_text(const analyze::Table& table, const profile::Frame& frame, size_t frames,
                     const Style& style);

// Returns a line for each frame, or for what is folded into one, and one where the stack is cut.
std::vector<std::string> stack_lines(const analyze::Table& table, const analyze::Row& row,
                                     const Style& style);

// Returns the functions in one line, "f < g < h"; folded, without what the first one calls.
std::string stack_line(const analyze::Table& table, const analyze::Row& row, const Style& style);

// Returns the responsible function of a stack and its callers, as far as they tell a reader
// something; at most `most` names, and at least one.
std::vector<std::string> caller_names(const analyze::Table& table, const analyze::Row& row,
                                      size_t most, const Style& style);

// Returns the name of a group and where it is.
std::string group_text(const analyze::Group& group, const Style& style);

// Returns function_text() and the source line; if that is unknown, the module's name.
std::string frame_text(const analyze::Table& table, const profile::Frame& frame,
                       const Style& style);

}  // namespace mtrace::text
