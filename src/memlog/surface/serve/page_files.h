// The page of memlog serve: its files are in page/.
#pragma once

#include <string_view>

namespace mtrace::serve {

// Returns the file at a path of the page's, "/" or "/serve.css". Empty: there is none.
std::string_view page_file(std::string_view path);

}  // namespace mtrace::serve
