// What a ledger says in words: notes that no report contains yet, Python functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/python.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"

namespace mtrace::ledger {

// Reads the notes in a ledger that no report contains yet.

struct LedgerNoteText {
  uint64_t time;     // nanoseconds since 1970
  std::string text;  // as the program gave it, not escaped
};

// Returns the notes, oldest first. Skips a note that a living process is writing at that moment.
std::vector<LedgerNoteText> read_notes(const LedgerFile& file);

// The Python functions that the stacks of a ledger name.

// A frame of a Python function as memlogs have it.
struct PythonFrameText {
  std::string function;
  uint32_t line = 0;      // 0: none belongs to it
  std::string source;     // FILE:LINE; empty: none
  std::string module;     // the source file's path; empty: the function found no room
  uint64_t identity = 0;  // format::module_identity of the path
  uint64_t offset = 0;
};

// Returns the line that says which Python functions stacks lack and why, as reports have it; empty:
// they lack none. `path`: of the interpreter's object; empty: not known. It is escaped.
std::string python_gap_text(const format::PythonCoverage& coverage, const std::string& path);
// The same of a ledger. Only of interpreters that stacks name is the path known.
std::string python_gap(const LedgerFile& file, const LedgerState& state);

// Describes `frame`, for which format::PythonFrame::is_one().
PythonFrameText python_frame(const LedgerState& state, uint64_t frame);

}  // namespace mtrace::ledger
