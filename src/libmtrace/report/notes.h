// Notes of the program for its next report: at most 64, of at most 255 bytes, each with the time at
// which it was made. Further notes are dropped and counted.
//
// Notes wait among the tables, so that a ledger file has them when the process is killed.
//
// Lock-free: a note has a slot that its writer owns until the note is complete. A report leaves an
// incomplete note to the next report. add_note is thread-safe and async-signal-safe.
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

struct Note {
  uint64_t time;     // real time, nanoseconds
  const char* text;  // as the program gave it, not escaped
};
Note note_at(const PendingNotes& notes, unsigned number);
// Writes a line "# note: TIME TEXT" for each note.
void write_notes(Writer& out, const PendingNotes& notes);

uint64_t dropped_notes();

// Drops all notes and sets dropped_notes() to 0.
void reset_notes();

}  // namespace mtrace::report
