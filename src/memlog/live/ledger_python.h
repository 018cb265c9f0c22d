// The Python functions that the stacks of a ledger name.
#pragma once

#include <cstdint>
#include <string>

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

// Describes `frame`, for which format::PythonFrame::is_one().
PythonFrameText python_frame(const LedgerState& state, uint64_t frame);

}  // namespace mtrace::live
