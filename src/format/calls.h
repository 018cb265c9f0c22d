// The functions that a program calls to allocate and free, by the number that the tables keep for
// them, and their names in memlogs (`calls:` and `call=`).
#pragma once

#include <cstdint>

namespace mtrace::format {

inline constexpr const char* kCallNames[] = {
    // Those that `calls:` counts; the order is that of ledger::Call.
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "new",
    "new[]",
    "free",
    "delete",
    "delete[]",
    // Forms that reach one of those; counted there.
    "aligned-new",
    "aligned-new[]",
    "strdup",
    "strndup",
    "wcsdup",
    // Those of entries of other kinds.
    "mmap",
    "mremap",
    "munmap",
    "mallopt",
    "malloc_trim",
    "mallinfo",
    "mallinfo2",
#define MTRACE_INTERFACE(symbol, ...) #symbol,
#include "format/interfaces.def"
#undef MTRACE_INTERFACE
};
inline constexpr unsigned kNamedCalls = sizeof kCallNames / sizeof kCallNames[0];

// Numbers behind those of ledger::Call.
enum CallForm : uint8_t {
  kAlignedNew = 14,
  kAlignedNewArray,
  kStrdup,
  kStrndup,
  kWcsdup,
  kMmap,
  kMremap,
  kMunmap,
  kMallopt,
  kMallocTrim,
  kMallinfo,
  kMallinfo2,
  kFirstInterface,  // that of interfaces.def which stands first
  kNoCall = 0xff,   // of stacks that no single function made
};
static_assert(kNamedCalls < kNoCall);

// Returns the name; nullptr: the number has none.
constexpr const char* call_name(uint8_t number) {
  return number < kNamedCalls ? kCallNames[number] : nullptr;
}

}  // namespace mtrace::format
