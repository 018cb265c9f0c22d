#include "base/clock.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

#include "base/hot.h"
#include "base/syscall.h"

namespace mtrace::sys {
namespace {

using internal::GetTime;

int get_time_from_kernel(clockid_t clock, timespec* now) {
  return static_cast<int>(call(SYS_clock_gettime, clock, now));
}

// Number of symbols, from the chains of a GNU hash table: the last one ends at an odd value.
uint32_t symbol_count(const uint32_t* hash) {
  const uint32_t buckets = hash[0];
  const uint32_t first = hash[1];
  const auto* bucket =
      reinterpret_cast<const uint32_t*>(reinterpret_cast<const uint64_t*>(hash + 4) + hash[2]);
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  const uint32_t* chain = bucket + buckets;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

// The vDSO is an ELF image in memory (vdso(7)); addresses in it are relative to its first segment.
GetTime find_in_image(const char* image, const char* name) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(image + header->e_phoff);
  const Elf64_Dyn* dynamic = nullptr;
  uint64_t bias = reinterpret_cast<uint64_t>(image);
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) bias -= segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const Elf64_Dyn*>(image + segments[i].p_offset);
    }
  }
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  uint32_t count = 0;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto* at = reinterpret_cast<const char*>(bias + dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(at);
    if (dynamic->d_tag == DT_STRTAB) strings = at;
    if (dynamic->d_tag == DT_HASH) count = reinterpret_cast<const uint32_t*>(at)[1];
    if (dynamic->d_tag == DT_GNU_HASH && count == 0) {
      count = symbol_count(reinterpret_cast<const uint32_t*>(at));
    }
  }
  if (symbols == nullptr || strings == nullptr) return nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, name) == 0) {
      return reinterpret_cast<GetTime>(bias + symbols[i].st_value);
    }
  }
  return nullptr;
}

}  // namespace

MTRACE_HOT constinit GetTime internal::get_time = get_time_from_kernel;
MTRACE_HOT constinit uint64_t g_time_zero = 0;

void find_clock() {
  const auto* image = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (image == nullptr) return;
  // A vDSO that supports this clock in one call supports it in all.
  const GetTime found = find_in_image(image, "__vdso_clock_gettime");
  timespec now;
  if (found != nullptr && found(CLOCK_MONOTONIC_COARSE, &now) == 0) internal::get_time = found;
}

uint64_t coarse_resolution() {
  timespec step = {};
  call(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &step);
  return internal::nanoseconds(step);
}

}  // namespace mtrace::sys
