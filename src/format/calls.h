// The functions that a program calls to allocate and free, by the number that the tables keep for
// them, and their names in memlogs (`calls:` and `call=`).
#pragma once

#include <cstdint>

namespace mtrace::format {

inline constexpr const char* kCallNames[] = {
    // Counted in `calls:`; the order is that of ledger::Call.
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
    // Counted as new, new[] or malloc.
    "aligned-new",
    "aligned-new[]",
    "aligned-nothrow-new",
    "aligned-nothrow-new[]",
    "nothrow-new",
    "nothrow-new[]",
    "strdup",
    "strndup",
    "wcsdup",
    // In entries of other kinds.
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

// Numbers after those of ledger::Call.
enum CallForm : uint8_t {
  kAlignedNew = 14,
  kAlignedNewArray,
  kAlignedNothrowNew,
  kAlignedNothrowNewArray,
  kNothrowNew,
  kNothrowNewArray,
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
  kFirstInterface,  // the first function of interfaces.def
  kNoCall = 0xff,   // of stacks that do not belong to one function
};
static_assert(kNamedCalls < kNoCall);

// Returns the name; nullptr: the number has none.
constexpr const char* call_name(uint8_t number) {
  return number < kNamedCalls ? kCallNames[number] : nullptr;
}

}  // namespace mtrace::format
