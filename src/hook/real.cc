#include "hook/real.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "base/atomic.h"
#include "hook/sampler.h"
#include "unwind/linkage.h"

namespace mtrace::hook {

constinit Real g_real = {};

namespace {

enum Search : uint32_t { kNotBegun, kUnderWay, kDone };
uint32_t g_search = kNotBegun;
bool g_apart = false;
bool g_is_libc = false;

// The loader fills this in with the other relative relocations: null means that nothing that
// needs relocation, no call into libc among it, works yet.
const void* volatile g_relocated = &g_search;

using unwind::object_of;

template <typename Function>
const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// The function that the program's calls are bound to: the first in the order of the objects.
void* first_definition(const char* symbol) {
  for (const link_map* object = unwind::first_object(); object != nullptr;
       object = object->l_next) {
    if (object == object_of(&g_real)) continue;
    const Elf64_Sym* found = unwind::find_function(*object, symbol);
    if (found != nullptr) return reinterpret_cast<void*>(unwind::address_of(*object, *found));
  }
  return nullptr;
}

void take_over(Real& found) {
  g_apart = found.new_one != nullptr &&
            object_of(address_of(found.new_one)) == object_of(address_of(found.malloc));
  g_is_libc = true;
  const link_map* const libc = object_of(address_of(gnu_get_libc_version));
  const void* const allocate[] = {address_of(found.malloc),         address_of(found.calloc),
                                  address_of(found.realloc),        address_of(found.memalign),
                                  address_of(found.posix_memalign), address_of(found.aligned_alloc),
                                  address_of(found.valloc),         address_of(found.pvalloc)};
  for (const void* function : allocate) {
    g_is_libc &= function == nullptr || object_of(function) == libc;
  }
  if (found.malloc_usable_size != nullptr &&
      object_of(address_of(found.malloc_usable_size)) == object_of(address_of(found.malloc))) {
    found.usable_size = found.malloc_usable_size;
  }
  g_real = found;
  g_way = Way::kEvery;
  store_release<uint32_t>(g_search, kDone);
}

}  // namespace

bool is_relocated() { return g_relocated != nullptr; }

bool find_real() {
  uint32_t expected = kNotBegun;
  if (!is_relocated()) return false;
  if (!compare_exchange<uint32_t>(g_search, expected, kUnderWay)) return expected == kDone;
  Real found = {};
#define MTRACE_HOOK(member, symbol, result, parameters) \
  found.member = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, symbol));
#include "hook/hooks.def"
#undef MTRACE_HOOK
  dlerror();  // the program must not find our misses
  take_over(found);
  return true;
}

void find_real_late() {
  if (load_acquire(g_search) == kDone) return;
  Real found = {};
#define MTRACE_HOOK(member, symbol, result, parameters) \
  found.member = reinterpret_cast<result(*) parameters>(first_definition(symbol));
#include "hook/hooks.def"
#undef MTRACE_HOOK
  take_over(found);
}

const char* allocator_path() {
  const link_map* object = object_of(address_of(g_real.malloc));
  return object != nullptr ? object->l_name : "";
}

bool allocator_is_libc() { return g_is_libc; }

bool operators_apart() { return g_apart; }

}  // namespace mtrace::hook
