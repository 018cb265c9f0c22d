#include "model/ledger/ledger_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/memlog.h"
#include "model/ledger/ledger_state.h"
#include "util/text.h"

namespace mtrace::ledger {

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
    const std::string text = util::array_text(again.text);
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

std::string python_gap_text(const format::PythonCoverage& coverage, const std::string& path) {
  using format::PythonGap;
  if (coverage.gap <= PythonGap::kBeingNoted) return {};
  const uint32_t version = coverage.version;
  return fmt::format(
      "{}{}{}: CPython {}{}",
      coverage.gap == PythonGap::kOnTrial ? format::kPythonOnTrial : format::kNotCoveredPython,
      path.empty() ? "" : " of ", util::escaped(path, ""),
      version == 0
          ? "before 3.11"
          : fmt::format("{}.{}.{}", version >> 24, version >> 16 & 0xff, version >> 8 & 0xff),
      format::python_gap_reason(coverage.gap));
}

std::string python_gap(const LedgerFile& file, const LedgerState& state) {
  const format::PythonCoverage& coverage = file.header().python;
  if (coverage.gap <= format::PythonGap::kBeingNoted) return {};
  LedgerModules modules(state);
  const size_t module = modules.find(coverage.loop, format::kLedgerAlive);
  return python_gap_text(coverage,
                         module == LedgerModules::kNone ? "" : state.modules[module].path);
}

PythonFrameText python_frame(const LedgerState& state, uint64_t frame) {
  using format::PythonFrame;
  PythonFrameText text;
  const auto known = state.python.find(PythonFrame::code(frame));
  if (known == state.python.end()) {
    text.function = format::kPythonWithoutRoom;
    return text;
  }
  const LedgerCodeState& code = known->second;
  text.function = code.name.empty() ? format::kUnknownFunction : code.name;
  text.module = code.file;
  text.identity = format::module_identity(code.file.data(), code.file.size());
  text.offset = format::python_offset(code.entry.identity, frame);
  format::PythonLines lines(reinterpret_cast<const unsigned char*>(code.table.data()),
                            code.table.size(), code.entry.first_line);
  text.line = lines.line_of(PythonFrame::instruction(frame));
  if (text.line != 0) {
    size_t length = 0;
    const char* const name = format::python_file_name(code.file.data(), code.file.size(), &length);
    text.source = fmt::format("{}:{}", std::string_view(name, length), text.line);
  }
  return text;
}

}  // namespace mtrace::ledger
