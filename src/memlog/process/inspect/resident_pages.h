// Which pages of another process hold something (/proc/PID/pagemap), and reading only these.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "process/inspect/mappings.h"
#include "process/inspect/target_objects.h"
#include "util/file.h"

namespace mtrace::process {

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

}  // namespace mtrace::process
