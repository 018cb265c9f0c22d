// One site for each function that jemalloc, tcmalloc and mimalloc offer beside those of libc, of
// whichever of them is in the process: weak references say which. See truth.h. Two phases: all is
// allocated; all is given back, every second block by another function than the allocator's own.
//
//   interfaces [signals | wait]...   wait: for a byte of the input before each phase
//   interfaces weak                  prints which functions there are, by reference and by dlsym
#include <dlfcn.h>

#include "truth.h"

#define WEAK __attribute__((weak))
typedef struct heap heap;

WEAK void *mallocx(size_t, int), *rallocx(void*, size_t, int);
WEAK size_t xallocx(void*, size_t, size_t, int), sallocx(const void*, int), nallocx(size_t, int);
WEAK void dallocx(void*, int), sdallocx(void*, size_t, int);

WEAK void *tc_malloc(size_t), *tc_malloc_skip_new_handler(size_t), *tc_calloc(size_t, size_t),
    *tc_realloc(void*, size_t), *tc_memalign(size_t, size_t), *tc_valloc(size_t),
    *tc_pvalloc(size_t), *tc_new(size_t), *tc_newarray(size_t),
    *tc_new_nothrow(size_t, const void*), *tc_newarray_nothrow(size_t, const void*),
    *tc_new_aligned(size_t, size_t), *tc_newarray_aligned(size_t, size_t);
WEAK int tc_posix_memalign(void**, size_t, size_t);
WEAK void tc_free(void*), tc_cfree(void*), tc_free_sized(void*, size_t), tc_delete(void*),
    tc_deletearray(void*), tc_delete_nothrow(void*, const void*), tc_delete_sized(void*, size_t),
    tc_deletearray_sized(void*, size_t), tc_delete_aligned(void*, size_t),
    tc_delete_sized_aligned(void*, size_t, size_t);
WEAK size_t tc_malloc_size(void*);

WEAK void *mi_malloc(size_t), *mi_malloc_small(size_t), *mi_mallocn(size_t, size_t),
    *mi_zalloc(size_t), *mi_calloc(size_t, size_t), *mi_realloc(void*, size_t),
    *mi_reallocf(void*, size_t), *mi_reallocn(void*, size_t, size_t),
    *mi_recalloc(void*, size_t, size_t), *mi_expand(void*, size_t),
    *mi_malloc_aligned(size_t, size_t), *mi_malloc_aligned_at(size_t, size_t, size_t),
    *mi_zalloc_aligned(size_t, size_t), *mi_calloc_aligned(size_t, size_t, size_t),
    *mi_realloc_aligned(void*, size_t, size_t), *mi_memalign(size_t, size_t),
    *mi_aligned_alloc(size_t, size_t), *mi_new(size_t), *mi_new_n(size_t, size_t),
    *mi_new_aligned(size_t, size_t), *mi_heap_malloc(heap*, size_t), *mi_heap_zalloc(heap*, size_t),
    *mi_heap_calloc(heap*, size_t, size_t), *mi_heap_mallocn(heap*, size_t, size_t),
    *mi_heap_malloc_small(heap*, size_t), *mi_heap_realloc(heap*, void*, size_t),
    *mi_heap_malloc_aligned(heap*, size_t, size_t),
    *mi_heap_zalloc_aligned_at(heap*, size_t, size_t, size_t),
    *mi_heap_realloc_aligned(heap*, void*, size_t, size_t);
WEAK int mi_reallocarr(void*, size_t, size_t), mi_posix_memalign(void**, size_t, size_t),
    mi_dupenv_s(char**, size_t*, const char*);
WEAK char *mi_strdup(const char*), *mi_strndup(const char*, size_t),
    *mi_realpath(const char*, char*), *mi_heap_strdup(heap*, const char*);
WEAK void mi_free(void*), mi_free_size(void*, size_t), mi_free_aligned(void*, size_t),
    mi_free_size_aligned(void*, size_t, size_t), mi_heap_delete(heap*), mi_heap_destroy(heap*);
WEAK size_t mi_usable_size(const void*);
WEAK heap* mi_heap_new(void);

static int phase = 1;

static void* keep(void* p, size_t n) {
  check(p != NULL, "allocation failed");
  fill(p, n);
  return p;
}

// The sites of an allocator, which GROUP names.
typedef void (*Site)(void);
extern const Site __start_jemalloc[], __stop_jemalloc[], __start_tcmalloc[], __stop_tcmalloc[],
    __start_mimalloc[], __stop_mimalloc[];
