// The allocation functions whose calls are counted. Their names: format/calls.h.
#pragma once

#include <cstdint>

#include "format/calls.h"

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
static_assert(kCalls == format::kAlignedNew);

}  // namespace mtrace::ledger
