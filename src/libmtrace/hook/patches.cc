#include "hook/patches.h"

#include <cstdint>
#include <cstring>

#include "hook/next_functions.h"
#include "unwind/linkage.h"

namespace mtrace::hook {
namespace {

// A hooked function of which the program has a definition.
struct Target {
  const char* name;
  uintptr_t hook;
  uintptr_t real;
};

struct Search {
  bool attach;
  format::Patch* patches;
  size_t found;
  Target targets[128];
  unsigned count;

  uintptr_t from(const Target& target) const { return attach ? target.real : target.hook; }
  uintptr_t to(const Target& target) const { return attach ? target.hook : target.real; }
  void add(const void* word, uintptr_t before, uintptr_t after) {
    if (found < format::kMostPatches) {
      patches[found] = {reinterpret_cast<uintptr_t>(word), before, after};
    }
    ++found;
  }
};

template <typename Function>
uintptr_t address_of(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}

void add_target(Search& search, const link_map& own, const char* name, uintptr_t real) {
  const Elf64_Sym* hook = unwind::find_function(own, name);
  if (hook == nullptr || real == 0) return;
  search.targets[search.count++] = {name, unwind::address_of(own, *hook), real};
}

void visit_reference(uintptr_t* word, const char* name, void* context) {
  auto& search = *static_cast<Search*>(context);
  const uintptr_t value = *word;
  for (unsigned i = 0; i < search.count; ++i) {
    const Target& target = search.targets[i];
    if (value != search.from(target) || strcmp(target.name, name) != 0) continue;
    return search.add(word, value, search.to(target));
  }
}

void visit_definition(Search& search, const link_map& object, const Target& target) {
  const Elf64_Sym* symbol = unwind::find_function(object, target.name);
  if (symbol == nullptr || unwind::address_of(object, *symbol) != search.from(target)) return;
  search.add(&symbol->st_value, symbol->st_value, search.to(target) - object.l_addr);
}

}  // namespace

size_t list_patches(bool attach, format::Patch* patches) {
  const link_map* own = unwind::object_of(&g_next);
  if (own == nullptr) return 0;
  Search search = {attach, patches, 0, {}, 0};
#define MTRACE_HOOK(member, symbol, result, parameters) \
  add_target(search, *own, symbol, address_of(g_next.member));
#include "hook/hooks.def"
#undef MTRACE_HOOK
  for (const link_map* object = unwind::first_object(); object != nullptr;
       object = object->l_next) {
    if (object == own || unwind::is_loader(*object)) continue;
    for (unsigned i = 0; i < search.count; ++i)
      visit_definition(search, *object, search.targets[i]);
    unwind::each_reference(*object, visit_reference, &search);
  }
  return search.found;
}

}  // namespace mtrace::hook
