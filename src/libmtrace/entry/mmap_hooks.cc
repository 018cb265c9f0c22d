// mmap, munmap, mremap, sbrk and brk. Without MTRACE_MMAP and MTRACE_EVENTS the hooks only call on.

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "base/own_memory.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "events/logging.h"
#include "format/mapping_form.h"
#include "next/next_functions.h"
#include "record/recorder.h"

// glibc's, under its other name; no code of a program with musl runs before g_next is known.
extern "C" [[gnu::weak]] void* __sbrk(intptr_t increment) noexcept;

namespace mtrace::entry {
namespace {

using MmapFunction = void* (*)(void*, size_t, int, int, int, off_t);

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The real functions are not known before the library's start, and these hooks do not start it: the
// caller may be an allocator that sets itself up.
void* real_mmap(MmapFunction real, void* address, size_t length, int protection, int flags, int fd,
                off_t offset) {
  if (real != nullptr) return real(address, length, protection, flags, fd, offset);
  return reinterpret_cast<void*>(next::answer_of(
      base::call_unasked(SYS_mmap, address, length, protection, flags, fd, offset)));
}
int real_munmap(void* address, size_t length) {
  if (next::g_next.munmap != nullptr) return next::g_next.munmap(address, length);
  return static_cast<int>(next::answer_of(base::call_unasked(SYS_munmap, address, length)));
}
void* real_mremap(void* address, size_t old_length, size_t length, int flags, void* new_address) {
  if (next::g_next.mremap != nullptr) {
    return next::g_next.mremap(address, old_length, length, flags, new_address);
  }
  return reinterpret_cast<void*>(next::answer_of(
      base::call_unasked(SYS_mremap, address, old_length, length, flags, new_address)));
}

void* real_sbrk(intptr_t increment) {
  return next::g_next.sbrk != nullptr ? next::g_next.sbrk(increment) : __sbrk(increment);
}

[[gnu::noinline]] MTRACE_REALIGN void* map(MmapFunction real, void* address, size_t length,
                                           int protection, int flags, int fd, off_t offset,
                                           const unwind::Registers& caller) {
  if (!record::counting()) return real_mmap(real, address, length, protection, flags, fd, offset);
  record::RegionsEnd covered;
  // MAP_FIXED_NOREPLACE replaces nothing, also together with MAP_FIXED.
  const bool replaces = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED;
  if (record::watching_regions() && replaces) {
    covered.begin(address_of(address), base::whole_pages(length));
  }
  void* result = real_mmap(real, address, length, protection, flags, fd, offset);
  covered.finish(result != MAP_FAILED, format::kMmap, caller);
  if (result != MAP_FAILED && replaces && events::logs()) {
    record::log_unmapping(address_of(result), base::whole_pages(length), format::kMmap, caller);
  }
  if (result != MAP_FAILED && record::recording()) {
    if (record::watching_regions()) {
      record::record_region(address_of(result), base::whole_pages(length), format::kMmap,
                            format::mapping_form(protection, flags), caller);
    }
    if (events::logs()) record::log_mapping(address_of(result), base::whole_pages(length), caller);
  }
  return result;
}

// As realloc does, ends the old range and records the new one for this call.
[[gnu::noinline]] MTRACE_REALIGN void* remap(void* address, size_t old_length, size_t length,
                                             int flags, void* new_address,
                                             const unwind::Registers& caller) {
  if (!record::counting()) return real_mremap(address, old_length, length, flags, new_address);
  record::RegionsEnd old;
  record::RegionsEnd covered;
  // An old length of 0 maps shared memory once more; MREMAP_DONTUNMAP leaves an empty mapping.
  const bool regions = record::watching_regions();
  const bool moves = (flags & MREMAP_DONTUNMAP) == 0;
  if (regions && moves) old.begin(address_of(address), base::whole_pages(old_length));
  if (regions && (flags & MREMAP_FIXED) != 0) {
    covered.begin(address_of(new_address), base::whole_pages(length));
  }
  void* result = real_mremap(address, old_length, length, flags, new_address);
  old.finish(result != MAP_FAILED, format::kMremap, caller);
  covered.finish(result != MAP_FAILED, format::kMremap, caller);
  if (result != MAP_FAILED && record::recording()) {
    if (regions) {
      record::record_region(address_of(result), base::whole_pages(length), format::kMremap, 0,
                            caller);
    }
    if (events::logs()) {
      if ((flags & MREMAP_FIXED) != 0) {
        record::log_unmapping(address_of(result), base::whole_pages(length), format::kMremap,
                              caller);
      }
      record::log_remapping(address_of(address), moves ? base::whole_pages(old_length) : 0,
                            address_of(result), base::whole_pages(length), caller);
    }
  }
  return result;
}

[[gnu::noinline]] MTRACE_REALIGN int unmap(void* address, size_t length,
                                           const unwind::Registers& caller) {
  if (!record::counting()) return real_munmap(address, length);
  record::RegionsEnd end;
  if (record::watching_regions()) end.begin(address_of(address), base::whole_pages(length));
  if (events::logs()) {
    record::log_unmapping(address_of(address), base::whole_pages(length), format::kMunmap, caller);
  }
  const int result = real_munmap(address, length);
  end.finish(result == 0, format::kMunmap, caller);
  return result;
}

}  // namespace
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

MTRACE_EXPORT_AS_IT_IS void* mmap(void* address, size_t length, int protection, int flags, int fd,
                                  off_t offset) noexcept {
  if (!record::watching_mappings()) {
    return real_mmap(next::g_next.mmap, address, length, protection, flags, fd, offset);
  }
  return map(next::g_next.mmap, address, length, protection, flags, fd, offset,
             MTRACE_CALLER_REGISTERS());
}

MTRACE_EXPORT_AS_IT_IS void* mmap64(void* address, size_t length, int protection, int flags, int fd,
                                    off64_t offset) noexcept {
  if (!record::watching_mappings()) {
    return real_mmap(next::g_next.mmap64, address, length, protection, flags, fd, offset);
  }
  return map(next::g_next.mmap64, address, length, protection, flags, fd, offset,
             MTRACE_CALLER_REGISTERS());
}

MTRACE_EXPORT_AS_IT_IS int munmap(void* address, size_t length) noexcept {
  if (!record::watching_mappings()) return real_munmap(address, length);
  return unmap(address, length, MTRACE_CALLER_REGISTERS());
}

MTRACE_EXPORT_AS_IT_IS void* mremap(void* address, size_t old_length, size_t length, int flags,
                                    ...) noexcept {
  // mremap has a fifth argument only with these flags.
  void* new_address = nullptr;
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
    va_list more;
    va_start(more, flags);
    new_address = va_arg(more, void*);
    va_end(more);
  }
  if (!record::watching_mappings()) {
    return real_mremap(address, old_length, length, flags, new_address);
  }
  return remap(address, old_length, length, flags, new_address, MTRACE_CALLER_REGISTERS());
}

