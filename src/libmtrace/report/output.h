// Directories and names of reports: <prog>-<pid>-<seq>.memlog, or as a template says. A report
// never replaces a file: a process that finds the name of an earlier process with the same pid goes
// on as <prog>-<pid>.2-<seq>. Async-signal-safe; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/file.h"

namespace mtrace::report {

inline constexpr size_t kPathCapacity = 4096;
inline constexpr size_t kNameLimit = 200;  // bytes of a program's name that go into a file name

// At start, after learn_host(). `option`: MTRACE_OUTPUT; `fallback`: $TMPDIR or nullptr.
void set_output(const char* option, const char* fallback);
const char* output_directory();

// Returns 0 if reports can be written to the first directory now, otherwise the negative errno.
// `now`: real time, for %t. `instead`: receives the first directory that works; "": none.
long check_output(uint64_t now, char (&instead)[kPathCapacity]);

// A report being written: to a file without a name, so that nothing is left behind when the process
// is killed; where no such files exist, under a temporary name that begins with a dot; where the
// calls that name a file may end the process (base::may_rename_files()), under its final name.
struct OutputFile {
  int fd;
  base::FileIdentity own;  // identity of the file: the program may have closed `fd`
  uint32_t seq;
  unsigned place;                 // number of its directory
  uint64_t taken;                 // real time, for %t
  bool in_place;                  // it has its final name
  char temporary[kPathCapacity];  // "": it has none
  char path[kPathCapacity];       // final name, set by publish_output
};

// Opens a file in the first directory, from number `place` (0, 1 or 2) on, where that succeeds.
// Returns 0, or the negative errno of the first directory tried.
long open_output(OutputFile* file, unsigned place, uint32_t seq, uint64_t taken);
// Gives the file its final name and closes it. Returns 0, or a negative errno, and then the file is
// gone. -EAGAIN: a file without a name cannot get one here; later files have a temporary one.
long publish_output(OutputFile* file);
void discard_output(OutputFile* file);

// Names start again without a number after the pid.
void reset_output();

}  // namespace mtrace::report
