// One site for each allocation function of C; see truth.h. Four phases: everything is allocated;
// some is given back and some resized, partly by other sites; nothing remains of what is done;
// all is given back.
#include <dlfcn.h>
#include <malloc.h>

#include "truth.h"

static void* slots[64];
// jemalloc and valgrind leave errno alone when realloc fails, and have no pvalloc: that of libc
// gives blocks that their free does not know. musl's realloc(p, 0) gives a block, and it has no
// pvalloc.
static int lenient;

static void* keep(int slot, void* p, size_t n) {
  check(p != NULL, "allocation failed");
  check(malloc_usable_size(p) >= n, "usable size is too small");
  fill(p, malloc_usable_size(p));
  slots[slot] = p;
  return p;
}

#define KEEP(slot, p, n) (keep(slot, p, n), HOLD(n))

SITE void site_malloc(void) {
  for (int i = 0; i < 3; ++i) {
    KEEP(i, malloc(sized(1000 + i)), 1000 + i);
  }
}
SITE void site_calloc(void) {
  unsigned char* p = calloc(sized(7), sized(11));
  for (int i = 0; i < 77; ++i) check(p[i] == 0, "calloc does not clear");
  KEEP(3, p, 77);
}
SITE void site_malloc_zero(void) {
  void* a = malloc(sized(0));
  void* b = malloc(sized(0));
  check(a != b, "malloc(0) twice the same");
  keep(4, a, 0);
  KEEP(5, b, 0);
  HOLD(0);
}
SITE void site_to_grow(void) { KEEP(6, malloc(sized(100)), 100); }
SITE void site_grow(void) {
  slots[6] = realloc(slots[6], sized(100000));
  KEEP(6, slots[6], 100000);
  DROP(to_grow, 100);
}
SITE void site_to_shrink(void) { KEEP(7, malloc(sized(5000)), 5000); }
SITE void site_shrink(void) {
  KEEP(7, realloc(slots[7], sized(50)), 50);
  DROP(to_shrink, 5000);
}
SITE void site_realloc_null(void) { KEEP(8, realloc(slots[63], sized(333)), 333); }
SITE void site_realloc_zero(void) {
  void* p = malloc(sized(222));
  check(p != NULL, "malloc");
  p = realloc(p, sized(0));
  check(p == NULL || lenient, "realloc(p, 0)");
  free(p);
  NO_TAIL;
}
SITE void site_realloc_null_zero(void) { KEEP(9, realloc(slots[63], sized(0)), 0); }
SITE void site_realloc_fails(void) {
  void* p = keep(10, malloc(sized(444)), 444);
  errno = 0;
  check(realloc(p, sized((size_t)-1 / 2 - 4096)) == NULL, "realloc too large");
  check(errno == ENOMEM || lenient, "errno of realloc");
  fill(slots[10], 444);
  HOLD(444);
}
SITE void site_realloc_mmapped(void) {
  // Above the threshold at which glibc moves pages instead of bytes.
  void* p = malloc(sized(1 << 20));
  KEEP(11, realloc(p, sized(3 << 20)), 3 << 20);
}
SITE void site_reallocarray(void) {
  KEEP(12, reallocarray(slots[63], sized(13), sized(17)), 13 * 17);
  errno = 0;
  void* failed = reallocarray(slots[12], sized((size_t)1 << 63), sized(4));
  check(failed == NULL && errno == ENOMEM, "reallocarray overflow");
}
SITE void site_memalign(void) {
  void* p = memalign(sized(256), sized(700));
  check((size_t)p % 256 == 0, "memalign");
  KEEP(13, p, 700);
}
SITE void site_posix_memalign(void) {
  void* p = NULL;
  check(posix_memalign(&p, sized(4096), sized(123)) == 0 && (size_t)p % 4096 == 0,
        "posix_memalign");
  KEEP(14, p, 123);
}
SITE void site_aligned_alloc(void) {
  void* p = aligned_alloc(sized(64), sized(640));
  check((size_t)p % 64 == 0, "aligned_alloc");
  KEEP(15, p, 640);
}
SITE void site_valloc(void) {
  void* p = valloc(sized(55));
  check((size_t)p % 4096 == 0, "valloc");
  KEEP(16, p, 55);
}
SITE void site_pvalloc(void) {
  void* p = pvalloc(sized(66));
  check((size_t)p % 4096 == 0 && malloc_usable_size(p) >= 4096, "pvalloc");
  KEEP(17, p, 66);
}
SITE void site_strdup(void) {
  static const char* volatile text = "twenty-one characters";
  KEEP(18, strdup(text), 22);
}
SITE void site_strndup(void) {
  static const char* volatile text = "twenty-one characters";
  KEEP(19, strndup(text, sized(6)), 7);
}
SITE void site_asprintf(void) {
  char* text = NULL;
  const int length = asprintf(&text, "%*d", 500 + (int)opaque_zero, 7);
  check(length == 500, "asprintf");
  KEEP(20, text, 501);
}
SITE void site_getline(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char* line = NULL;
  size_t size = 0;
  check(file != NULL && getline(&line, &size, file) > 0, "getline");
  fclose(file);
  KEEP(21, line, size);
}
SITE void site_free_in_between(void) {
  for (int i = 0; i < 1000; ++i) {
    void* p = malloc(sized(10 + i));
    check(p != NULL, "malloc");
    fill(p, 10);
    free(p);
  }
  NO_TAIL;
}
// cfree and the functions of C23: the C library or another allocator may have them.
static void (*cfree_function)(void*);
static void (*sized_function)(void*, size_t);
static void (*aligned_function)(void*, size_t, size_t);

