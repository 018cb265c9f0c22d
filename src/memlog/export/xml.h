// Escapes text for XML and HTML.
#pragma once

#include <string>

namespace mtrace::exporting {

// Escapes `text` (UTF-8 without control bytes), also for use as the value of an attribute. Replaces
// U+FFFE and U+FFFF, which XML forbids, by U+FFFD.
std::string xml(const std::string& text);

}  // namespace mtrace::exporting
