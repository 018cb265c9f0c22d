// The output of memlog expire: text for people, or a JSON object a line.
#pragma once

#include <cstdint>
#include <string>

#include "analyze/expiry.h"
#include "analyze/live_time.h"
#include "text/stack_names.h"

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
                   const live::LedgerStackState& stack, const StackNames& names) const;
  // `all` allocations failed since the watch began, `most` of them at one stack.
  std::string failed(uint64_t all, uint64_t most, const live::LedgerStackState& stack,
                     const StackNames& names) const;
  std::string closing(const std::string& why, size_t stacks) const;
  std::string statistics(const analyze::ExpiryStack& expiry, const ExpireStatistics& more,
                         const live::LedgerStackState& stack, const StackNames& names) const;

 private:
  bool json_;
  uint64_t after_ms_;
};

}  // namespace mtrace::text
