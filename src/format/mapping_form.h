// How a mapping was requested: the protection and flags of mmap(2) as one word, which the library
// keeps with the stack (LedgerCounterSet::set_aside, kLedgerMappingForm), and their names in
// memlogs.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace mtrace::format {

// The word has the flags; bits 21 to 23, which are no flags, have the protection.
inline constexpr unsigned kMappingProtectionShift = 21;
inline constexpr uint32_t kMappingProtectionBits = 7u << kMappingProtectionShift;

// Never 0 for a call that succeeded: each mapping is shared or private.
constexpr uint32_t mapping_form(int protection, int flags) {
  return (static_cast<uint32_t>(flags) & ~kMappingProtectionBits) |
         (static_cast<uint32_t>(protection) << kMappingProtectionShift & kMappingProtectionBits);
}

// The protection as /proc/PID/maps has it: "rw-".
struct MappingProtection {
  explicit constexpr MappingProtection(uint32_t form) {
    const uint32_t bits = form >> kMappingProtectionShift;
    if ((bits & PROT_READ) != 0) text[0] = 'r';
    if ((bits & PROT_WRITE) != 0) text[1] = 'w';
    if ((bits & PROT_EXEC) != 0) text[2] = 'x';
  }
  char text[4] = "---";
};

struct MappingFlag {
  uint32_t bits;
  const char* name;
};
inline constexpr MappingFlag kMappingFlags[] = {
    {MAP_SHARED_VALIDATE, "shared-validate"},  // before the two whose bits it has
    {MAP_SHARED, "shared"},
    {MAP_PRIVATE, "private"},
    {MAP_ANONYMOUS, "anonymous"},
    {MAP_FIXED, "fixed"},
    {MAP_FIXED_NOREPLACE, "fixed-noreplace"},
    {MAP_NORESERVE, "noreserve"},
    {MAP_STACK, "stack"},
    {MAP_HUGETLB, "hugetlb"},
    {MAP_POPULATE, "populate"},
    {MAP_NONBLOCK, "nonblock"},
    {MAP_LOCKED, "locked"},
    {MAP_GROWSDOWN, "growsdown"},
    {MAP_SYNC, "sync"},
    {0x40, "32bit"},  // MAP_32BIT, which x86_64 alone has
    {MAP_DENYWRITE, "denywrite"},
    {MAP_EXECUTABLE, "executable"},
};

// Calls put(name) for each flag, in this order. Returns the bits without a name, such as the size
// of huge pages.
template <typename Put>
constexpr uint32_t each_mapping_flag(uint32_t form, Put&& put) {
  uint32_t left = form & ~kMappingProtectionBits;
  for (const MappingFlag& flag : kMappingFlags) {
    if ((left & flag.bits) != flag.bits) continue;
    put(flag.name);
    left &= ~flag.bits;
  }
  return left;
}

}  // namespace mtrace::format
