// The memory of a process at one moment: a copy made by fork in a borrowed thread, which never
// runs. The process is stopped only while the copy is made.
#pragma once

#include <sys/types.h>

#include "process/inspect/mappings.h"
#include "process/inspect/memory_view.h"
#include "process/inspect/target_objects.h"
#include "util/prelude.h"

namespace mtrace::process {

class StoppedSnapshot;

// Takes snapshots of a process that has libmtrace.so, one after the other.
class Snapshots {
 public:
  // `stop_limit`: how long a process that cannot be copied may stay stopped instead; 0: not at all.
  Snapshots(pid_t pid, std::chrono::milliseconds timeout, std::chrono::milliseconds stop_limit);
  // Ends the last copy, or lets the process go on.
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // Ends the copy before, if any, and makes the next; or stops the process. Throws AttachError.
  const Snapshot& take();
  // The memory of the last snapshot has been read: a process that is stopped goes on. Returns how
  // long the process was stopped for the snapshot.
  std::chrono::microseconds release();
  // Throws AttachError when the process has been stopped for longer than it may be.
  void check_limit() const;

 private:
  void end_copy();
  void call(bool make);

  pid_t pid_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds stop_limit_;
  std::unique_ptr<StoppedSnapshot> stopped_;
  Snapshot now_;  // of a copy
};

// Reads the memory of a snapshot, and of the process what a fork does not copy. The mappings are
// those of both. Of the process itself no page is read that is not there: with userfaultfd the read
// would wait for a thread of the process.
class SnapshotMemory : public MemoryView {
 public:
  SnapshotMemory(pid_t process, pid_t copy);
  ~SnapshotMemory() override;

  void read(const std::vector<Range>& ranges, char* to) const override;
  int open_file(const Mapping& mapping) const override { return open_mapped(process_, mapping); }
  std::vector<Range> filled(Range range) const override { return parts_within(range, filled_); }
  // Of userfaultfd's mappings the pages that are not there, which only the program can tell; and
  // swapped pages of shared memory whose file memlog may not open.
  Missing missing() const override { return missing_; }

 private:
  void find_filled(const std::vector<Mapping>& map, const std::vector<Mapping>& of_process);
  void add_data_of_file(const Mapping& region, std::vector<Range>& found);
  void miss(const Mapping& region, uint64_t bytes);
  void read_slowly(Range range, char* to) const;
  bool is_uncopied(Range range) const;

  pid_t process_;
  pid_t copy_;
  int file_;
  mutable PageMap now_;          // of the process
  std::vector<Range> uncopied_;  // read from the process
  std::vector<Range> filled_;    // by address
  Missing missing_;
};

}  // namespace mtrace::process
