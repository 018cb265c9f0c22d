// Tells whether the dynamic loader will load a preloaded library into a program.
#pragma once

#include <string>

namespace mtrace::symbolize {

struct Obstacle {
  // What prevents it, as a sentence without subject or period: "is statically linked". Empty:
  // nothing does, or the file is no ELF file.
  std::string why;
  bool foreign = false;  // the program's loader would take the library for its own, and fail or
                         // complain
};
Obstacle preload_obstacle(const std::string& path);

}  // namespace mtrace::symbolize
