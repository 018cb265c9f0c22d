// What is known of one stack, from one entry or from many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/model.h"

namespace mtrace::analyze {

// Milliseconds from allocation to free, of all that was freed; frees whose report does not time
// them are not among these.
struct Lifetimes {
  uint64_t frees = 0;
  uint64_t least = 0;
  uint64_t most = 0;
  unsigned __int128 sum = 0;  // of 64 bits times 64 bits

  uint64_t mean() const { return frees == 0 ? 0 : static_cast<uint64_t>(sum / frees); }
};

struct Row {
  std::string kind;  // empty: heap
  int64_t bytes = 0;
  double variance = 0;  // of a sampled change, bytes squared; of several reports at most that
  int64_t blocks = 0;
  // Bytes the stack holds now. Absent for rows of several reports: a report leaves out the stacks
  // that did not change, so the sum over those it lists says little.
  std::optional<uint64_t> live;
  double live_variance = 0;
  // Of a comparison: the bytes on the other side, which `bytes` are more or less than.
  std::optional<int64_t> before;
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t frees = 0;
  uint64_t freed_bytes = 0;
  uint64_t temporary = 0;
  uint64_t short_lived = 0;
  Lifetimes lifetimes;
  uint64_t age = 0;    // milliseconds, of the oldest live block
  uint64_t slack = 0;  // bytes
  uint64_t peak = 0;   // bytes
  uint64_t stack = 0;
  profile::Frames frames;  // modules: Table::modules()
  bool cut = false;
  // Fields that this program does not know; merged rows have none.
  std::vector<profile::Field> further;
};

// Standard errors in bytes, rounded; 0: exact.
uint64_t error_of(const Row& row);
uint64_t live_error_of(const Row& row);

// The stack alone, with no numbers.
Row stack_of(const profile::Entry& entry);
// `times`: the report tells lifetimes, so that one it leaves out is 0.
Row row_of(const profile::Entry& entry, bool times);

// What becomes of live, age, slack and peak, which are states and not changes.
enum class Combine {
  kStacks,  // other stacks, or those of other processes: they add up, and the oldest block counts
  kLater,   // a later report of the same process: it is the one that counts
};

// Adds the numbers of `more`. Returns false when a sum does not fit 64
// bits.
[[nodiscard]] bool add(Row& sum, const Row& more, Combine how);

enum class Order {
  kBytes,
  kBlocks,
  kLive,
  kAllocations,
  kTemporary,
  kLifetime,  // the mean
  kSlack,
  kPeak,
  kAge,
  kStack,
};

// What the row has of the quantity that the order goes by; 0 for kStack.
int64_t quantity(const Row& row, Order order);

// The orders that leave out the rows that have nothing of their quantity.
bool leaves_out_zero(Order order);

// Rows of one kind together, heap first; the largest first, by stack id within equals. kStack: by
// stack id alone.
void sort(std::vector<Row>& rows, Order order);

// Removes the rows that have nothing of the order's quantity and, unless the order leaves out all
// of those, have changed in neither bytes nor blocks. Returns how many.
size_t drop_empty(std::vector<Row>& rows, Order order);

// The sum of the heap rows' positive changes. Saturates.
int64_t gross_growth(const std::vector<Row>& rows);

}  // namespace mtrace::analyze