static void call_all(const Site* first, const Site* end) {
  for (; first != end; ++first) (*first)();
}
// A site that allocates in phase 1, by `making` (a block `p` of `bytes`), what phase 2 gives back
// by `giving` (of `p`).
#define MADE(name, bytes, making, giving) \
  static void* kept_##name;               \
  SITE void site_##name(void) {           \
    void* p = kept_##name;                \
    if (phase == 1) {                     \
      making;                             \
      kept_##name = p;                    \
      HOLD(bytes);                        \
    } else {                              \
      giving;                             \
      DROP(name, bytes);                  \
    }                                     \
    NO_TAIL;                              \
  }                                       \
  static const Site listed_##name __attribute__((section(GROUP), used)) = site_##name;
#define PLAIN(name, bytes, taking, giving) MADE(name, bytes, p = keep(taking, bytes), giving)
// One that makes a block and has it resized by `resizing` (of `p`) at once.
#define RESIZED(name, first, bytes, making, resizing, giving) \
  MADE(name, bytes, p = keep(making, first); p = keep(resizing, bytes), giving)

static int into(void** p, int (*call)(void**, size_t, size_t), size_t alignment, size_t size) {
  return call(p, alignment, size);
}
static void* posix(int (*call)(void**, size_t, size_t), size_t alignment, size_t size) {
  void* p = NULL;
  check(into(&p, call, alignment, size) == 0, "posix_memalign");
  return p;
}

// ---- jemalloc
#define GROUP "jemalloc"
enum { kZero = 0x40 };
PLAIN(mallocx, 1001, mallocx(sized(1001), 0), dallocx(p, 0))
PLAIN(mallocx_zero, 1002, mallocx(sized(1002), kZero), sdallocx(p, 1002, 0))
PLAIN(mallocx_then_free, 1003, mallocx(sized(1003), 6), free(p))
PLAIN(malloc_then_dallocx, 1004, malloc(sized(1004)), dallocx(p, 0))
PLAIN(malloc_then_sdallocx, 77, malloc(sized(77)), sdallocx(p, 77, 0))
RESIZED(rallocx, 10, 5005, mallocx(sized(10), 0), rallocx(p, sized(5005), 0), dallocx(p, 0))
RESIZED(realloc_of_mallocx, 10, 506, mallocx(sized(10), 0), realloc(p, sized(506)), free(p))
// Of one size class: in place.
MADE(xallocx, 1100, p = keep(mallocx(sized(1030), 0), 1030);
     check(xallocx(p, sized(1100), 0, 0) >= 1100, "xallocx within the size class"), dallocx(p, 0))
MADE(xallocx_fails, 100, p = keep(mallocx(sized(100), 0), 100);
     check(xallocx(p, sized(1 << 20), 0, 0) < 1 << 20, "xallocx of a small block to 1 MiB");
     check(sallocx(p, 0) >= 100, "sallocx");
     check(nallocx(100, 0) == sallocx(p, 0), "nallocx"), dallocx(p, 0))

// ---- tcmalloc
#undef GROUP
#define GROUP "tcmalloc"
static const char nothrow;
PLAIN(tc_malloc, 2001, tc_malloc(sized(2001)), tc_free(p))
PLAIN(tc_malloc_skip, 2002, tc_malloc_skip_new_handler(sized(2002)), free(p))
PLAIN(tc_calloc, 2003, tc_calloc(sized(2003), 1), tc_cfree(p))
PLAIN(tc_memalign, 2004, tc_memalign(64, sized(2004)), tc_free_sized(p, 2004))
PLAIN(tc_posix_memalign, 2005, posix(tc_posix_memalign, 64, sized(2005)), tc_free(p))
PLAIN(tc_valloc, 2006, tc_valloc(sized(2006)), free(p))
PLAIN(tc_pvalloc, 4096, tc_pvalloc(sized(4096)), tc_free(p))
PLAIN(tc_new, 2008, tc_new(sized(2008)), tc_delete(p))
PLAIN(tc_newarray, 2009, tc_newarray(sized(2009)), tc_deletearray(p))
PLAIN(tc_new_nothrow, 2010, tc_new_nothrow(sized(2010), &nothrow), tc_delete_nothrow(p, &nothrow))
PLAIN(tc_newarray_nothrow, 2011, tc_newarray_nothrow(sized(2011), &nothrow),
      tc_deletearray_sized(p, 2011))
