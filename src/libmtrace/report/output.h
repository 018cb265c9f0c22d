// Where reports go and what they are called: <prog>-<pid>-<seq>.memlog, or as a template says.
// A file never replaces another: a process that meets the name of an earlier one with the same
// pid goes on as <prog>-<pid>.2-<seq>. Async-signal-safe; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/file.h"

namespace mtrace::report {

inline constexpr size_t kPathCapacity = 4096;

// At start, after learn_host(). `option`: MTRACE_OUTPUT; `fallback`: $TMPDIR or nullptr.
void set_output(const char* option, const char* fallback);
const char* output_directory();

// Whether reports can be written where they should be, as things are now.
struct OutputCheck {
  long error;           // 0: they can; otherwise the negative errno
  const char* instead;  // where they go otherwise; nullptr: nowhere. Valid until the next check
};
OutputCheck check_output(uint64_t now);  // real time, for %t

// A report being written: to a file without a name, which leaves nothing behind when the process is
// killed; where the file system has none such, under a temporary name that begins with a dot. Where
// the calls that name a file may end the process (sys::is_trial_due()), under its final name.
struct OutputFile {
  int fd;
  sys::FileIdentity own;  // what `fd` is, unless the program has closed it
  uint32_t seq;
  unsigned place;                 // which of the directories took it
  uint64_t taken;                 // real time, for %t
  bool in_place;                  // it has its final name
  char temporary[kPathCapacity];  // "": it has none
  char path[kPathCapacity];       // final name, set by publish_output
};

// Opens such a file in the first directory, from number `place` (0, 1 or 2) on, that takes
// one. 0 or the negative errno of the first one asked.
long open_output(OutputFile* file, unsigned place, uint32_t seq, uint64_t taken);
// Gives the file its final name and closes it. 0 or a negative errno; then the file is gone, except
// one that was written in place.
// -EAGAIN: files without a name get none here; from now on they have one from the start.
long publish_output(OutputFile* file);
void discard_output(OutputFile* file);

// Counts names from 1.
void reset_output();

}  // namespace mtrace::report
