// What the allocation functions do with sizes and alignments that cannot be served. Prints each
// result; the output must be the same with and without the library.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t zero;
static size_t sized(size_t n) { return n + zero; }
static void* volatile pointer;

// noipa-like: the compiler must not know that these are allocation functions.
static void* (*volatile do_malloc)(size_t) = malloc;
static void* (*volatile do_calloc)(size_t, size_t) = calloc;
static void* (*volatile do_realloc)(void*, size_t) = realloc;
static void* (*volatile do_reallocarray)(void*, size_t, size_t) = reallocarray;
static void* (*volatile do_memalign)(size_t, size_t) = memalign;
static void* (*volatile do_aligned_alloc)(size_t, size_t) = aligned_alloc;
static int (*volatile do_posix_memalign)(void**, size_t, size_t) = posix_memalign;
static void* (*volatile do_valloc)(size_t) = valloc;
static void* (*volatile do_pvalloc)(size_t) = pvalloc;
static void (*volatile do_free)(void*) = free;
static size_t (*volatile do_usable)(void*) = malloc_usable_size;

static void show(const char* what, const void* p) {
  const int error = errno;
  printf("%s: %s errno %d\n", what, p != NULL ? "block" : "NULL", error);
  errno = 0;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const size_t huge[] = {SIZE_MAX,     SIZE_MAX - 1,     SIZE_MAX - 64,
                         SIZE_MAX / 2, SIZE_MAX / 2 + 1, (size_t)PTRDIFF_MAX - 4096};
  errno = 0;
  for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); ++i) {
    printf("size %zx\n", huge[i]);
    show("malloc", do_malloc(sized(huge[i])));
    show("calloc 1", do_calloc(1, sized(huge[i])));
    show("calloc n", do_calloc(sized(huge[i]), 1));
    show("realloc NULL", do_realloc(NULL, sized(huge[i])));
    show("reallocarray NULL", do_reallocarray(NULL, sized(huge[i]), 1));
    show("memalign", do_memalign(64, sized(huge[i])));
    show("aligned_alloc", do_aligned_alloc(64, sized(huge[i])));
    show("valloc", do_valloc(sized(huge[i])));
    show("pvalloc", do_pvalloc(sized(huge[i])));
    void* p = &p;
    const int status = do_posix_memalign(&p, 64, sized(huge[i]));
    printf("posix_memalign: %d, pointer %s, errno %d\n", status, p == &p ? "kept" : "changed",
           errno);
    errno = 0;
  }
  // Products that overflow.
  show("calloc overflow", do_calloc(SIZE_MAX / 2, 3));
  show("calloc overflow 2", do_calloc((size_t)1 << 32, (size_t)1 << 32));
  show("reallocarray overflow", do_reallocarray(NULL, (size_t)1 << 32, (size_t)1 << 32));
  show("calloc zero", do_calloc(0, SIZE_MAX));

  // A block whose resizing fails stays what it was.
  pointer = do_malloc(100);
  memset(pointer, 7, 100);
  show("realloc", do_realloc(pointer, SIZE_MAX / 2));
  show("reallocarray", do_reallocarray(pointer, SIZE_MAX / 2, 4));
  for (int i = 0; i < 100; ++i) {
    if (((unsigned char*)pointer)[i] != 7) printf("byte %d changed\n", i);
  }
  printf("usable %d\n", do_usable(pointer) >= 100);
  show("realloc to nothing", do_realloc(pointer, 0));

  // Alignments: a power of two or not, zero, too small, too large.
  const size_t alignments[] = {
      0, 1, 2, 3, 4, 7, 8, 16, 24, 48, 4096, 5000, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2, SIZE_MAX};
  for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); ++i) {
    const size_t alignment = alignments[i];
    void* p = &p;
    const int status = do_posix_memalign(&p, alignment, 40);
    printf("alignment %zx: posix_memalign %d errno %d aligned %d\n", alignment, status, errno,
           status == 0 && (size_t)p % alignment == 0);
    if (status == 0) do_free(p);
    errno = 0;
    void* q = do_memalign(alignment, 40);
    printf("memalign %s errno %d aligned %d\n", q != NULL ? "block" : "NULL", errno,
           q != NULL && alignment != 0 && (alignment & (alignment - 1)) == 0 &&
               (size_t)q % alignment == 0);
    do_free(q);
    errno = 0;
    void* r = do_aligned_alloc(alignment, 40);
    printf("aligned_alloc %s errno %d\n", r != NULL ? "block" : "NULL", errno);
    do_free(r);
    errno = 0;
  }

  // Nothing.
  void* a = do_malloc(0);
  void* b = do_calloc(0, 0);
  void* c = do_realloc(NULL, 0);
  printf("zero: %d %d %d %d %d\n", a != NULL, b != NULL, c != NULL, a != b, b != c);
  show("realloc from zero", a = do_realloc(a, 10));
  printf("usable of NULL: %zu\n", do_usable(NULL));
  printf("usable of zero: %d\n", do_usable(b) < 64);
  do_free(a);
  do_free(b);
  do_free(c);
  errno = 77;
  do_free(NULL);
  do_free(do_malloc(10));
  do_free(do_malloc(10 << 20));
  printf("free keeps errno: %d\n", errno);
  errno = 78;
  do_free(do_realloc(do_malloc(10), 1000));
  printf("success keeps errno: %d\n", errno);
  return 0;
}
