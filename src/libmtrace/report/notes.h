// What the program's calls of mtrace.h leave for its next report: notes, and counts of invalid
// uses. All of it is async-signal-safe; to add a note or count a use is thread-safe, too.
//
// There are at most 64 notes, of at most 255 bytes, each with the time at which it was made.
// Further notes are dropped and counted. Notes wait among the tables, so that a ledger file has
// them when the process is killed.
//
// Lock-free: a note has a slot that its writer owns until the note is complete. A report leaves an
// incomplete note to the next report.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/writer.h"
#include "format/ledger.h"

namespace mtrace::report {

inline constexpr unsigned kMostNotes = format::kLedgerNotes;
inline constexpr size_t kMostNote = format::kLedgerNoteText;  // bytes

// `cut`: the text is the beginning of a longer one. A text longer than kMostNote is cut here.
// False: dropped.
bool add_note(const char* text, bool cut);

// The notes for a report, oldest first. Notes stay in their slots until drop_notes(), so that a
// report that cannot be written loses none. Only for the thread that reports.
struct PendingNotes {
  unsigned count;
  uint8_t slots[kMostNotes];
};
PendingNotes pending_notes();
void drop_notes(const PendingNotes& notes);
const format::LedgerNote& note_at(const PendingNotes& notes, unsigned number);

// Writes a line "# note: TIME TEXT" for each note.
void write_notes(Writer& out, const PendingNotes& notes);

// Invalid uses of mtrace.h. Nothing is printed at the time: the next report has the counts.
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
// Writes "# KEY: NAME=COUNT ..." of the counts that are not 0; nothing when all are.
void write_counts(Writer& out, const char* key, const char* const* names, const uint64_t* counts,
                  unsigned size);

// Drops all notes, and sets the counts of dropped ones and of invalid uses to 0.
void reset_notes();

}  // namespace mtrace::report
