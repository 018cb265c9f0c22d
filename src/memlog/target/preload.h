// What it takes to run a program under libmtrace.so.
#pragma once

#include <string>
#include <vector>

namespace mtrace::target {

// Path of libmtrace.so: beside this program, in the lib directory of the same prefix, or where it
// is installed. Throws std::runtime_error that names the places.
std::string find_library();

// This process's environment with the library in LD_PRELOAD, in front of what stands there, and
// with `settings` ("MTRACE_DEPTH=20") in place of variables of the same name. Throws
// std::runtime_error when the library's path cannot stand in LD_PRELOAD.
std::vector<std::string> traced_environment(const std::string& library,
                                            const std::vector<std::string>& settings);

// This process's environment without the library in LD_PRELOAD.
std::vector<std::string> untraced_environment();

// The file that running `name` would run, found as a shell does; empty: none.
std::string find_program(const std::string& name);

struct Uncovered {
  // Why the library will not be in a program, as a sentence with subject and without period; empty:
  // nothing is known to be in the way.
  std::string why;
  bool foreign = false;  // the program must not be run with the library in LD_PRELOAD
};
// The program at `path`. A script stands for its interpreter.
Uncovered uncovered(const std::string& path);

}  // namespace mtrace::target
