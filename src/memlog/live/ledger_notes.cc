#include "live/ledger_notes.h"

#include <algorithm>

#include "profile/text.h"

namespace mtrace::live {

std::vector<LedgerNoteText> read_notes(const LedgerFile& file) {
  using format::LedgerNote;
  struct Found {
    uint32_t order;
    LedgerNoteText note;
  };
  std::vector<Found> found;
  const uint64_t begin = file.header().notes;
  for (unsigned i = 0; begin != 0 && i < format::kLedgerNotes; ++i) {
    LedgerNote note;
    LedgerNote again;
    const uint64_t address = begin + i * sizeof note;
    if (!file.read(address, note) || note.state != format::kNoteWhole) continue;
    // A report may have taken the note meanwhile, and another note its place.
    if (!file.read(address, again) || again.state != note.state || again.order != note.order) {
      continue;
    }
    const std::string text = profile::array_text(again.text);
    if (!text.empty()) found.push_back({again.order, {again.time, text}});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (a.note.time != b.note.time) return a.note.time < b.note.time;
    return static_cast<int32_t>(a.order - b.order) < 0;
  });
  std::vector<LedgerNoteText> notes;
  notes.reserve(found.size());
  for (Found& one : found) notes.push_back(std::move(one.note));
  return notes;
}

}  // namespace mtrace::live
