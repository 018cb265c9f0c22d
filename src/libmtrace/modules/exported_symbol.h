// Look-up of a symbol that a loaded object exports.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modules/object.h"

namespace mtrace::unwind {

struct ExportedSymbol {
  uintptr_t address;
  size_t size;  // bytes
};

// The function or variable that the object exports by this name; versions do not matter. False: it
// exports none, or its tables are damaged. Reads only inside the object's bounds. Lock-free,
// async-signal-safe.
bool find_exported(const Object& object, const char* name, ExportedSymbol* symbol);

}  // namespace mtrace::unwind
