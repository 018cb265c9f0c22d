// What fresh memory holds. Argument 1: the byte that MTRACE_FILL says, or "none"; argument 2 "own":
// the program uses all that malloc_usable_size() gives it, as some do.
#include <malloc.h>

#include <initializer_list>
#include <new>

#include "mtrace.h"
#include "truth.h"

namespace {

constexpr unsigned char kDirt = 0x5a;

int expected;

void show(const char* what, size_t size, size_t at, int byte) {
  printf("wrong: %s of %zu: byte %zu is %02x\n", what, size, at, byte);
  fflush(stdout);
  _exit(99);
}
void expect(const char* what, const void* p, size_t size, size_t from, size_t to, int byte) {
  const auto* bytes = static_cast<const unsigned char*>(p);
  if (from < to && bytes[from] == byte &&
      memcmp(bytes + from, bytes + from + 1, to - from - 1) == 0)
    return;
  for (size_t i = from; i < to; ++i) {
    if (bytes[i] != byte) show(what, size, i, bytes[i]);
  }
}

using Allocate = void* (*)(size_t);
using Free = void (*)(void*);
struct Way {
  const char* name;
  Allocate allocate;
  Free release;
};

const Way kWays[] = {
    {"malloc", [](size_t n) { return malloc(sized(n)); }, free},
    {"realloc", [](size_t n) { return realloc(nullptr, sized(n)); }, free},
    {"reallocarray", [](size_t n) { return reallocarray(nullptr, sized(n), 1); }, free},
    {"memalign", [](size_t n) { return memalign(64, sized(n)); }, free},
    {"posix_memalign",
     [](size_t n) {
       void* p = nullptr;
       return posix_memalign(&p, 256, sized(n)) == 0 ? p : nullptr;
     },
     free},
    {"aligned_alloc", [](size_t n) { return aligned_alloc(32, sized((n + 31) & ~size_t{31})); },
     free},
    {"valloc", [](size_t n) { return valloc(sized(n)); }, free},
    {"pvalloc", [](size_t n) { return pvalloc(sized(n)); }, free},
    {"operator new", [](size_t n) { return ::operator new(sized(n)); },
     [](void* p) { ::operator delete(p); }},
    {"operator new[]", [](size_t n) { return ::operator new[](sized(n)); },
     [](void* p) { ::operator delete[](p); }},
    {"operator new, nothrow", [](size_t n) { return ::operator new(sized(n), std::nothrow); },
     [](void* p) { ::operator delete(p, std::nothrow); }},
    {"operator new, aligned",
     [](size_t n) { return ::operator new (sized(n), std::align_val_t{64}); },
     [](void* p) { ::operator delete (p, std::align_val_t{64}); }},
    {"operator new[], aligned, nothrow",
     [](size_t n) { return ::operator new[](sized(n), std::align_val_t{128}, std::nothrow); },
     [](void* p) { ::operator delete[](p, std::align_val_t{128}, std::nothrow); }},
};
constexpr size_t kSizes[] = {0, 1, 7, 16, 17, 24, 25, 100, 1000, 4096, 4097, 60000, 300000};

void each_way() {
  // jemalloc has none, and libc's own is not for its free.
  const bool lenient = getenv("TRUTH_LENIENT") != nullptr;
  for (const Way& way : kWays) {
    if (lenient && strcmp(way.name, "pvalloc") == 0) continue;
    for (const size_t size : kSizes) {
      // So that what comes next has been used before.
      void* dirty[8];
      for (void*& p : dirty) memset(p = way.allocate(size), kDirt, size);
      for (void* p : dirty) way.release(p);
      for (void*& p : dirty) {
        p = way.allocate(size);
        expect(way.name, p, size, 0, size, expected);
        memset(p, kDirt, size);
      }
      for (void* p : dirty) way.release(p);
      // calloc's memory has content.
      void* zeros = calloc(sized(size), 1);
      expect("calloc", zeros, size, 0, size, 0);
      free(zeros);
    }
  }
}

template <typename Resize>
void grow(const char* what, Resize resize) {
  for (const size_t size : kSizes) {
    for (const size_t to : kSizes) {
      if (size == 0 || to == 0) continue;
      auto* p = static_cast<unsigned char*>(malloc(sized(size)));
      memset(p, kDirt, size);
      p = static_cast<unsigned char*>(resize(p, to));
      expect(what, p, to, 0, size < to ? size : to, kDirt);
      if (size < to) expect(what, p, to, size, to, expected);
      free(p);
    }
  }
}

// A block that the library does not know keeps everything that may be content.
void unknown() {
  const bool traced = mtrace_stop() == 1;
  auto* p = static_cast<unsigned char*>(malloc(sized(100)));
  expect("malloc while stopped", p, 100, 0, 100, expected);
  memset(p, kDirt, 100);
  mtrace_start();
  p = static_cast<unsigned char*>(realloc(p, sized(5000)));
  expect("realloc of an unknown block", p, 5000, 0, 100, kDirt);
  expect("realloc of an unknown block", p, 5000, 200, 5000, expected);
  free(p);
  if (!traced) _exit(98);
}

// Failures write nothing.
void failures() {
  auto* p = static_cast<unsigned char*>(malloc(sized(100)));
  memset(p, kDirt, 100);
  if (realloc(p, sized(SIZE_MAX / 2)) != nullptr) _exit(97);
  expect("realloc that fails", p, 100, 0, 100, kDirt);
  if (malloc(sized(SIZE_MAX / 2)) != nullptr) _exit(97);
  free(p);
}

void usable() {
  for (const size_t size : kSizes) {
    for (const size_t more : {1, 100, 5000}) {
      void* p = malloc(sized(size));
      const size_t all = malloc_usable_size(p);
      memset(p, kDirt, all);
      p = realloc(p, sized(all + more));
      expect("all that was usable", p, all, 0, all, kDirt);
      free(p);
    }
  }
}

// What there is without filling: what the last one left.
void none() {
  for (const size_t size : {size_t{1000}, size_t{5000}}) {
    auto* p = static_cast<unsigned char*>(malloc(sized(size)));
    memset(p, kDirt, size);
    free(p);
    p = static_cast<unsigned char*>(malloc(sized(size)));
    printf("%02x\n", p[size / 2]);
    free(p);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2) {
    usable();
  } else if (strcmp(argv[1], "none") == 0) {
    none();
  } else {
    expected = atoi(argv[1]);
    each_way();
    grow("realloc", [](void* p, size_t n) { return realloc(p, sized(n)); });
    grow("reallocarray", [](void* p, size_t n) { return reallocarray(p, sized(n), 1); });
    unknown();
    failures();
  }
  puts("fine");
  return 0;
}
