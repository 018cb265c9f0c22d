#include "hook/real.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "base/atomic.h"
#include "hook/sampler.h"

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

link_map* object_of(const void* address) {
  dl_find_object found;
  return _dl_find_object(const_cast<void*>(address), &found) == 0 ? found.dlfo_link_map : nullptr;
}

template <typename Function>
const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
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
  g_apart = found.new_one != nullptr &&
            object_of(address_of(found.new_one)) == object_of(address_of(found.malloc));
  g_is_libc = object_of(address_of(found.malloc)) == object_of(address_of(gnu_get_libc_version));
  if (found.malloc_usable_size != nullptr &&
      object_of(address_of(found.malloc_usable_size)) == object_of(address_of(found.malloc))) {
    found.usable_size = found.malloc_usable_size;
  }
  g_real = found;
  g_way = Way::kEvery;
  store_release<uint32_t>(g_search, kDone);
  return true;
}

const char* allocator_path() {
  const link_map* object = object_of(address_of(g_real.malloc));
  return object != nullptr ? object->l_name : "";
}

bool allocator_is_libc() { return g_is_libc; }

bool operators_apart() { return g_apart; }

}  // namespace mtrace::hook
