// The memlogs of a directory, by their headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrace::collect {

// A memlog that was not read whole: just enough to choose among many.
struct Listed {
  std::string path;
  std::string program;
  std::string started;
  std::string label;
  int64_t pid = 0;
  int64_t seq = 0;
};

// The files in `directory` that end in .memlog and begin like one, in no order; others are passed
// over. Throws FileError if the directory cannot be read.
std::vector<Listed> list_memlogs(const std::string& directory);

// The same of one file; nothing if it does not begin like a memlog or has a larger head than most.
std::optional<Listed> list_memlog(const std::string& path);

// The last report of the process that was started last.
std::optional<std::string> newest_report(const std::string& directory);

// Where reports go by default: MTRACE_OUTPUT's directory, else the current one.
std::string report_directory();

}  // namespace mtrace::collect
