// Text inside XML and HTML.
#pragma once

#include <string>

namespace mtrace::exporting {

// `text`, which is UTF-8 without control bytes, so that it is no markup, also as the value of an
// attribute. U+FFFE and U+FFFF, which no XML may have, become U+FFFD.
std::string xml(const std::string& text);

}  // namespace mtrace::exporting
