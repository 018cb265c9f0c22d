// Finds children of the program's own, as opposed to the library's. Async-signal-safe.
#pragma once

#include <cstdint>

namespace mtrace::sys {

// Whether the program has clone children: children whose end sends no SIGCHLD, which only a wait
// with __WALL or __WCLONE finds. Several system calls per thread and child. kNotKnown where /proc
// is missing or shows another pid namespace.
enum class Answer : uint8_t { kNo, kYes, kNotKnown };
Answer has_clone_children();

}  // namespace mtrace::sys
