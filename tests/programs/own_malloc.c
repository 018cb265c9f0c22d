// A program with an allocator of its own, linked in, which its libraries find as well.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(16) char memory[1 << 20];
static size_t used;

void* malloc(size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (size > sizeof memory - used - 16) {
    errno = ENOMEM;
    return NULL;
  }
  size_t* block = (size_t*)(memory + used);
  used += size + 16;
  block[0] = size;
  return block + 2;
}
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t size) {
  void* block = malloc(count * size);
  return block != NULL ? memset(block, 0, count * size) : NULL;
}
void* realloc(void* old, size_t size) {
  void* block = malloc(size);
  if (old != NULL && block != NULL) {
    const size_t held = ((size_t*)old)[-2];
    memcpy(block, old, held < size ? held : size);
  }
  return block;
}

int main(void) {
  char* text = strdup("held");
  void* volatile leak = malloc(1000);
  printf("%s %d\n", text, leak != NULL);
  return 0;
}
