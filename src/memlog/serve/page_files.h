// The page of memlog serve: its files are in page/.
#pragma once

#include <string_view>

namespace mtrace::serve {

std::string_view page_html();
std::string_view page_style();
std::string_view page_script();

}  // namespace mtrace::serve
