#include "next/interfaces.h"

#include "base/own_memory.h"
#include "base/syscall.h"
#include "format/attach_protocol.h"
#include "modules/linkage.h"
#include "next/next_functions.h"
#include "next/patches.h"

namespace mtrace::hook {
namespace {

// For each allocator, a function that every version defines. Only objects that define one of these
// are searched for the other functions.
constexpr const char* kMarks[] = {"mallocx",       "je_malloc", "je_mallocx", "_rjem_malloc",
                                  "_rjem_mallocx", "tc_malloc", "mi_malloc"};

bool is_allocator(const link_map& object) {
  for (const char* mark : kMarks) {
    if (unwind::find_function(object, mark) != nullptr) return true;
  }
  return false;
}

void take_definitions(const link_map& object) {
  const link_map* const allocator = unwind::object_of(reinterpret_cast<const void*>(g_next.malloc));
  for (Interface& one : g_interfaces) {
    if (one.real != nullptr) continue;
    const Elf64_Sym* symbol = unwind::find_function(object, one.symbol);
    if (symbol == nullptr) continue;
    const uintptr_t address = unwind::address_of(object, *symbol);
    // After an interrupted attach the symbol-table entry already holds the hook's address.
    if (address == reinterpret_cast<uintptr_t>(one.hook)) continue;
    one.real = reinterpret_cast<const void*>(address);
    one.definition = &object;
    one.elsewhere = &object != allocator;
  }
}

// Drops the definitions of objects that have been unloaded.
void forget_unloaded_definitions() {
  for (Interface& one : g_interfaces) {
    if (one.real != nullptr && unwind::object_of(one.real) != one.definition) one.real = nullptr;
  }
}

}  // namespace

bool find_interfaces() {
  forget_unloaded_definitions();
  const link_map* own = unwind::object_of(&g_next);
  bool any = false;
  for (const link_map* object = unwind::first_object(); object != nullptr;
       object = object->l_next) {
    if (object == own || unwind::is_loader(*object) || !is_allocator(*object)) continue;
    take_definitions(*object);
    any = true;
  }
  return any;
}

bool interfaces_are_elsewhere() {
  for (const Interface& one : g_interfaces) {
    if (one.real != nullptr && one.elsewhere) return true;
  }
  return false;
}

void lead_interfaces_here() {
  constexpr size_t kBytes = format::kMostPatches * sizeof(format::Patch);
  auto* const patches = static_cast<format::Patch*>(sys::map_memory(kBytes));
  if (patches == nullptr) return;
  const size_t count = list_interface_patches(patches);
  // A word that could not be written shows as a bypass (report/bypasses.h).
  const sys::OwnMemory memory;
  for (size_t i = 0; i < count && i < format::kMostPatches; ++i) {
    memory.write_word(patches[i].address, patches[i].after);
  }
  sys::unmap_memory(patches, kBytes);
}

}  // namespace mtrace::hook
