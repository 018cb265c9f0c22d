// What the main program asks other objects for.
#pragma once

namespace mtrace::unwind {

// Whether the program has a relocation by one of the `count` names. True also when its dynamic
// section does not tell. Reads what the loader has used and never unloads. Async-signal-safe.
bool program_imports(const char* const* symbols, unsigned count);

}  // namespace mtrace::unwind
