// A memlog as text: the inverse of the reader.
#pragma once

#include <string>

#include "profile/model.h"

namespace mtrace::profile {

// The text of `memlog`: its meta lines, entries and `# end`. Reading it back gives the same model.
std::string write(const Memlog& memlog);

// A frame's place: "(/usr/lib/libc.so.6#2+0x1f3)", "(0x7f..)" or "(inlined)".
std::string place(const Memlog& memlog, const Frame& frame);

// What a frame line holds before the place: "function\tsource\t", "function\t" or "".
std::string frame_names(const Frame& frame);

// "no", "partly" or "yes".
const char* resolved_text(Resolved resolved);

// Sets the `# resolved:` line, in its place among the lines after the entries.
void set_resolved(Memlog& memlog, Resolved resolved);
// Adds a `# note:` line unless the same note is there already.
void add_note(Memlog& memlog, const std::string& text);

}  // namespace mtrace::profile
