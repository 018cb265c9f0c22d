// The threads of a process at one moment.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "model/symbols/elf_file.h"
#include "process/inspect/mappings.h"
#include "process/inspect/target_objects.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::process {

using SnapshotThread = symbols::ThreadRegisters;

struct Snapshot {
  pid_t copy = 0;       // the process whose memory it is
  int64_t copy_id = 0;  // its id in the process's own namespace
  std::vector<SnapshotThread> threads;
  // What the library keeps in each thread, from its thread pointer on.
  int64_t thread_state = 0;
  uint64_t thread_state_size = 0;
  std::chrono::microseconds stopped{0};
};

// The memory of a process as it was at one moment: of a copy of it, or in a core file.

// Whether the path is that of a device, which holds no pointers. Anonymous shared memory is not
// one, though the kernel calls it /dev/zero.
bool is_device(const std::string& path);

class MemoryView {
 public:
  virtual ~MemoryView() = default;

  // Copies the ranges one after the other to `to`; what cannot be read, or must not be touched,
  // becomes zero.
  virtual void read(const std::vector<Range>& ranges, char* to) const = 0;
  // Opens a file that is mapped. Returns -1 when that is impossible.
  virtual int open_file(const Mapping& mapping) const = 0;

  // The parts of the range that may hold words other than zero, by address.
  virtual std::vector<Range> filled(Range range) const { return {range}; }
  // Memory that may hold pointers of which nothing is known; what it points to may look lost.
  struct Missing {
    uint64_t bytes = 0;
    std::string path;  // of the first; empty: anonymous
  };
  virtual Missing missing() const = 0;

  // Where pointers to the heap may stand that are no blocks themselves: data of modules, thread
  // stacks from their stack pointers on, thread-local storage, anonymous and shared mappings;
  // of these what is filled.
  // `heaps`: also the heaps of the C library, for blocks from before tracing began. `own`: what the
  // library has mapped for itself, which is none.
  std::vector<Range> roots(const Snapshot& snapshot, bool heaps,
                           const std::vector<Range>& own) const;
  // The variables of glibc.
  std::vector<Range> libc_variables() const;
  // By address.
  const std::vector<Mapping>& map() const { return map_; }
  // Whether the address is in read-only memory of a file, as virtual tables are.
  bool is_constant(uint64_t address) const;

 protected:
  MemoryView() = default;
  MemoryView(const MemoryView&) = delete;
  MemoryView& operator=(const MemoryView&) = delete;
  // read() must work by then.
  void take_map(std::vector<Mapping> map);

 private:
  Range all_of(const Mapping& first) const;

  std::vector<Mapping> map_;
  std::vector<Range> constant_;
  Range library_;
};

// Which pages of another process hold something (/proc/PID/pagemap), and reading only these.
class PageMap {
 public:
  enum class Pages {
    kResident,  // in memory
    kFilled,    // or swapped out
  };
  // kScan: the kernel goes through the page tables (PAGEMAP_SCAN, since Linux 6.7), so the time
  // grows with what is resident. kRead: memlog reads 8 bytes for each page of the mapping.
  enum class Way { kScan, kRead };

  // memlog must be allowed to trace the process. The way is changed where the kernel lacks it.
  explicit PageMap(pid_t pid, Way way = Way::kScan);

  Way way() const { return way_; }

  // Adds the parts of the mapping (Detail::kSmaps) that have such pages, by address. Pages of zeros
  // that were only read are left out; with kRead only where the mapping has no others. Returns
  // false with errno.
  bool find(const Mapping& mapping, Pages pages, std::vector<Range>& found);
  // Copies memory of the process if all of it is filled. Other memory is not touched: that would
  // make pages of it, or wait for the thread that supplies them (userfaultfd).
  bool read_filled(uint64_t address, void* to, size_t size);

 private:
  bool scan(Range range, Pages pages, std::vector<Range>& found) const;
  bool read(Range range, Pages pages, std::vector<Range>& found) const;

  pid_t pid_;
  util::Descriptor file_;
  Way way_;
};

// Adds a part to those found so far; one that follows the last directly becomes a part of it.
void append_range(std::vector<Range>& ranges, Range range);

// The parts of `range` that lie in `ranges`, which are sorted by address and do not overlap.
std::vector<Range> parts_within(Range range, const std::vector<Range>& ranges);

// The process that a core file was made of: its memory, its threads, its ledger.

// A core file lacks what a command needs of it. The text is "FILE: what is missing, what to do".
using symbols::CoreError;

class CoreMemory : public MemoryView {
 public:
  // `sysroot` is put before the paths of mapped files; empty: nothing. Throws CoreError, FileError.
  CoreMemory(const std::string& path, const std::string& sysroot);

  // Of memory that is not in the core file, mapped files are read in its place.
  void read(const std::vector<Range>& ranges, char* to) const override;
  int open_file(const Mapping& mapping) const override;

  const std::string& name() const { return name_; }
  uint64_t written() const { return written_; }  // nanoseconds since 1970
  // The threads, and what the ledger says of them.
  Snapshot snapshot(const format::LedgerHeader& header) const;
  // The ledger as the core file has it, else the file at `path`; empty: where the process had it.
  // Throws CoreError, LedgerError, FileError.
  std::unique_ptr<ledger::LedgerFile> ledger(const std::string& path) const;

  // Whether all of the bytes are known: in the core file, or in a mapped file that can be read.
  bool has(Range range) const;
  Missing missing() const override;

 private:
  struct Segment {
    symbols::CoreSegment in_core;
    int file = -1;             // mapped there; -1: none, or not readable
    uint64_t file_offset = 0;  // of its beginning
    std::string path;          // of the mapped file
  };
  void take_segment(const symbols::CoreSegment& segment, const symbols::CoreMappedFile* file);
  void take_segments();
  void mark_heap(std::vector<Mapping>& map) const;
  bool is_heap(Range range) const;
  void read_one(Range range, char* to) const;
  int dumped_ledger(const std::string& path) const;

  std::string name_;
  std::string sysroot_;
  util::Descriptor file_;
  uint64_t written_ = 0;
  symbols::CoreContents core_;
  std::map<std::string, util::Descriptor> files_;  // mapped ones by path; -1: not readable
  std::vector<Segment> segments_;                  // by address; each in one mapped file at most
};

}  // namespace mtrace::process
