// Allocates by every form that a report names (`call=`), with known sizes, and by one call site
// that calls several functions through a pointer. Prints "SITE CALL BYTES BLOCKS" for what lives.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <new>

#define SITE __attribute__((noinline, noclone))

namespace {

void* kept[64];
int count = 0;
volatile size_t zero = 0;

// Keeps the block, and the call out of the last place of its function.
SITE void keep(void* block) { kept[count++] = block; }

struct alignas(64) Wide {
  char bytes[100];  // 128 with its alignment
};

SITE void site_malloc() { keep(std::malloc(11)); }
SITE void site_calloc() { keep(std::calloc(2, 11)); }
SITE void site_realloc() { keep(std::realloc(nullptr, 33)); }
SITE void site_reallocarray() { keep(reallocarray(nullptr, 4, 11)); }
SITE void site_memalign() { keep(memalign(64, 55)); }
SITE void site_posix_memalign() {
  void* block = nullptr;
  if (posix_memalign(&block, 64, 66) == 0) keep(block);
}
SITE void site_aligned_alloc() { keep(aligned_alloc(64, 128)); }
SITE void site_new() { keep(::operator new(77)); }
SITE void site_new_array() { keep(::operator new[](88)); }
SITE void site_new_nothrow() { keep(::operator new[](99, std::nothrow)); }
SITE void site_aligned_new() { keep(::operator new(101, std::align_val_t(64))); }
SITE void site_aligned_new_array() { keep(::operator new[](102, std::align_val_t(128))); }
SITE void site_aligned_nothrow() { keep(::operator new(103, std::align_val_t(64), std::nothrow)); }
SITE void site_aligned_nothrow_array() {
  keep(::operator new[](104, std::align_val_t(64), std::nothrow));
}
SITE void site_wide() { keep(new Wide); }
SITE void site_strdup() { keep(strdup("twelve bytes")); }
SITE void site_strndup() { keep(strndup("twelve bytes", 6)); }
SITE void site_wcsdup() { keep(wcsdup(L"abc")); }
// Large ones and small ones go by different ways through the library.
SITE void site_large_new() { keep(::operator new(100000)); }
SITE void site_zero_new() { keep(::operator new(zero)); }
SITE void site_zero_new_array() { keep(::operator new[](zero, std::nothrow)); }
SITE void site_zero_aligned() { keep(::operator new(zero, std::align_val_t(64))); }
SITE void site_zero_aligned_array() {
  keep(::operator new[](zero, std::align_val_t(64), std::nothrow));
}
SITE void site_zero_malloc() { keep(std::malloc(zero)); }
SITE void site_after_strdup() {
  std::free(strdup("gone"));
  keep(std::malloc(44));
}

SITE void site_pointer(void* (*allocate)(size_t), size_t size) { keep(allocate(size)); }

}  // namespace

int main(int argc, char**) {
  for (int round = 0; round < 3; ++round) {
    site_malloc(), site_calloc(), site_realloc(), site_reallocarray(), site_memalign();
    site_posix_memalign(), site_aligned_alloc(), site_new(), site_new_array();
    count = 0;
  }
  site_new_nothrow(), site_aligned_new(), site_aligned_new_array(), site_aligned_nothrow();
  site_aligned_nothrow_array(), site_wide(), site_strdup(), site_strndup(), site_wcsdup(),
      site_large_new(), site_after_strdup();
  site_zero_new(), site_zero_new_array(), site_zero_aligned(), site_zero_aligned_array(),
      site_zero_malloc();
  void* (*const functions[])(size_t) = {std::malloc, ::operator new, ::operator new[], valloc};
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < 4; ++i) site_pointer(functions[i], 1000 * (i + 1));
  }
  if (argc > 1) {
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
  }
  return kept[0] == nullptr;
}
