// The memory of a process as it was at one moment: of a copy of it, or in a core file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "process/inspect/mappings.h"
#include "process/inspect/snapshot_threads.h"
#include "process/inspect/target_objects.h"

namespace mtrace::process {

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

}  // namespace mtrace::process
