// What the program wants to have said in its next report: at most 64 notes of at most 255 bytes,
// each with the time at which it was made. One more is dropped and counted.
//
// They wait among the tables, so that a ledger in a file has them when the process is killed.
//
// Lock-free: a note has a slot that its writer owns until it is whole. One that a signal or a
// report finds half-way is left to the next report. add_note is thread-safe and async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/writer.h"
#include "format/ledger.h"

namespace mtrace::report {

inline constexpr unsigned kMostNotes = format::kLedgerNotes;
inline constexpr size_t kMostNote = format::kLedgerNoteText;  // bytes

// `cut`: the text is the beginning of a longer one. What is longer than kMostNote is cut here.
// False: dropped.
bool add_note(const char* text, bool cut);

// The notes that a report takes up, oldest first. They stay where they are until drop_notes(), so
// that a report which cannot be written loses none. Only the one thread that reports may ask.
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
// A line "# note: TIME TEXT" for each.
void write_notes(Writer& out, const PendingNotes& notes);

uint64_t dropped_notes();

// Drops the notes.
void reset_notes();

}  // namespace mtrace::report
