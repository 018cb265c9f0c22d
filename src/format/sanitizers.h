// Sanitizers that bring an allocator of their own, in the program or as a library.
#pragma once

namespace mtrace::format {

struct Sanitizer {
  const char* start;  // function of its runtime, by which it is told
  const char* name;
};
// AddressSanitizer and its like contain LeakSanitizer: the last.
inline constexpr Sanitizer kSanitizers[] = {{"__asan_init", "AddressSanitizer"},
                                            {"__hwasan_init", "HWAddressSanitizer"},
                                            {"__msan_init", "MemorySanitizer"},
                                            {"__tsan_init", "ThreadSanitizer"},
                                            {"__lsan_init", "LeakSanitizer"}};

}  // namespace mtrace::format
