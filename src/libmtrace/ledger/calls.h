// The allocation functions whose calls are counted, and their names in reports.
#pragma once

#include <cstdint>

namespace mtrace::ledger {

enum class Call : uint8_t {
  kMalloc,
  kCalloc,
  kRealloc,
  kReallocarray,
  kMemalign,
  kPosixMemalign,
  kAlignedAlloc,
  kValloc,
  kPvalloc,
  kNew,
  kNewArray,
  kFree,  // and cfree, free_sized, free_aligned_sized
  kDelete,
  kDeleteArray,
};
inline constexpr unsigned kCalls = 14;
inline constexpr const char* kCallNames[kCalls] = {
    "malloc", "calloc",  "realloc", "reallocarray", "memalign", "posix_memalign", "aligned_alloc",
    "valloc", "pvalloc", "new",     "new[]",        "free",     "delete",         "delete[]"};

}  // namespace mtrace::ledger
