// A frame as text.
#pragma once

#include <string>

#include "analyze/table.h"
#include "profile/model.h"
#include "text/style.h"

namespace mtrace::text {

// Returns the function; if it is unknown, the module's name with the offset.
std::string function_text(const analyze::Table& table, const profile::Frame& frame,
                          const Style& style);

// Returns function_text() and the source line; if that is unknown, the module's name.
std::string frame_text(const analyze::Table& table, const profile::Frame& frame,
                       const Style& style);

}  // namespace mtrace::text