// Outside any site: a name that dlsym does not find costs memory for the message.
static void find_other_frees(void) {
  cfree_function = (void (*)(void*))dlsym(RTLD_DEFAULT, "cfree");
  sized_function = (void (*)(void*, size_t))dlsym(RTLD_DEFAULT, "free_sized");
  aligned_function = (void (*)(void*, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
}

SITE void site_other_frees(void) {
  void* p = malloc(sized(31));
  fill(p, 31);
  if (cfree_function != NULL) {
    cfree_function(p);
  } else {
    free(p);
  }
  p = malloc(sized(32));
  fill(p, 32);
  if (sized_function != NULL) {
    sized_function(p, 32);
  } else {
    free(p);
  }
  p = aligned_alloc(sized(128), sized(256));
  fill(p, 256);
  if (aligned_function != NULL) {
    aligned_function(p, 128, 256);
  } else {
    free(p);
  }
  free(NULL);
  NO_TAIL;
}

static SITE void release(int slot) {
  free(slots[slot]);
  slots[slot] = NULL;
  NO_TAIL;
}

// The first tell() makes the buffer of stdout. Outside any site.
int main(int argc, char** argv) {
  begin(argc, argv);
  lenient = getenv("TRUTH_LENIENT") != NULL;
  find_other_frees();
  site_malloc();
  site_calloc();
  site_malloc_zero();
  site_to_grow();
  site_to_shrink();
  site_realloc_null();
  site_realloc_zero();
  site_realloc_null_zero();
  site_realloc_fails();
  site_realloc_mmapped();
  site_reallocarray();
  site_memalign();
  site_posix_memalign();
  site_aligned_alloc();
  site_valloc();
  if (!lenient) site_pvalloc();
  site_strdup();
  site_strndup();
  site_asprintf();
  site_getline();
  tell(1);

  site_grow();
  site_shrink();
  release(1);
  DROP(malloc, 1001);
  release(4);
  DROP(malloc_zero, 0);
  release(13);
  DROP(memalign, 700);
  release(18);
  DROP(strdup, 22);
  tell(2);

  site_free_in_between();
  site_other_frees();
  tell(3);

  for (int slot = 0; slot < 64; ++slot) release(slot);
  for (int i = 0; i < truth_count; ++i) truth_sites[i].bytes = truth_sites[i].blocks = 0;
  tell(4);
  return 0;
}
