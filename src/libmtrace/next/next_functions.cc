#include "next/next_functions.h"

#include <errno.h>
#include <link.h>

#include <cstring>

#include "base/atomic.h"
#include "base/machine.h"
#include "base/process.h"
#include "modules/c_library.h"
#include "modules/linkage.h"

// This library's malloc_usable_size under another name, in malloc_hooks.cc.
extern "C" {
[[gnu::visibility("hidden")]] size_t mtrace_own_usable_size(void* block) noexcept;
}

namespace mtrace::next {

constinit Bootstrap g_bootstrap;
MTRACE_HOT_TABLE constinit NextFunctions g_next = {};
// Where the hook of syscall(2), written in assembly, jumps to.
using SystemCall = long (*)(long, long, long, long, long, long, long);
extern "C" [[gnu::visibility("hidden")]] SystemCall mtrace_next_system_call;
constinit SystemCall mtrace_next_system_call = nullptr;

namespace internal {
bool operators_apart = false;
}
namespace {

enum State : uint32_t { kNotBegun, kUnderWay, kDone };
uint32_t g_state = kNotBegun;
bool g_is_libc = false;
bool g_replaced = false;

// The loader fills this pointer in with the other relative relocations. Until then the pointer is
// null or, with some linkers, the address less the load base; and nothing that needs relocation
// works yet, calls into libc included.
const void* volatile g_relocated = &g_state;

using modules::object_of;

template <typename Function>
const void* pointer_to(Function* function) {
  return reinterpret_cast<const void*>(function);
}
// The object that defines the function; nullptr: unknown.
template <typename Function>
const link_map* definer(Function* function) {
  return object_of(pointer_to(function));
}

// dlsym(RTLD_NEXT), called only for a symbol that an object may define: a miss allocates and frees,
// and libc's allocator may be replaced by one that is not ready (a starting sanitizer).
void* next_definition(const char* symbol) {
  const link_map* object = object_of(&g_next);
  while (object != nullptr && (object = object->l_next) != nullptr) {
    if (!modules::may_define(*object, symbol)) continue;
    const modules::LibcFunctions& libc = modules::libc();
    if (libc.symbol == nullptr) {
      const Elf64_Sym* const found = modules::find_definition(*object, symbol);
      if (found != nullptr) return reinterpret_cast<void*>(modules::address_of(*object, *found));
      continue;
    }
    void* found = libc.symbol(RTLD_NEXT, symbol);
    if (found == nullptr) libc.error();  // the program must not find our miss
    return found;
  }
  return nullptr;
}

// Calls this library's own function for a block that no other allocator knows: a wrong size shows
// that valgrind redirects the call. The totals of valgrind's tool do not change.
bool is_replaced_by_valgrind() {
  if (!base::on_valgrind()) return false;
  void* block = g_bootstrap.allocate(1, 16);
  return block != nullptr && mtrace_own_usable_size(block) != 1;
}

// ---- Functions in place of those of musl that allocate by another one's symbol: that call would
// come back to a hook, which would find libc in place of the program's code as its caller.

// musl maps each larger block by itself, with every allocator that it has had.
constexpr size_t kMostOnHeap = 0x1c00 * 4 * sizeof(size_t);

void* allocate_zeroed(size_t count, size_t size) {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = g_next.malloc(product);
  if (block != nullptr && product <= kMostOnHeap) memset(block, 0, product);
  return block;
}

void* allocate_aligned(size_t alignment, size_t size) {
  return g_next.aligned_alloc(alignment, size);
}

int allocate_aligned_into(void** result, size_t alignment, size_t size) {
  if (alignment < sizeof(void*)) return EINVAL;
  void* const block = g_next.aligned_alloc(alignment, size);
  if (block == nullptr) return errno;
  *result = block;
  return 0;
}

void* allocate_page_aligned(size_t size) {
  return g_next.aligned_alloc(machine::page_bytes(), size);
}

// Puts them into `found` where that has musl's calloc, memalign, posix_memalign and valloc.
void bypass_hooks(NextFunctions& found) {
  const link_map* const libc = definer(found.exit_now);
  const auto is_libcs = [=](auto* function) {
    return function != nullptr && definer(function) == libc;
  };
  if (is_libcs(found.malloc) && is_libcs(found.calloc)) found.calloc = allocate_zeroed;
  if (!is_libcs(found.aligned_alloc)) return;
  if (is_libcs(found.memalign)) found.memalign = allocate_aligned;
  if (is_libcs(found.posix_memalign)) found.posix_memalign = allocate_aligned_into;
  if (is_libcs(found.valloc)) found.valloc = allocate_page_aligned;
}

void take_over(NextFunctions& found) {
  internal::operators_apart =
      found.new_one != nullptr && definer(found.new_one) == definer(found.malloc);
  const auto is_libcs = [](auto* function) {
    return function == nullptr || modules::is_in_glibc(pointer_to(function));
  };
  g_is_libc = is_libcs(found.malloc) && is_libcs(found.calloc) && is_libcs(found.realloc) &&
              is_libcs(found.memalign) && is_libcs(found.posix_memalign) &&
              is_libcs(found.aligned_alloc) && is_libcs(found.valloc) && is_libcs(found.pvalloc);
  if (found.malloc_usable_size != nullptr &&
      definer(found.malloc_usable_size) == definer(found.malloc)) {
    found.usable_size = found.malloc_usable_size;
  }
  if (!modules::is_glibc()) bypass_hooks(found);
  g_next = found;
  mtrace_next_system_call = found.system_call;
  store_release<uint32_t>(g_state, kDone);
}

}  // namespace

bool is_relocated() { return g_relocated == &g_state; }

void* symbol_of(const char* library, const char* symbol) {
  const modules::LibcFunctions& libc = modules::libc();
  if (g_next.dlclose == nullptr || libc.open == nullptr || libc.symbol == nullptr) return nullptr;
  void* const handle = libc.open(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const found = libc.symbol(handle, symbol);
  g_next.dlclose(handle);
  return found;
}

long answer_of(long result) {
  if (!base::failed(result)) return result;
  if (is_relocated()) errno = static_cast<int>(-result);
  return -1;
}

bool find_next_functions() {
  uint32_t expected = kNotBegun;
  if (!is_relocated()) return false;
  if (!compare_exchange<uint32_t>(g_state, expected, kUnderWay)) return expected == kDone;
  NextFunctions found = {};
#define MTRACE_HOOK(member, symbol, result, parameters) \
  found.member = reinterpret_cast<result(*) parameters>(next_definition(symbol));
#include "next/hooks.def"
#undef MTRACE_HOOK
  g_replaced = is_replaced_by_valgrind();
  take_over(found);
  return true;
}

void find_real_late() {
  if (load_acquire(g_state) == kDone) return;
  const link_map* const own = object_of(&g_next);
  NextFunctions found = {};
#define MTRACE_HOOK(member, symbol, result, parameters) \
  found.member = reinterpret_cast<result(*) parameters>(modules::first_definition(symbol, own));
#include "next/hooks.def"
#undef MTRACE_HOOK
  take_over(found);
}

Allocators allocators() {
  return {object_of(modules::global_definition("malloc")), definer(g_next.malloc)};
}

const char* allocator_path() {
  const link_map* object = definer(g_next.malloc);
  return object != nullptr && !modules::is_program(*object) ? object->l_name : "";
}

bool malloc_is_replaced() { return g_replaced; }

bool allocator_is_libc() { return g_is_libc; }

}  // namespace mtrace::next
