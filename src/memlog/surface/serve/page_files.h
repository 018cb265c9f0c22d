// The page of memlog serve: its files are in page/.
#pragma once

#include <string_view>
#include <vector>

namespace mtrace::serve {

struct PageFile {
  const char* path;  // of the server: "/" or "/serve.css"
  const char* type;
  std::string_view text;
};
const std::vector<PageFile>& page_files();

// Returns the text of the file at a path. Empty: there is none.
std::string_view page_file(std::string_view path);

}  // namespace mtrace::serve
