#include "python/text.h"

namespace mtrace::unwind {

size_t put_utf8(uint32_t character, char* to) {
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

bool same_encoded(PythonAccess access, const PythonText& text, const char* kept, size_t bytes,
                  size_t most) {
  size_t at = 0;
  const bool same = each_piece(access, text, most, [&](const char* piece, size_t size) {
    if (size > bytes - at || memcmp(piece, kept + at, size) != 0) return false;
    at += size;
    return true;
  });
  return same && at == bytes;
}

}  // namespace mtrace::unwind
