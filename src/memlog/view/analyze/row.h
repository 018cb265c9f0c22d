// The numbers of one stack, from one entry or several.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::analyze {

// Milliseconds from allocation to free, for all freed blocks. Leaves out frees in reports without
// lifetimes.
struct Lifetimes {
  uint64_t frees = 0;
  uint64_t least = 0;
  uint64_t most = 0;
  unsigned __int128 sum = 0;  // sum of products of two 64-bit numbers

  uint64_t mean() const { return frees == 0 ? 0 : static_cast<uint64_t>(sum / frees); }
};

// What is common to the stacks of a group. Texts are as in the memlog, unescaped.
struct Group {
  std::string name;    // the function, file, line, module or type
  std::string source;  // where it is: line, file or module; empty: nothing more is known
  size_t stacks = 0;
  bool untyped = false;  // grouped by type: the name is kInFunction and a function
};

struct Numbers {
  int64_t bytes = 0;
  double variance = 0;  // of a sampled change, bytes squared; over several reports an upper bound
  int64_t blocks = 0;
  // Live bytes. Absent in rows of several reports, unless each is one entry (Rows::kEntries): a
  // report leaves out stacks that did not change, so the sum over the listed ones says little.
  std::optional<uint64_t> live;
  double live_variance = 0;
  // In a comparison: the bytes on the other side. `bytes` is the difference from it.
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
};

struct Row : Numbers {
  std::string kind;  // empty: heap
  // The function that was called, or several separated by commas; empty: not known.
  profile::Name call;
  uint64_t stack = 0;
  profile::Frames frames;  // name modules in Table::modules()
  bool cut = false;
  size_t depth = 0;  // frames with addresses at which the library cut the stack; 0: it did not
  // Fields unknown to this program. Merged rows have none, or only those of form_of().
  std::vector<profile::Field> further;
  // Of several stacks with one place responsible for them; null: one stack. The row of a group has
  // no frames and no id.
  std::shared_ptr<const Group> group;
};

// Returns the standard error in bytes, rounded; 0: exact.
uint64_t error_of(const Row& row);
uint64_t live_error_of(const Row& row);

// Returns a row with the stack and no numbers.
Row stack_of(const profile::Entry& entry);
// Returns those of an entry's `fields` that this program does not know.
std::vector<profile::Field> further_of(std::string_view fields);
// Returns those by which entries of one stack, kind and call differ: how a mapping was asked for,
// which stack had freed the block, and whether the bytes are a least.
std::vector<profile::Field> form_of(std::string_view fields);
// Returns the row of an entry. `times`: the report has lifetimes, so an absent one is 0.
Row row_of(const profile::Entry& entry, bool times);

// How to combine live, age, slack and peak, which are states and not changes.
enum class Combine {
  kStacks,  // of other stacks or processes: add, and keep the oldest block's age
  kLater,   // from a later report of the same process: replace
};

// Adds the numbers of `more` to `sum`; of rows also what was called. Throw std::runtime_error when
// a sum does not fit 64 bits.
void add(Numbers& sum, const Numbers& more, Combine how);
void add(Row& sum, const Row& more, Combine how);

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
  kSize,    // of a block, on average
  kFailed,  // of entries @failed: how many allocations failed
};

// Returns the average size of the blocks that the row's numbers are about, in bytes: of those that
// were allocated or, if none was, that make the change. 0: unknown.
uint64_t block_size(const Row& row);

// Returns the row's value of the order's quantity; 0 for kStack.
int64_t quantity(const Row& row, Order order);

// Returns whether the order leaves out rows whose quantity is 0.
bool leaves_out_zero(Order order);

// Sorts rows by kind, heap first; within a kind by quantity, largest first, then by stack id.
// kStack: only by stack id.
void sort(std::vector<Row>& rows, Order order);

// Removes the rows whose quantity is 0. Unless the order leaves out all of those, keeps the ones
// that changed in bytes or blocks. Returns the number removed.
size_t drop_empty(std::vector<Row>& rows, Order order);

// Returns the sum of the heap rows' positive changes. Saturates.
int64_t gross_growth(const std::vector<Row>& rows);

// Adds; what does not fit 64 bits becomes the nearest that does.
inline void add_saturating(int64_t& sum, int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = more > 0 ? INT64_MAX : INT64_MIN;
}

// Adds. Throws std::runtime_error when the sum does not fit 64 bits.
template <typename Number>
void add_to(Number& sum, Number more) {
  if (__builtin_add_overflow(sum, more, &sum)) {
    throw std::runtime_error("a sum does not fit 64 bits");
  }
}
inline void add_to(profile::Total& sum, const profile::Total& more) {
  add_to(sum.bytes, more.bytes);
  add_to(sum.blocks, more.blocks);
}

// Returns `a` less `b`. Throws as add_to().
template <typename Number>
Number difference(Number a, Number b) {
  Number out;
  if (__builtin_sub_overflow(a, b, &out)) {
    throw std::runtime_error("a difference does not fit 64 bits");
  }
  return out;
}

}  // namespace mtrace::analyze
