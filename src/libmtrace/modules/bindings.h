// Which functions the loaded objects call by a name: what their relocations were filled with. Shows
// calls that another library does not get to see, because their object was bound past it
// (RTLD_DEEPBIND, -Bsymbolic, another namespace of dlmopen).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

// A place in an object's table that holds the address which a call by `symbol` goes to.
struct Binding {
  uintptr_t object;  // load bias
  uintptr_t end;     // of the object's highest address that is known: its dynamic section
  uintptr_t target;
  unsigned symbol;  // index in the list that was asked for
  char name[256];   // of the object as the loader calls it; "": the main program
};

// Calls visit(binding, context) for each place of one of the `count` symbols in each object that is
// loaded now, in all namespaces. True from visit: this place needs no further look; an object all
// of whose places said so is left out in later calls. Reads with base/probe.h, so a list that
// another thread changes meanwhile costs completeness and nothing else. Some 50 us for an object
// that is new. Async-signal-safe and thread-safe; always for the same symbols. Without memory it
// looks at none.
void each_binding(const char* const* symbols, unsigned count,
                  bool (*visit)(const Binding& binding, void* context), void* context);

// The same for at most `most` objects of one namespace, from `first` on, which is a link_map or
// anything.
void each_binding_from(const void* first, unsigned most, const char* const* symbols, unsigned count,
                       bool (*visit)(const Binding& binding, void* context), void* context);

}  // namespace mtrace::unwind
