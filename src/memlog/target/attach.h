// memlog attach and detach: the steps in the process, once it is known what it has mapped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "target/loader_list.h"
#include "target/object.h"

namespace mtrace::target {

// Where the functions are that the process is to call.
struct LoadCalls {
  uint64_t dlopen = 0;
  uint64_t dlsym = 0;
  uint64_t dlerror = 0;
  uint64_t memfd_create = 0;
  uint64_t close = 0;
};

// What is known of a process while it runs.
struct ProcessImage {
  pid_t pid = 0;
  std::vector<Object> objects;
  std::string mappings;            // executable_mappings() before the objects were read
  uint64_t r_debug = 0;            // where the loader's list was read,
  std::vector<ListedObject> list;  // and what it said before the objects were read
  Range cave;                      // executable memory that nobody runs
  std::string cave_bytes;          // what the file has there, BorrowedThread::code_size() bytes
  LoadCalls calls;
  uint64_t attach = 0;  // of a library that is loaded already; 0: none is
  uint64_t detach = 0;
  uint64_t restart = 0;       // kRestartSymbol of it
  uint64_t report = 0;        // mtrace_report() of it
  uint64_t report_label = 0;  // mtrace_report_label()
};

struct Done {
  uint64_t patches = 0;
  std::chrono::microseconds stopped{0};  // how long the process stood still
};

// Thrown when the process has loaded or unloaded something since it was looked at.
struct Outdated {};

// Loads the library at `path`, of this program's file system, into the process and has its calls
// led there. `options`: format/attach.h. Throws AttachError, and then the process is as it was, or
// has an idle library more.
Done attach(const ProcessImage& target, const std::string& path, const std::string& options,
            std::chrono::milliseconds timeout);

// Undoes that.
Done detach(const ProcessImage& target, std::chrono::milliseconds timeout);

// Has a library that is there write a report, in a thread of the process. Throws AttachError;
// CallFailed where the library could not.
void report(const ProcessImage& target, const std::string& label,
            std::chrono::milliseconds timeout);

}  // namespace mtrace::target
