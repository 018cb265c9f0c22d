// The summary of memlog run after the program has ended.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"
#include "view/reports/catalog.h"
#include "view/text/style.h"

namespace mtrace::text {

// A runtime of which a variable of the environment shows more.
struct Runtime {
  const char* option;  // of memlog run, which sets the variable
  const char* variable;
  const char* value;
  bool is_list;         // so what the variable has stays before the value
  const char* program;  // how the names of its programs begin
  const char* library;  // and those of objects that contain it
  const char* remark;   // what is not seen otherwise; the option's name follows
};
inline constexpr Runtime kRuntimes[] = {
    {"--python", "PYTHONMALLOC", "malloc", false, "python", "libpython",
     "Python's objects of up to 512 bytes are in its arenas and not counted one by one"},
    {"--js", "NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack", true, "node",
     "libnode", "JavaScript functions have no names"},
    {"--java", "JAVA_TOOL_OPTIONS",
     "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
     "-XX:+DumpPerfMapAtExit",
     true, "java", "libjvm", "Java methods have no names, and stacks may end in them"},
};

// Returns, of one process, its peak and what is live at exit, each with the functions that hold
// most. Of several, largest peak first and shells last: the same for those with a peak near the
// largest, and a line about each program of the others. `processes`: at least one. `seen`: runtimes
// whose variable was set. Throws what reading reports throws.
std::string run_summary(std::vector<reports::RunProcess> processes,
                        const std::vector<const Runtime*>& seen, Style style);

// Returns what is definitely lost in a process, with the functions that lost most. `lost`: a report
// of nothing else; gets names. `when`: "at exit". `blocks`: looked at.
std::string lost_summary(profile::Memlog& lost, const char* when, size_t blocks, Style style);

}  // namespace mtrace::text
