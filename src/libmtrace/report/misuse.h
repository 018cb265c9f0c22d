// Counts the program's invalid uses of mtrace.h. Nothing is printed at the time: the next report
// has the counts. Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"

namespace mtrace::report {

enum class Misuse : uint32_t {
  kKind,        // a kind that is not 1 to 31 letters, digits and "-"
  kKinds,       // more kinds than there can be
  kSize,        // a size below 0 or above that of an address space
  kRelease,     // of an id that is not recorded
  kDuplicate,   // record of an id that is recorded already
  kNote,        // a note without text, or one that was cut
  kName,        // a savepoint's name that is null, empty or too long; a label that is null
  kSavepoint,   // a name or handle that is no savepoint (any more)
  kSavepoints,  // more savepoints than there can be
};
inline constexpr unsigned kMisuses = 9;

void count_misuse(Misuse cause);
// Writes "# misuse: kind=1 size=2", the causes that occurred; nothing when none did.
void write_misuse(Writer& out);
// Sets all counts to 0.
void reset_misuse();

}  // namespace mtrace::report
