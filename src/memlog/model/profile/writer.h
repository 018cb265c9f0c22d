// Writes a memlog as text: the inverse of the reader.
#pragma once

#include <string>

#include "model/profile/model.h"

namespace mtrace::profile {

// Returns the text of `memlog`: meta lines, entries and `# end`. Reading it gives an equal model.
std::string write(const Memlog& memlog);

// Returns the place of a frame: "(/usr/lib/libc.so.6#2+0x1f3)", "(0x7f..)" or "(inlined)".
std::string place(const Memlog& memlog, const Frame& frame);

// Returns the value of the module's `# module:` line.
std::string module_text(const Module& module);

// Returns the part of a frame line before the place: "function\tsource\t", "function\t" or "".
std::string frame_names(const Frame& frame);

// Returns "no", "partly" or "yes".
const char* resolved_text(Resolved resolved);

// Sets the `# resolved:` line, at its place after the entries.
void set_resolved(Memlog& memlog, Resolved resolved);
// Adds a `# note:` line unless there is an equal one.
void add_note(Memlog& memlog, const std::string& text);

}  // namespace mtrace::profile
