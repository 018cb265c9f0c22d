// A frame in words.
#pragma once

#include <string>

#include "analyze/table.h"
#include "profile/model.h"
#include "text/style.h"

namespace mtrace::text {

// The function, or the module's name with the offset where it is not known.
std::string function_text(const analyze::Table& table, const profile::Frame& frame,
                          const Style& style);

// The same and the source line, or the module's name.
std::string frame_text(const analyze::Table& table, const profile::Frame& frame,
                       const Style& style);

}  // namespace mtrace::text
