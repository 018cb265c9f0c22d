// What the entries of a memlog must be: in order, each in agreement with itself, and all together
// with the header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "profile/model.h"

namespace mtrace::profile {

class EntryChecks {
 public:
  // The next entry; `header`: as far as it stands before the entries. Throws LineError.
  void add(const Entry& entry, const Header& header);

  // Of the heap's entries so far.
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
  uint64_t shares_ = 0;  // in the process's peak
};

}  // namespace mtrace::profile
