// Checks the entries of a memlog: their order, each entry in itself, and their sum against the
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/profile/model.h"

namespace mtrace::profile {

class EntryChecks {
 public:
  // Checks the next entry. `header`: the meta lines read so far, before the entries. Throws
  // LineError.
  void add(const Entry& entry, const Header& header);

  // Sum of the heap entries so far.
  const Total& sum() const { return sum_; }
  size_t entries() const { return entries_; }

 private:
  void check_order(const Entry& entry);
  void check_sum(const Entry& entry);
  void check_peak(const Entry& entry, const Header& header);

  size_t entries_ = 0;
  std::string last_kind_;
  int64_t last_bytes_ = 0;
  Total sum_;
  uint64_t shares_ = 0;  // of the process's peak: the sum over the entries
};

}  // namespace mtrace::profile
