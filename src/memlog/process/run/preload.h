// Prepares the run of a program under libmtrace.so.
#pragma once

#include "util/prelude.h"

namespace mtrace::process {

// Returns the path of a file of mtrace, named as below the directory of libraries: beside this
// program, or in a directory of libraries of the same prefix, of /usr/local or of /usr. Throws
// std::runtime_error that lists these places.
std::string find_installed(const std::string& name);
// The same of libmtrace.so.
std::string find_library();

// Returns this process's environment with the library at the front of LD_PRELOAD, and with
// `settings` ("MTRACE_DEPTH=20") in place of variables of the same names. Throws std::runtime_error
// when LD_PRELOAD cannot express the library's path.
std::vector<std::string> traced_environment(const std::string& library,
                                            const std::vector<std::string>& settings);

// Returns this process's environment with the library removed from LD_PRELOAD.
std::vector<std::string> untraced_environment();

// Returns the file that the command `name` would run, found as a shell finds it; empty: none.
std::string find_program(const std::string& name);

struct Uncovered {
  // Why the program will not load the library, as a sentence with subject and without period;
  // empty: no reason known.
  std::string why;
  bool foreign = false;  // the program must not run with the library in LD_PRELOAD
};
// Examines the program at `path`; for a script, its interpreter.
Uncovered uncovered(const std::string& path);

}  // namespace mtrace::process
