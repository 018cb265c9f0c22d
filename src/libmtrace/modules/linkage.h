// How the loaded objects of a process are bound to each other: their symbols and relocations, read
// from the dynamic section and what it leads to. Async-signal-safe.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::modules {

// Reads directly: an object that stays loaded, or the list of objects at moments in which no thread
// loads or unloads.

// The objects of the program's own namespace, in the order of the loader; nullptr ends it.
const link_map* first_object();
// The object that an address lies in, nullptr: none.
const link_map* object_of(const void* address);
bool is_loader(const link_map& object);
bool is_program(const link_map& object);
// Whether `object` was loaded into the running program, not with it.
bool is_loaded_late(const link_map& object);

// The function that the object defines by this name; nullptr: none.
const Elf64_Sym* find_function(const link_map& object, const char* name);
// The function or variable that the object defines by this name, in the version for new programs;
// nullptr: none.
const Elf64_Sym* find_definition(const link_map& object, const char* name);
// The first of an object's definitions by this name, in the order of the loader's list; nullptr:
// none. `but`: an object that is left out.
void* first_definition(const char* name, const link_map* but = nullptr);
// The function of the vDSO by this name; nullptr: none.
void* vdso_function(const char* name);
// False: dlsym without a version finds no `name` in the object.
bool may_define(const link_map& object, const char* name);
inline uintptr_t address_of(const link_map& object, const Elf64_Sym& symbol) {
  return object.l_addr + symbol.st_value;
}

// Calls visit(word, name, context) for each word of the object that the loader fills, or has
// filled, with the address of the symbol `name`.
void each_reference(const link_map& object,
                    void (*visit)(uintptr_t* word, const char* name, void* context), void* context);

// Reads with base/probe.h: where another thread loads or unloads meanwhile, places may be missed.
// Thread-safe. Shows calls that another library does not get to see, because their object was bound
// past it (RTLD_DEEPBIND, -Bsymbolic, another namespace of dlmopen).

// A place in an object's table that holds the address which a call by `symbol` goes to.
struct Binding {
  uintptr_t object;  // load bias
  uintptr_t end;     // the object's highest known address: its dynamic section
  uintptr_t target;
  unsigned symbol;  // index in the list of symbols
  char name[256];   // of the object as the loader calls it; "": the main program
};

// Calls visit(binding, context) for each place of one of the `count` symbols in each object that is
// loaded now, in all namespaces. visit returns true for a place that will not change; an object
// with only such places is left out in later calls, which therefore must be for the same symbols.
// Some 50 us for a new object. Does nothing without memory.
void each_binding(const char* const* symbols, unsigned count,
                  bool (*visit)(const Binding& binding, void* context), void* context);

// each_binding() for at most `most` objects of one namespace, from the link_map `first` on. Any
// other pointer is safe: the list is probed.
void each_binding_from(const void* first, unsigned most, const char* const* symbols, unsigned count,
                       bool (*visit)(const Binding& binding, void* context), void* context);

}  // namespace mtrace::modules
