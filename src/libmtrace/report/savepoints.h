// Savepoints: what every stack held at a moment that the program chose, for later comparison. Heap
// only. At most 64 at once; each takes 16 bytes for each stack.
//
// Thread-safe: one operation at a time (base/turn.h). Not for signal handlers: they might wait.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::report {

inline constexpr unsigned kMostSavepoints = 64;
inline constexpr size_t kMostSavepointName = 63;  // bytes

// A handle identifies a savepoint until the savepoint is freed, and is never valid again. 0: none.
using SavepointHandle = uint64_t;

// Makes a savepoint of what is live now, without a name. 0: too many, or no memory.
SavepointHandle make_savepoint();
// The savepoint called `name`, 1 to 63 bytes. 0: there is none.
SavepointHandle find_savepoint(const char* name);
// Makes the savepoint called `name`, or updates it to what is live now. False: too many, or no
// memory; an existing savepoint is then unchanged.
bool save_savepoint(const char* name);
// Updates a savepoint to what is live now. False: no such savepoint, or no memory and no change.
bool update_savepoint(SavepointHandle handle);
// Sets a label for messages, cut to 63 bytes. False: no such savepoint, or it has a name.
bool label_savepoint(SavepointHandle handle, const char* label);
bool free_savepoint(SavepointHandle handle);

// A stack that holds more than at the savepoint.
struct Grown {
  uint32_t stack;  // index in the stack table
  int64_t bytes;
  int64_t blocks;
};

// The difference between what is live now and a savepoint.
struct Growth {
  static constexpr unsigned kListed = 5;
  int64_t bytes;  // all stacks together, with those that shrank
  int64_t blocks;
  uint32_t grown;                      // how many stacks grew
  unsigned listed;                     // how many of them are in `largest`
  Grown largest[kListed];              // most bytes first
  char label[kMostSavepointName + 1];  // name or label, "" without
};

// False: no savepoint has the handle.
bool compare_savepoint(SavepointHandle handle, Growth* growth);

// The tables have begun anew: all savepoints stand for that moment, at which nothing was live.
void empty_savepoints();
// Frees all savepoints, when counters start again.
void forget_savepoints();

// Writes what grew since a savepoint: with function names when the memlog tool is available, with
// module+offset otherwise. Not for signal handlers: waits for the tool. False: no memory, or `fd`
// did not take the whole text.
bool write_growth(const Growth& growth, int fd);

}  // namespace mtrace::report
