// The library's own copies of the functions of <cstring> that it calls. libc's can be replaced, by
// the program or by a preloaded library: a sanitizer's strncpy, for one, ends a program that calls
// it before the sanitizer has started, and hooks run earlier than that. Hidden, so that the linker
// binds every call here. Builtins that the compiler expands make no call.
//
// Contracts are libc's. No function reads beyond the last byte, which valgrind would report.
#include <cstddef>
#include <cstdint>

#include "base/machine.h"

#define MTRACE_OWN extern "C" [[gnu::visibility("hidden")]]

namespace {

// From this size on (bytes) the processor has a faster way.
constexpr size_t kLong = 128;

template <typename Number>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  Number value;
};
typedef long long Wide __attribute__((vector_size(16)));  // 16 bytes at once

template <typename Number>
void copy_one(unsigned char* to, const unsigned char* from) {
  reinterpret_cast<Unaligned<Number>*>(to)->value =
      reinterpret_cast<const Unaligned<Number>*>(from)->value;
}
// For a size from one Number to two: the two copies may overlap.
template <typename Number>
void copy_two(unsigned char* to, const unsigned char* from, size_t size) {
  const size_t second = size - sizeof(Number);
  const Number last = reinterpret_cast<const Unaligned<Number>*>(from + second)->value;
  copy_one<Number>(to, from);
  reinterpret_cast<Unaligned<Number>*>(to + second)->value = last;
}

}  // namespace

using namespace mtrace;

MTRACE_OWN void* memcpy(void* result, const void* source, size_t size) {
  auto* to = static_cast<unsigned char*>(result);
  const auto* from = static_cast<const unsigned char*>(source);
  if (size >= kLong) return machine::copy_long(to, from, size), result;
  if (size >= sizeof(Wide)) {
    for (; size > 2 * sizeof(Wide); size -= sizeof(Wide)) {
      copy_one<Wide>(to, from);
      to += sizeof(Wide);
      from += sizeof(Wide);
    }
    copy_two<Wide>(to, from, size);
  } else if (size >= 8) {
    copy_two<uint64_t>(to, from, size);
  } else if (size >= 4) {
    copy_two<uint32_t>(to, from, size);
  } else if (size >= 2) {
    copy_two<uint16_t>(to, from, size);
  } else if (size == 1) {
    *to = *from;
  }
  return result;
}

MTRACE_OWN void* memmove(void* result, const void* source, size_t size) {
  auto* to = static_cast<unsigned char*>(result);
  const auto* from = static_cast<const unsigned char*>(source);
  const uintptr_t ahead = reinterpret_cast<uintptr_t>(from) - reinterpret_cast<uintptr_t>(to);
  const uintptr_t behind = -ahead;
  if (ahead >= size && behind >= size) return memcpy(result, source, size);
  // The processor's way to copy is slow where the two overlap.
  if (ahead < size) {
    for (; size >= sizeof(Wide); size -= sizeof(Wide)) {
      copy_one<Wide>(to, from);
      to += sizeof(Wide);
      from += sizeof(Wide);
    }
    for (; size != 0; --size) *to++ = *from++;
  } else {
    for (; size >= sizeof(Wide); size -= sizeof(Wide)) {
      copy_one<Wide>(to + size - sizeof(Wide), from + size - sizeof(Wide));
    }
    while (size-- != 0) to[size] = from[size];
  }
  return result;
}

MTRACE_OWN void* memset(void* result, int value, size_t size) {
  auto* to = static_cast<unsigned char*>(result);
  if (size >= kLong) return machine::fill_long(to, value, size), result;
  while (size-- != 0) *to++ = static_cast<unsigned char>(value);
  return result;
}

MTRACE_OWN int memcmp(const void* a, const void* b, size_t size) {
  const auto* left = static_cast<const unsigned char*>(a);
  const auto* right = static_cast<const unsigned char*>(b);
  for (; size != 0; --size, ++left, ++right) {
    if (*left != *right) return *left - *right;
  }
  return 0;
}

MTRACE_OWN void* memchr(const void* text, int value, size_t size) {
  const auto* at = static_cast<const unsigned char*>(text);
  for (; size != 0; --size, ++at) {
    if (*at == static_cast<unsigned char>(value)) return const_cast<unsigned char*>(at);
  }
  return nullptr;
}

MTRACE_OWN size_t strlen(const char* text) {
  const char* end = text;
  while (*end != '\0') ++end;
  return static_cast<size_t>(end - text);
}

MTRACE_OWN size_t strnlen(const char* text, size_t most) {
  size_t size = 0;
  while (size < most && text[size] != '\0') ++size;
  return size;
}

MTRACE_OWN int strncmp(const char* a, const char* b, size_t most) {
  for (; most != 0; --most, ++a, ++b) {
    if (*a != *b) return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
    if (*a == '\0') break;
  }
  return 0;
}

MTRACE_OWN int strcmp(const char* a, const char* b) { return strncmp(a, b, SIZE_MAX); }

MTRACE_OWN char* strchr(const char* text, int value) {
  for (;; ++text) {
    if (*text == static_cast<char>(value)) return const_cast<char*>(text);
    if (*text == '\0') return nullptr;
  }
}

MTRACE_OWN char* strrchr(const char* text, int value) {
  const char* found = nullptr;
  for (;; ++text) {
    if (*text == static_cast<char>(value)) found = text;
    if (*text == '\0') return const_cast<char*>(found);
  }
}

MTRACE_OWN size_t strcspn(const char* text, const char* separators) {
  size_t size = 0;
  while (text[size] != '\0' && strchr(separators, text[size]) == nullptr) ++size;
  return size;
}

MTRACE_OWN char* strcpy(char* to, const char* from) {
  memcpy(to, from, strlen(from) + 1);
  return to;
}

MTRACE_OWN char* strncpy(char* to, const char* from, size_t size) {
  const size_t length = strnlen(from, size);
  memcpy(to, from, length);
  memset(to + length, 0, size - length);
  return to;
}

MTRACE_OWN char* strstr(const char* text, const char* wanted) {
  const size_t length = strlen(wanted);
  for (;; ++text) {
    if (strncmp(text, wanted, length) == 0) return const_cast<char*>(text);
    if (*text == '\0') return nullptr;
  }
}