PLAIN(tc_new_aligned, 2012, tc_new_aligned(sized(2012), 128), tc_delete_aligned(p, 128))
PLAIN(tc_newarray_aligned, 2013, tc_newarray_aligned(sized(2013), 128),
      tc_delete_sized_aligned(p, 2013, 128))
PLAIN(tc_new_sized, 2014, tc_new(sized(2014)), tc_delete_sized(p, 2014))
PLAIN(malloc_then_tc_free, 2015, malloc(sized(2015)), tc_free(p))
RESIZED(tc_realloc, 10, 20016, tc_malloc(sized(10)), tc_realloc(p, sized(20016)), tc_free(p))
RESIZED(tc_realloc_of_malloc, 10, 2017, malloc(sized(10)), tc_realloc(p, sized(2017)), free(p))

// ---- mimalloc
#undef GROUP
#define GROUP "mimalloc"
static heap* own;     // whose blocks go one by one
static heap* doomed;  // whose blocks go with it
static char text[] = "a text of 24 characters.";
PLAIN(mi_malloc, 3001, mi_malloc(sized(3001)), mi_free(p))
PLAIN(mi_malloc_small, 301, mi_malloc_small(sized(301)), mi_free_size(p, 301))
PLAIN(mi_mallocn, 3010, mi_mallocn(sized(301), 10), mi_free(p))
PLAIN(mi_zalloc, 3004, mi_zalloc(sized(3004)), mi_free(p))
PLAIN(mi_calloc, 3005, mi_calloc(sized(601), 5), mi_free(p))
PLAIN(mi_malloc_aligned, 3006, mi_malloc_aligned(sized(3006), 4096), mi_free_aligned(p, 4096))
PLAIN(mi_malloc_aligned_at, 3007, mi_malloc_aligned_at(sized(3007), 256, 16), mi_free(p))
PLAIN(mi_zalloc_aligned, 3008, mi_zalloc_aligned(sized(3008), 512),
      mi_free_size_aligned(p, 3008, 512))
PLAIN(mi_calloc_aligned, 3009, mi_calloc_aligned(sized(1003), 3, 64), mi_free(p))
PLAIN(mi_posix_memalign, 3011, posix(mi_posix_memalign, 64, sized(3011)), mi_free(p))
PLAIN(mi_memalign, 3012, mi_memalign(64, sized(3012)), mi_free(p))
PLAIN(mi_aligned_alloc, 3072, mi_aligned_alloc(64, sized(3072)), mi_free(p))
PLAIN(mi_strdup, 25, mi_strdup(text), mi_free(p))
PLAIN(mi_strndup, 11, mi_strndup(text, sized(10)), mi_free(p))
PLAIN(mi_realpath, 5, mi_realpath("/usr/..//tmp/.", NULL), mi_free(p))
PLAIN(mi_new, 3016, mi_new(sized(3016)), mi_free(p))
PLAIN(mi_new_n, 3030, mi_new_n(sized(303), 10), mi_free(p))
PLAIN(mi_new_aligned, 3018, mi_new_aligned(sized(3018), 128), mi_free(p))
RESIZED(mi_realloc, 10, 30019, mi_malloc(sized(10)), mi_realloc(p, sized(30019)), mi_free(p))
RESIZED(mi_reallocf, 10, 30020, mi_malloc(sized(10)), mi_reallocf(p, sized(30020)), mi_free(p))
RESIZED(mi_reallocn, 10, 3030, mi_malloc(sized(10)), mi_reallocn(p, sized(303), 10), mi_free(p))
RESIZED(mi_recalloc, 10, 3040, mi_calloc(sized(10), 1), mi_recalloc(p, sized(304), 10), mi_free(p))
RESIZED(mi_realloc_aligned, 10, 3023, mi_malloc(sized(10)), mi_realloc_aligned(p, sized(3023), 256),
        mi_free(p))
RESIZED(mi_expand, 1000, 1010, mi_malloc(sized(1000)), mi_expand(p, sized(1010)), mi_free(p))
static void* reallocated_in_place_of(void* p) {
  check(mi_reallocarr(&p, sized(31), 100) == 0, "mi_reallocarr");
  return p;
}
RESIZED(mi_reallocarr, 10, 3100, mi_malloc(sized(10)), reallocated_in_place_of(p), mi_free(p))
static void* variable(void) {
  char* p = NULL;
  size_t size = 0;
  check(mi_dupenv_s(&p, &size, "MTRACE_A_VARIABLE") == 0, "mi_dupenv_s");
  return p;
}
PLAIN(mi_dupenv_s, 17, variable(), mi_free(p))
MADE(mi_expand_fails, 100, p = keep(mi_malloc(sized(100)), 100);
     check(mi_expand(p, sized(1 << 20)) == NULL, "mi_expand of a small block to 1 MiB");
     check(mi_usable_size(p) >= 100, "mi_usable_size"), mi_free(p))
