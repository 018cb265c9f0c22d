// Whether the dynamic loader will put a preloaded library into a program.
#pragma once

#include <string>

namespace mtrace::symbolize {

// What keeps the loader from it, as a sentence without subject or period: "is statically linked".
// Empty: nothing, or the file is no ELF file.
std::string preload_obstacle(const std::string& path);

}  // namespace mtrace::symbolize
