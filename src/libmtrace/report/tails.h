// What stacks have in common beyond their innermost frames, for one report: the ids of tails
// (ledger/stack_table.h), and which ones the report has to list because an entry ends with them.
// Async-signal-safe; for one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/ledger.h"
#include "report/scratch.h"

namespace mtrace::report {

// The id of a stack in entries. Thread-safe; async-signal-safe.
uint64_t stack_id(const ledger::StackRecord& stack);

// Without memory it knows no tails: entries have all of their frames.
class Tails {
 public:
  explicit Tails(const ledger::StackTable& stacks = ledger::g_ledger.stacks) : stacks_(&stacks) {}

  // For the tails that the table has now.
  void reserve(const ledger::StackTable& stacks);
  // Gives the memory back.
  void drop();

  // stack_id(), which looks up the modules of each tail once.
  uint64_t id_of(const ledger::StackRecord& stack);

  const ledger::StackTable& stacks() const { return *stacks_; }
  // The id of the frames from a tail on; 0: not known, so that no entry may end with it.
  uint64_t id(uint32_t tail) const { return tail < limit_ ? ids_[tail] : 0; }
  // Whether several stacks or tails have it as their next one.
  bool is_shared(uint32_t tail) const { return load(stacks_->tail_at(tail).children) > 1; }
  bool is_listed(uint32_t tail) const { return tail < limit_ && ends_[tail] != 0; }
  // An entry of `stack` ends with this tail, whose id is known, so it has to be listed.
  void end_with(uint32_t tail, uint32_t stack) { ends_[tail] = stack; }
  // Calls visit(tail, stack) for each tail to list, also for those that it ends a tail with itself.
  template <typename Visit>
  void each(Visit&& visit) const {
    // A tail comes after those that lie beyond it, so that their indices are lower.
    for (uint32_t tail = limit_; tail-- > 0;) {
      if (ends_[tail] != 0) visit(tail, ends_[tail]);
    }
  }

 private:
  const ledger::StackTable* stacks_;
  Scratch<uint64_t> ids_;   // by index; 0: not known
  Scratch<uint32_t> ends_;  // a stack that ends with it; 0: none
  uint32_t limit_ = 0;      // of indices
};

}  // namespace mtrace::report
