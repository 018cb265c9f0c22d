// The Python functions that the stacks of a ledger name.
#pragma once

#include <cstdint>
#include <string>

#include "format/python.h"
#include "live/ledger_file.h"
#include "live/ledger_state.h"

namespace mtrace::live {

// A frame of a Python function as memlogs have it.
struct PythonFrameText {
  std::string function;
  std::string source;     // FILE:LINE; empty: no line belongs to it
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

}  // namespace mtrace::live
