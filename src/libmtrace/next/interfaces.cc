#include "next/interfaces.h"

#include <cstdint>
#include <cstring>

#include "base/own_memory.h"
#include "base/syscall.h"
#include "format/attach_protocol.h"
#include "modules/linkage.h"
#include "next/next_functions.h"

namespace mtrace::next {

namespace {

// For each allocator, a function that every version defines. Only objects that define one of these
// are searched for the other functions.
constexpr const char* kMarks[] = {"mallocx",       "je_malloc", "je_mallocx", "_rjem_malloc",
                                  "_rjem_mallocx", "tc_malloc", "mi_malloc"};

bool is_allocator(const link_map& object) {
  for (const char* mark : kMarks) {
    if (modules::find_function(object, mark) != nullptr) return true;
  }
  return false;
}

void take_definitions(const link_map& object) {
  const link_map* const allocator =
      modules::object_of(reinterpret_cast<const void*>(g_next.malloc));
  for (Interface& one : g_interfaces) {
    if (one.real != nullptr) continue;
    const Elf64_Sym* symbol = modules::find_function(object, one.symbol);
    if (symbol == nullptr) continue;
    const uintptr_t address = modules::address_of(object, *symbol);
    // After an interrupted attach the symbol-table entry already holds the hook's address.
    if (address == reinterpret_cast<uintptr_t>(one.hook)) continue;
    one.real = reinterpret_cast<const void*>(address);
    one.definition = &object;
    one.is_another = &object != allocator;
  }
}

// Drops the definitions of objects that have been unloaded.
void forget_unloaded_definitions() {
  for (Interface& one : g_interfaces) {
    if (one.real != nullptr && modules::object_of(one.real) != one.definition) one.real = nullptr;
  }
}

}  // namespace

bool find_interfaces() {
  forget_unloaded_definitions();
  const link_map* own = modules::object_of(&g_next);
  bool any = false;
  for (const link_map* object = modules::first_object(); object != nullptr;
       object = object->l_next) {
    if (object == own || modules::is_loader(*object) || !is_allocator(*object)) continue;
    take_definitions(*object);
    any = true;
  }
  return any;
}

bool interfaces_have_another_allocator() {
  for (const Interface& one : g_interfaces) {
    if (one.real != nullptr && one.is_another) return true;
  }
  return false;
}

namespace {

// A hooked function of which the program has a definition.
struct Target {
  const char* name;
  uintptr_t hook;
  uintptr_t real;
  const link_map* allocator;  // the object whose own calls bypass the hook; nullptr: none
};
constexpr unsigned kMostTargets = 512;
static_assert(kInterfaces + 100 <= kMostTargets);

struct Search {
  bool attach;
  format::Patch* patches;
  size_t found;
  unsigned count;
  const link_map* object;  // being searched
  Target targets[kMostTargets];

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
  const Elf64_Sym* hook = modules::find_function(own, name);
  if (hook == nullptr || real == 0) return;
  search.targets[search.count++] = {name, modules::address_of(own, *hook), real, nullptr};
}

void add_interfaces(Search& search) {
  for (const Interface& one : g_interfaces) {
    if (one.real == nullptr) continue;
    search.targets[search.count++] = {one.symbol, address_of(one.hook), address_of(one.real),
                                      one.definition};
  }
}

// For a call inside an allocator that is not bound yet: binds it to the real function now, because
// the symbol will lead to the hook.
void bind_past_hook(Search& search, uintptr_t* word, const Target& target) {
  const bool unbound = *word != target.real && *word != target.hook &&
                       modules::object_of(reinterpret_cast<const void*>(*word)) == search.object;
  if (search.attach && unbound) search.add(word, *word, target.real);
}

void visit_reference(uintptr_t* word, const char* name, void* context) {
  auto& search = *static_cast<Search*>(context);
  const uintptr_t value = *word;
  for (unsigned i = 0; i < search.count; ++i) {
    const Target& target = search.targets[i];
    if (target.allocator == search.object && strcmp(target.name, name) == 0) {
      return bind_past_hook(search, word, target);
    }
    if (value != search.from(target) || strcmp(target.name, name) != 0) continue;
    return search.add(word, value, search.to(target));
  }
}

void visit_definition(Search& search, const link_map& object, const Target& target) {
  const Elf64_Sym* symbol = modules::find_function(object, target.name);
  if (symbol == nullptr || modules::address_of(object, *symbol) != search.from(target)) return;
  search.add(&symbol->st_value, symbol->st_value, search.to(target) - object.l_addr);
}

// Static, because it is too large for the stack of a borrowed thread; one search at a time.
Search g_search;

// `all`: the words of the functions in hooks.def, too, not only of those in interfaces.def.
size_t list(bool attach, bool all, format::Patch* patches) {
  const link_map* own = modules::object_of(&g_next);
  if (own == nullptr) return 0;
  Search& search = g_search;
  search.attach = attach;
  search.patches = patches;
  search.found = 0;
  search.count = 0;
#define MTRACE_HOOK(member, symbol, result, parameters) \
  if (all) add_target(search, *own, symbol, address_of(g_next.member));
#include "next/hooks.def"
#undef MTRACE_HOOK
  add_interfaces(search);
  for (const link_map* object = modules::first_object(); object != nullptr;
       object = object->l_next) {
    if (object == own || modules::is_loader(*object)) continue;
    search.object = object;
    for (unsigned i = 0; i < search.count; ++i)
      visit_definition(search, *object, search.targets[i]);
    modules::each_reference(*object, visit_reference, &search);
  }
  return search.found;
}

}  // namespace

size_t list_patches(bool attach, format::Patch* patches) { return list(attach, true, patches); }

// The loader binds the functions of hooks.def.
void redirect_interfaces() {
  constexpr size_t kBytes = format::kMostPatches * sizeof(format::Patch);
  auto* const patches = static_cast<format::Patch*>(base::map_memory(kBytes));
  if (patches == nullptr) return;
  const size_t count = list(true, false, patches);
  // A word that could not be written shows as a bypass (report/coverage.h).
  for (size_t i = 0; i < count && i < format::kMostPatches; ++i) {
    base::write_own_word(patches[i].address, patches[i].after);
  }
  base::unmap_memory(patches, kBytes);
}

}  // namespace mtrace::next
