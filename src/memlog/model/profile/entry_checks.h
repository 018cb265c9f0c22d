// Checks the entries of a memlog: their order, each entry in itself, and their sum against the
// header; then concludes what follows from all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/profile/model.h"

namespace mtrace::profile {

class EntryChecks {
 public:
  // Checks the next entry, and sets its standard errors. `header`: the meta lines before the
  // entries. Throws LineError.
  void add(Entry& entry, const Header& header);

  size_t entries() const { return entries_; }

  // After all entries. Throw LineError.
  void check_delta(const Header& header) const;
  void check_live(const Header& header) const;
  // Sets the standard errors of the header, and names its regions.
  void conclude(Header& header) const;

 private:
  void check_order(const Entry& entry);
  void check_sum(const Entry& entry);
  void check_peak(const Entry& entry, const Header& header);

  size_t entries_ = 0;
  std::string last_kind_;
  int64_t last_bytes_ = 0;
  Total sum_;            // of the heap entries
  double variance_ = 0;  // of `sum_`
  uint64_t shares_ = 0;  // of the process's peak: the sum over the entries
};

}  // namespace mtrace::profile
