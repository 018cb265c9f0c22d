// memlog attach and detach: the steps inside the process, given its mappings.
#pragma once

#include <sys/types.h>

#include "process/inspect/target_objects.h"
#include "process/ptrace/snapshot.h"
#include "util/prelude.h"

namespace mtrace::process {

// Addresses of the functions that the process is to call.
struct LoadCalls {
  uint64_t dlopen = 0;
  uint64_t dlsym = 0;
  uint64_t dlerror = 0;
  uint64_t memfd_create = 0;
  uint64_t close = 0;
};

// Facts about a process, gathered while it runs.
struct ProcessImage {
  pid_t pid = 0;
  std::vector<Object> objects;
  std::string own_allocator;       // the program, where malloc is a part of it; empty: a library's
  std::string mappings;            // executable_mappings(), taken before the objects were read
  uint64_t r_debug = 0;            // address from which the loader's list was read
  std::vector<ListedObject> list;  // the loader's list, from before the objects were read
  Range cave;                      // executable memory that no thread runs
  std::string cave_bytes;          // the file's bytes there, BorrowedThread::code_size() of them
  LoadCalls calls;
  uint64_t attach = 0;  // in a library that is already loaded; 0: none is
  uint64_t detach = 0;
  uint64_t restart = 0;       // kRestartSymbol in that library
  uint64_t report = 0;        // mtrace_report() in that library
  uint64_t report_label = 0;  // mtrace_report_label() in that library
  uint64_t twin = 0;          // kTwinSymbol in that library
};

struct Done {
  uint64_t patches = 0;
  std::chrono::microseconds stopped{0};  // how long the process was stopped
};

// Thrown when the process has loaded or unloaded something since its image was taken.
struct Outdated {};

// Loads the library at `path` (a path in this program's file system) into the process and redirects
// the process's calls to it. `options`: see format/attach_protocol.h. Throws AttachError; the
// process is then unchanged, except that an inactive library may stay loaded.
Done attach(const ProcessImage& target, const std::string& path, const std::string& options,
            std::chrono::milliseconds timeout);

// Undoes attach(). Throws AttachError.
Done detach(const ProcessImage& target, std::chrono::milliseconds timeout);

// Makes a loaded library write a report, in a thread of the process. Throws AttachError, or
// CallFailed when the library could not write it.
void report(const ProcessImage& target, const std::string& label,
            std::chrono::milliseconds timeout);

// Ends the wait for the copy `gone` (0: none), which has been killed, and with `make` makes a copy
// of the process that memlog holds stopped. Throws AttachError.
Snapshot snapshot(const ProcessImage& target, int64_t gone, bool make,
                  std::chrono::milliseconds timeout);

// Keeps a process stopped for the lifetime of the object: a snapshot whose memory is the process's
// own. Should memlog be killed, the process goes on.
class StoppedSnapshot {
 public:
  // Throws AttachError.
  StoppedSnapshot(ProcessImage target, std::chrono::milliseconds timeout);
  ~StoppedSnapshot();

  const Snapshot& snapshot() const { return snapshot_; }
  std::chrono::microseconds stopped() const;  // until now

 private:
  struct Held;
  std::unique_ptr<Held> held_;
  Snapshot snapshot_;
};

// Gathers the facts needed to attach to a process, and selects the processes.

inline constexpr long kAttachTimeout = 10;  // seconds, the default

// Takes the image of a process. Throws AttachError when attaching can never work for it.
process::ProcessImage process_image(pid_t pid);

// Runs `step` with the image of a process; takes a new image and runs it again when the process has
// loaded something meanwhile. `step` gets the remaining time. Throws AttachError.
void with_image(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<void(const process::ProcessImage&, std::chrono::milliseconds)>& step);
// The same of a process that was not started with the library. Throws Preloaded for another.
Done with_target(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<Done(const process::ProcessImage&, std::chrono::milliseconds)>& step);

inline double in_milliseconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace mtrace::process
