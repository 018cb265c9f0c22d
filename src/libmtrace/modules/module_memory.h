// Memory for the list of modules. Never given back.
#pragma once

#include <cstddef>

namespace mtrace::unwind {

// Zeroed, 16-byte aligned; `size` below 64 KiB. nullptr: the kernel gives no more. Lock-free,
// async-signal-safe.
void* module_memory(size_t size);

}  // namespace mtrace::unwind
