// The functions that the loaded objects call by name, as their relocations were filled. Shows calls
// that another library does not get to see, because their object was bound past it (RTLD_DEEPBIND,
// -Bsymbolic, another namespace of dlmopen).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

// A place in an object's table that holds the address which a call by `symbol` goes to.
struct Binding {
  uintptr_t object;  // load bias
  uintptr_t end;     // the object's highest known address: its dynamic section
  uintptr_t target;
  unsigned symbol;  // index in the list of symbols
  char name[256];   // of the object as the loader calls it; "": the main program
};

// Calls visit(binding, context) for each place of one of the `count` symbols in each object that is
// loaded now, in all namespaces. visit returns true for a place that needs no further look; an
// object with only such places is left out in later calls, which therefore must be for the same
// symbols. Reads with base/probe.h, so a list that another thread changes meanwhile costs
// completeness and nothing else. Some 50 us for a new object. Async-signal-safe and thread-safe.
// Does nothing without memory.
void each_binding(const char* const* symbols, unsigned count,
                  bool (*visit)(const Binding& binding, void* context), void* context);

// each_binding() for at most `most` objects of one namespace, from the link_map `first` on. Any
// other pointer is safe: the list is probed.
void each_binding_from(const void* first, unsigned most, const char* const* symbols, unsigned count,
                       bool (*visit)(const Binding& binding, void* context), void* context);

}  // namespace mtrace::unwind
