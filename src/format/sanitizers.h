// Sanitizers with their own allocator, in the program or in a library.
#pragma once

namespace mtrace::format {

struct Sanitizer {
  const char* start;  // function of its runtime that identifies it
  const char* name;
};
// LeakSanitizer is last: AddressSanitizer and its like contain it.
inline constexpr Sanitizer kSanitizers[] = {{"__asan_init", "AddressSanitizer"},
                                            {"__hwasan_init", "HWAddressSanitizer"},
                                            {"__msan_init", "MemorySanitizer"},
                                            {"__tsan_init", "ThreadSanitizer"},
                                            {"__lsan_init", "LeakSanitizer"}};

}  // namespace mtrace::format
