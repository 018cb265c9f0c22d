// Preloaded, an allocator that serves a block of 321 bytes only when it has read a byte from
// standard input.
#include <unistd.h>

#include <cstddef>

extern "C" {
void* __libc_malloc(size_t size);

void* malloc(size_t size) noexcept {
  static const char kInside[] = "inside\n";
  char byte;
  if (size == 321 && (write(1, kInside, sizeof kInside - 1) < 0 || read(0, &byte, 1) < 0)) {
    _exit(98);
  }
  return __libc_malloc(size);
}
}