PLAIN(mi_heap_malloc, 3101, mi_heap_malloc(own, sized(3101)), mi_free(p))
PLAIN(mi_heap_zalloc, 3102, mi_heap_zalloc(own, sized(3102)), mi_free(p))
PLAIN(mi_heap_calloc, 3103, mi_heap_calloc(own, sized(3103), 1), mi_free(p))
PLAIN(mi_heap_mallocn, 3120, mi_heap_mallocn(own, sized(312), 10), mi_free(p))
PLAIN(mi_heap_malloc_small, 315, mi_heap_malloc_small(own, sized(315)), mi_free(p))
PLAIN(mi_heap_strdup, 25, mi_heap_strdup(own, text), mi_free(p))
PLAIN(mi_heap_malloc_aligned, 3107, mi_heap_malloc_aligned(own, sized(3107), 1024), mi_free(p))
PLAIN(mi_heap_zalloc_aligned_at, 3108, mi_heap_zalloc_aligned_at(own, sized(3108), 128, 8),
      mi_free(p))
RESIZED(mi_heap_realloc, 10, 31009, mi_heap_malloc(own, sized(10)),
        mi_heap_realloc(own, p, sized(31009)), mi_free(p))
RESIZED(mi_heap_realloc_aligned, 10, 3110, mi_heap_malloc(own, sized(10)),
        mi_heap_realloc_aligned(own, p, sized(3110), 64), mi_free(p))
// Of these nothing is given back but the heap.
PLAIN(doomed, 3201, mi_heap_malloc(doomed, sized(3201)), (void)p)
PLAIN(doomed_aligned, 3202, mi_heap_malloc_aligned(doomed, sized(3202), 4096), (void)p)
PLAIN(doomed_small, 8, mi_heap_malloc_small(doomed, sized(8)), (void)p)
PLAIN(doomed_large, 5000000, mi_heap_malloc(doomed, sized(5000000)), (void)p)
static void of_mimalloc(void) {
  if (phase == 1) {
    own = mi_heap_new();
    doomed = mi_heap_new();
  }
  call_all(__start_mimalloc, __stop_mimalloc);
  if (phase == 2) {
    mi_heap_delete(own);
    mi_heap_destroy(doomed);
  }
}

static void print_weak(const char* name, const void* reference) {
  dlerror();
  const void* const found = dlsym(RTLD_DEFAULT, name);
  printf("%s %s %s %s\n", name, reference != NULL ? "there" : "absent",
         found != NULL ? "there" : "absent", dlerror() != NULL ? "error" : "none");
}

int main(int argc, char** argv) {
  int waits = 0;
  static char variable_set[] = "MTRACE_A_VARIABLE=sixteen letters!";
  putenv(variable_set);
  begin(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "signals") == 0) truth_signals = 1;
    if (strcmp(argv[i], "wait") == 0) waits = 1;
    if (strcmp(argv[i], "weak") == 0) {
      print_weak("mallocx", (const void*)mallocx);
      print_weak("dallocx", (const void*)dallocx);
      print_weak("tc_malloc", (const void*)tc_malloc);
      print_weak("mi_malloc", (const void*)mi_malloc);
      print_weak("mi_heap_malloc", (const void*)mi_heap_malloc);
      print_weak("je_malloc", NULL);
      print_weak("_rjem_malloc", NULL);
      return 0;
    }
  }
  for (phase = 1; phase <= 2; ++phase) {
    char byte;
    if (waits) {
      printf("ready %d\n", phase);
      fflush(stdout);
      if (read(0, &byte, 1) != 1) return 1;
    }
    if (mallocx != NULL) call_all(__start_jemalloc, __stop_jemalloc);
    if (tc_malloc != NULL) {
      call_all(__start_tcmalloc, __stop_tcmalloc);
      const size_t size = phase == 1 ? tc_malloc_size(kept_tc_malloc) : 0;
      check(size == 0 || size >= 2001, "size");
    }
    if (mi_malloc != NULL) of_mimalloc();
    tell(phase);
  }
  if (waits) {
    char byte;
    print("done");
    return read(0, &byte, 1) < 0;
  }
  return 0;
}
