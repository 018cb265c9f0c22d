// An allocator that reaches its own functions by symbol, as small ones do: calloc and realloc call
// malloc and free, and malloc_usable_size allocates to answer.
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

extern "C" {
void* malloc(size_t size) noexcept;
void free(void* block) noexcept;
}

namespace {

constexpr size_t kChunk = 64 << 20;
constexpr int kClasses = 40;
struct alignas(16) Header {
  size_t size;  // requested bytes
  Header* next;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Header* g_free[kClasses];  // blocks of 2^class bytes with their header
char* g_at = nullptr;
char* g_end = nullptr;

unsigned class_of(size_t size) {
  unsigned number = 5;
  while ((size_t{1} << number) < size + sizeof(Header)) ++number;
  return number;
}

Header* carve(size_t bytes) {
  if (bytes > static_cast<size_t>(g_end - g_at)) {
    const size_t chunk = bytes > kChunk ? bytes : kChunk;
    void* fresh = mmap(nullptr, chunk, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) return nullptr;
    g_at = static_cast<char*>(fresh);
    g_end = g_at + chunk;
  }
  auto* header = reinterpret_cast<Header*>(g_at);
  g_at += bytes;
  return header;
}

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }

}  // namespace

extern "C" {

void* malloc(size_t size) noexcept {
  Header* header = nullptr;
  if (size < size_t{1} << (kClasses - 2)) {
    const unsigned number = class_of(size);
    pthread_mutex_lock(&g_lock);
    header = g_free[number];
    if (header != nullptr) {
      g_free[number] = header->next;
    } else {
      header = carve(size_t{1} << number);
    }
    pthread_mutex_unlock(&g_lock);
  }
  if (header == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  header->size = size;
  return header + 1;
}

void free(void* block) noexcept {
  if (block == nullptr) return;
  Header* header = header_of(block);
  const unsigned number = class_of(header->size);
  pthread_mutex_lock(&g_lock);
  header->next = g_free[number];
  g_free[number] = header;
  pthread_mutex_unlock(&g_lock);
}

void* calloc(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* block = malloc(bytes);
  return block != nullptr ? memset(block, 0, bytes) : nullptr;
}

void* realloc(void* block, size_t size) noexcept {
  void* fresh = malloc(size);
  if (block == nullptr || fresh == nullptr) return fresh;
  const size_t old = header_of(block)->size;
  memcpy(fresh, block, old < size ? old : size);
  free(block);
  return fresh;
}

size_t malloc_usable_size(void* block) noexcept {
  free(malloc(10));
  return block != nullptr ? (size_t{1} << class_of(header_of(block)->size)) - sizeof(Header) : 0;
}
}
