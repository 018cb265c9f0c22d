// Standard errors of the numbers in a sampled report: from the recorded blocks that are live now,
// and the variance of those that were live at the previous report. doc/internals/tables.md has the
// argument.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/ledger.h"

namespace mtrace::report {

struct Error {
  uint64_t change;  // bytes: the standard error of the difference to the previous report
  uint64_t live;    // bytes: the standard error of what is live
};

class Errors {
 public:
  Errors() = default;
  ~Errors();
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

  // Reads all live blocks; stacks up to index `last` get an error of their own. Without sampling
  // all errors are 0. False: no memory.
  bool find(const ledger::Ledger& ledger, uint32_t last);

  Error of_stack(const ledger::Ledger& ledger, uint32_t index, uint32_t ordinal) const;
  // Errors of the sums over all stacks.
  const Error& total() const { return total_; }

  // Stores a stack's variance as that of the previous report. Only for stacks whose blocks have
  // changed: the others keep theirs. False: no memory; the stack's next error is too large.
  bool remember(ledger::Ledger& ledger, uint32_t index, uint32_t ordinal) const;
  void remember_total(ledger::Ledger& ledger, uint64_t ticks) const;

 private:
  struct Sums {
    ledger::Variance now;
    ledger::Variance both;  // of the blocks that were live at the previous report, too
  };
  static Error error_of(const Sums& sums, ledger::Variance before);

  Sums* sums_ = nullptr;  // by index of the stack
  size_t bytes_ = 0;
  Sums all_ = {};
  Error total_ = {};
};

}  // namespace mtrace::report
