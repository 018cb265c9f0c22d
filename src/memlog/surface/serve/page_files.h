// The page of memlog serve: its files are in page/.
#pragma once

#include <string_view>

namespace mtrace::serve {

std::string_view page_html();
std::string_view page_style();
std::string_view page_script();
std::string_view page_text();     // numbers as text, and elements
std::string_view page_reports();  // of the views of reports
std::string_view page_courses();  // of what processes held over time
std::string_view page_actions();  // of the buttons

}  // namespace mtrace::serve
