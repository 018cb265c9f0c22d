// Reads CPython's objects: memory that may be stale, and str.
#pragma once

#include <string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "base/probe.h"
#include "python/layout.h"
#include "unwind/rule.h"

namespace mtrace::unwind {

// How memory of the interpreter is read: directly, or copied by the kernel where the address may be
// stale.
enum class PythonAccess : bool { kDirect, kCareful };

// The `bytes` at `from`, which are copied to `room` unless access is direct. nullptr: they cannot
// be read. Direct access is for addresses that are known to be good, and refuses only those outside
// user space. Async-signal-safe.
inline const char* see_python(PythonAccess access, uintptr_t from, char* room, size_t bytes) {
  if (access == PythonAccess::kCareful)
    return base::read_memory(from, room, bytes) ? room : nullptr;
  return from - 1 < kKeyEnd - 4096 ? reinterpret_cast<const char*>(from) : nullptr;
}

template <typename T>
T python_field(const char* object, size_t offset) {
  T value;
  __builtin_memcpy(&value, object + offset, sizeof value);
  return value;
}

// Bits of PyASCIIObject.state, above two that say whether it is interned.
inline constexpr uint32_t kTextWidth = 7u << 2;
inline constexpr uint32_t kTextCompact = 1u << 5;
inline constexpr uint32_t kTextForm = kTextWidth | kTextCompact | 1u << 6;
inline constexpr uint32_t kTextAscii = 1u << 2 | kTextCompact | 1u << 6;

// A str.
struct PythonText {
  uintptr_t data;
  uint64_t length;  // characters
  unsigned width;   // bytes of one: 1, 2 or 4
  bool ascii;
};

// Reads the head of the str at `address`. False: no str there whose characters follow its head.
inline bool find_text(const PythonLayout& layout, PythonAccess access, uintptr_t address,
                      PythonText* text) {
  char room[kPythonTextState + sizeof(uint32_t)];
  const char* const head = see_python(access, address, room, sizeof room);
  if (head == nullptr) return false;
  text->length = python_field<uint64_t>(head, kPythonSize);
  const auto state = python_field<uint32_t>(head, kPythonTextState);
  text->width = (state & kTextWidth) >> 2;
  text->ascii = (state & kTextForm) == kTextAscii;
  text->data = address + (text->ascii ? layout.text_ascii : layout.text_other);
  return (state & kTextCompact) != 0 && (text->width == 1 || text->width == 2 || text->width == 4);
}

// Writes a character in UTF-8, 1 to 4 bytes; returns how many.
inline size_t put_utf8(uint32_t character, char* to) {
  if (character < 0x80) {
    to[0] = static_cast<char>(character);
    return 1;
  }
  const size_t bytes = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (size_t i = bytes - 1; i > 0; --i, character >>= 6) {
    to[i] = static_cast<char>(0x80 | (character & 63));
  }
  to[0] = static_cast<char>(0xf0u << (4 - bytes) | character);
  return bytes;
}

// Calls take(bytes, size) with pieces of the text in UTF-8, until take() returns false. Leaves out
// the first character that goes beyond `most` bytes, and all after it. False: take() returned
// false, or the text cannot be read.
template <typename Take>
bool each_piece(PythonAccess access, const PythonText& text, size_t most, Take&& take) {
  constexpr unsigned kUnits = 16;
  for (uint64_t at = 0; at < text.length; at += kUnits) {
    char room[kUnits * sizeof(uint32_t)];
    const auto count = static_cast<unsigned>(std::min<uint64_t>(kUnits, text.length - at));
    const char* const units =
        see_python(access, text.data + at * text.width, room, count * text.width);
    if (units == nullptr) return false;
    char piece[kUnits * 4];
    size_t size = 0;
    for (unsigned i = 0; i < count; ++i) {
      uint32_t character = 0;
      memcpy(&character, units + i * text.width, text.width);
      char one[4];
      const size_t bytes = put_utf8(character, one);
      if (bytes > most) return take(piece, size);
      most -= bytes;
      memcpy(piece + size, one, bytes);
      size += bytes;
    }
    if (!take(piece, size)) return false;
  }
  return true;
}

// Bytes compared at a time. Kept texts are readable up to a multiple of it.
inline constexpr size_t kTextBlock = 16;

// Whether `size` bytes are equal. Where `text` begins at a multiple of kTextBlock the last block is
// read whole, which is on the same page.
[[gnu::always_inline]] inline bool same_bytes(const char* text, const char* kept, size_t size) {
  if (reinterpret_cast<uintptr_t>(text) % kTextBlock != 0) return memcmp(text, kept, size) == 0;
  const auto equal = [&](size_t at) {
    return *reinterpret_cast<const machine::Bytes*>(text + at) ==
           *reinterpret_cast<const machine::UnalignedBytes*>(kept + at);
  };
  if (size == 0) return true;
  const size_t last = (size - 1) / kTextBlock * kTextBlock;
  machine::Bytes same = ~machine::Bytes{};
  for (size_t at = 0; at != last; at += kTextBlock) same &= equal(at);
  const unsigned beyond = ~1u << (size - 1) % kTextBlock;
  return (machine::bits_of(same) & (machine::bits_of(equal(last)) | beyond)) == 0xffff;
}

// The same by any access and in any form.
[[gnu::noinline]] inline bool same_encoded(PythonAccess access, const PythonText& text,
                                           const char* kept, size_t bytes, size_t most) {
  size_t at = 0;
  const bool same = each_piece(access, text, most, [&](const char* piece, size_t size) {
    if (size > bytes - at || memcmp(piece, kept + at, size) != 0) return false;
    at += size;
    return true;
  });
  return same && at == bytes;
}

// Whether the text equals the kept one: `bytes` of UTF-8 (at a multiple of 8), of `length`
// characters, of which no more than `most` bytes were kept.
inline bool same_text(PythonAccess access, const PythonText& text, const char* kept, size_t bytes,
                      uint64_t length, size_t most) {
  if (text.length != length) return false;
  if (text.ascii && access == PythonAccess::kDirect) {
    return same_bytes(reinterpret_cast<const char*>(text.data), kept, bytes);
  }
  return same_encoded(access, text, kept, bytes, most);
}

}  // namespace mtrace::unwind
