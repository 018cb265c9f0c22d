// Savepoints: what every stack held at a moment of the program's choice, to compare with later.
// Heap only. At most 64 at once; each takes 16 bytes a stack.
//
// Thread-safe: one operation at a time, signals blocked, others wait (at most ten seconds). What
// waits for another thread is not for signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::report {

inline constexpr unsigned kMostSavepoints = 64;
inline constexpr size_t kMostSavepointName = 63;  // bytes

// A handle names a savepoint until that is freed; one that was freed is never valid again. 0: none.
using SavepointHandle = uint64_t;

// A savepoint of now, without a name. 0: there are too many, or no memory.
SavepointHandle make_savepoint();
// The savepoint called `name`, 1 to 63 bytes. 0: there is none.
SavepointHandle find_savepoint(const char* name);
// Makes the savepoint called `name`, or makes it say what is live now. False: there are too many,
// or no memory; one that was there is then as it was.
bool save_savepoint(const char* name);
// Makes it say what is live now. False: no savepoint, or no memory, and then it is as it was.
bool update_savepoint(SavepointHandle handle);
// What messages call it: at most 63 bytes are kept. Not a name to find it by.
bool label_savepoint(SavepointHandle handle, const char* label);
bool free_savepoint(SavepointHandle handle);

// A stack that holds more than at the savepoint.
struct Grown {
  uint32_t stack;  // index in the stack table
  int64_t bytes;
  int64_t blocks;
};

// How what is live now differs from a savepoint.
struct Growth {
  static constexpr unsigned kListed = 5;
  int64_t bytes;  // all stacks together, with those that shrank
  int64_t blocks;
  uint32_t grown;                      // how many stacks grew
  unsigned listed;                     // how many of them are in `largest`
  Grown largest[kListed];              // most bytes first
  char label[kMostSavepointName + 1];  // name or label, "" without
};

// False: no savepoint of that handle.
bool compare_savepoint(SavepointHandle handle, Growth* growth);

// In the child of a fork, alone: the parent's savepoints stay, as they are its own heap's.
void repair_savepoints();
// Where counters or stack table begin anew: all are gone.
void forget_savepoints();

}  // namespace mtrace::report
