// How the loaded objects of a process are bound to each other, read where the loader keeps it.
// For moments in which no thread loads or unloads: unlike bindings.h nothing here is probed.
// Async-signal-safe.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

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
// False: dlsym without a version finds no `name` in the object.
bool may_define(const link_map& object, const char* name);
inline uintptr_t address_of(const link_map& object, const Elf64_Sym& symbol) {
  return object.l_addr + symbol.st_value;
}

// Calls visit(word, name, context) for each word of the object that the loader fills, or has
// filled, with the address of the symbol `name`.
void each_reference(const link_map& object,
                    void (*visit)(uintptr_t* word, const char* name, void* context), void* context);

}  // namespace mtrace::unwind