// malloc of libc does not come here.
MTRACE_EXPORT void* sbrk(intptr_t increment) noexcept {
  void* const start = real_sbrk(increment);
  if (increment != 0 && start != MAP_FAILED) {
    base::note_break(address_of(start), address_of(start) + static_cast<size_t>(increment));
  }
  return start;
}

MTRACE_EXPORT int brk(void* end) noexcept {
  const uintptr_t before = address_of(real_sbrk(0));
  const auto increment = static_cast<intptr_t>(address_of(end) - before);
  const bool good =
      next::g_next.brk != nullptr ? next::g_next.brk(end) == 0 : __sbrk(increment) != MAP_FAILED;
  if (good) base::note_break(before, address_of(real_sbrk(0)));
  return good ? 0 : -1;
}

// ---- mlockall: keeps the library's mappings out of what the program locks.

namespace mtrace::entry {
namespace {

int real_mlockall(int flags) {
  if (next::g_next.mlockall != nullptr) return next::g_next.mlockall(flags);
  return static_cast<int>(next::answer_of(base::call_unasked(SYS_mlockall, flags)));
}

}  // namespace
}  // namespace mtrace::entry

// The kernel compares all mapped memory with the limit. If only the library's part exceeds it, the
// program's mappings are locked one by one.
MTRACE_EXPORT int mlockall(int flags) noexcept {
  constexpr int kKnown = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
  if (!record::counting() || (flags & MCL_CURRENT) == 0 || (flags & ~kKnown) != 0) {
    const int result = real_mlockall(flags);
    if (result == 0 && (flags & MCL_FUTURE) != 0) base::keep_unlocked();
    return result;
  }
  const int before = errno;
  // MCL_ONFAULT: makes no page here. The program's, not the library's, are made below.
  if (real_mlockall(flags | MCL_ONFAULT) != 0) {
    if (errno != ENOMEM || !base::lock_limit_fits_program()) return -1;
  }
  if ((flags & MCL_FUTURE) != 0) {
    base::keep_unlocked();
    if (real_mlockall(flags & ~MCL_CURRENT) != 0) return -1;
  }
  if (!base::lock_programs_memory((flags & MCL_ONFAULT) != 0)) return real_mlockall(flags);
  errno = before;
  return 0;
}
