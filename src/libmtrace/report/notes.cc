#include "report/notes.h"

#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/process.h"
#include "base/table_file.h"
#include "events/logging.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "ledger/ledger.h"

namespace mtrace::report {
namespace {

using format::kNoteFree;
using format::kNoteWhole;
using format::kNoteWriting;
using Slot = format::LedgerNote;

constexpr auto& g_slots = ledger::g_ledger.notes;
uint32_t g_next = 0;

constexpr const char* kMisuseNames[] = {"kind", "kinds", "size",      "release",   "duplicate",
                                        "note", "name",  "savepoint", "savepoints"};
static_assert(sizeof kMisuseNames / sizeof *kMisuseNames == kMisuses);

uint64_t g_misuses[kMisuses];

}  // namespace

bool add_note(const char* text, bool cut) {
  const uint32_t order = fetch_add(g_next, 1u);
  for (unsigned i = 0; i < kMostNotes; ++i) {
    Slot& slot = g_slots[(order + i) % kMostNotes];
    uint32_t expected = kNoteFree;
    // The loser goes on to the next slot: this one has a note in it, or soon will.
    if (load(slot.state) != kNoteFree ||
        !compare_exchange<uint32_t>(slot.state, expected, kNoteWriting)) {
      continue;
    }
    slot.order = order;
    slot.time = base::real_time();
    const size_t length = strnlen(text, kMostNote + 1);
    cut |= length > kMostNote;
    constexpr size_t kDots = 3;
    const size_t kept = !cut ? length : length < kMostNote - kDots ? length : kMostNote - kDots;
    memcpy(slot.text, text, kept);
    memcpy(slot.text + kept, "...", cut ? kDots : 0);
    slot.text[kept + (cut ? kDots : 0)] = '\0';
    if (events::logs()) events::noted(slot.text);
    store_release<uint32_t>(slot.state, kNoteWhole);
    return true;
  }
  fetch_add<uint64_t>(base::g_table_header->lost_notes, 1);
  return false;
}

PendingNotes pending_notes() {
  PendingNotes notes = {};
  for (unsigned i = 0; i < kMostNotes; ++i) {
    if (load_acquire(g_slots[i].state) == kNoteWhole) notes.slots[notes.count++] = i;
  }
  // The thread that came first may have read the clock second.
  std::sort(notes.slots, notes.slots + notes.count, [](uint8_t a, uint8_t b) {
    if (g_slots[a].time != g_slots[b].time) return g_slots[a].time < g_slots[b].time;
    return static_cast<int32_t>(g_slots[a].order - g_slots[b].order) < 0;
  });
  return notes;
}

void drop_notes(const PendingNotes& notes) {
  for (unsigned i = 0; i < notes.count; ++i) {
    store_release<uint32_t>(g_slots[notes.slots[i]].state, kNoteFree);
  }
}

const Slot& note_at(const PendingNotes& notes, unsigned number) {
  return g_slots[notes.slots[number]];
}

void write_notes(Writer& out, const PendingNotes& notes) {
  for (unsigned i = 0; i < notes.count; ++i) {
    const Slot& note = note_at(notes, i);
    out.meta(format::kKeyNote).time(note.time).put(' ').escaped(note.text).put('\n');
  }
}

void count_misuse(Misuse cause) { fetch_add<uint64_t>(g_misuses[static_cast<uint32_t>(cause)], 1); }

void write_misuse(Writer& out) {
  write_counts(out, format::kKeyMisuse, kMisuseNames, g_misuses, kMisuses);
}

void write_counts(Writer& out, const char* key, const char* const* names, const uint64_t* counts,
                  unsigned size) {
  bool any = false;
  for (unsigned i = 0; i < size; ++i) {
    const uint64_t count = load(counts[i]);
    if (count == 0) continue;
    (any ? out.put(' ') : out.meta(key)).text(names[i]).put('=').number(count);
    any = true;
  }
  if (any) out.put('\n');
}

void reset_notes() {
  for (Slot& slot : g_slots) slot.state = kNoteFree;
  store(base::g_table_header->lost_notes, uint64_t{0});
  for (uint64_t& count : g_misuses) count = 0;
}

}  // namespace mtrace::report
