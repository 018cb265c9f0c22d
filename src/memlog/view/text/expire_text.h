// The output of memlog expire: text for people, or a JSON object a line.
#pragma once

#include <cstdint>
#include <string>

#include "view/heap/expiry.h"
#include "view/heap/live_time.h"
#include "view/text/stack_names.h"

namespace mtrace::text {

// Facts about a stack for the closing statistics, besides its expired blocks.
struct ExpireStatistics {
  uint64_t allocations = 0;  // since the watch began
  analyze::LiveTime lived;   // of the blocks freed since
  uint64_t oldest = 0;       // milliseconds: age of the oldest live expired block; 0: there is none
};

class ExpireText {
 public:
  ExpireText(bool json, uint64_t after_ms) : json_(json), after_ms_(after_ms) {}

  std::string beginning(const std::string& name, uint32_t pid) const;
  // `at`: milliseconds since the watch began.
  std::string news(uint64_t at, const analyze::ExpiryNews& news,
                   const ledger::LedgerStackState& stack, const StackNames& names) const;
  // Likewise of a function. Text only.
  std::string news(uint64_t at, const analyze::ExpiryGroupNews& news,
                   const StackNames& names) const;
  // `all` allocations failed since the watch began, `most` of them at one stack.
  std::string failed(uint64_t all, uint64_t most, const ledger::LedgerStackState& stack,
                     const StackNames& names) const;
  // `whole`: of each look's ledger::each_block().
  std::string closing(const std::string& why, size_t stacks, bool whole,
                      const ledger::LedgerState& state) const;
  // Of a function: `more` is that of its stacks together. Text only.
  std::string statistics(const analyze::ExpiryGroup& group, const ExpireStatistics& more,
                         const StackNames& names) const;
  std::string statistics(const analyze::ExpiryStack& expiry, const ExpireStatistics& more,
                         const ledger::LedgerStackState& stack, const StackNames& names) const;

 private:
  std::string news_line(uint64_t at, const std::string& whose, uint64_t expired, uint64_t freed,
                        const analyze::ExpiryStack& all) const;
  static std::string numbers(const analyze::ExpiryStack& expiry, const ExpireStatistics& more,
                             const std::string& where);

  bool json_;
  uint64_t after_ms_;
};

}  // namespace mtrace::text
