#include "unwind/imports.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace mtrace::unwind {
namespace {

struct Program {
  const Elf64_Sym* symbols;
  const char* names;
  const Elf64_Rela* relocations;
  const Elf64_Rela* calls;
  size_t relocation_bytes;
  size_t call_bytes;
};

template <typename T>
const T* pointer(uint64_t address) {
  return reinterpret_cast<const T*>(address);
}

Program read_program(const Elf64_Dyn* dynamic) {
  Program program = {};
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uint64_t value = dynamic->d_un.d_val;  // of these tags the loader has made addresses
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        program.symbols = pointer<Elf64_Sym>(value);
        break;
      case DT_STRTAB:
        program.names = pointer<char>(value);
        break;
      case DT_RELA:
        program.relocations = pointer<Elf64_Rela>(value);
        break;
      case DT_RELASZ:
        program.relocation_bytes = value;
        break;
      case DT_JMPREL:
        program.calls = pointer<Elf64_Rela>(value);
        break;
      case DT_PLTRELSZ:
        program.call_bytes = value;
        break;
      default:
        break;
    }
  }
  return program;
}

bool any_by_name(const Program& program, const Elf64_Rela* relocations, size_t bytes,
                 const char* const* symbols, unsigned count) {
  for (size_t i = 0; i < bytes / sizeof(Elf64_Rela); ++i) {
    const uint64_t number = relocations[i].r_info >> 32;
    if (number == 0) continue;
    const char* name = program.names + program.symbols[number].st_name;
    for (unsigned symbol = 0; symbol < count; ++symbol) {
      if (strcmp(name, symbols[symbol]) == 0) return true;
    }
  }
  return false;
}

}  // namespace

bool program_imports(const char* const* symbols, unsigned count) {
  const link_map* map = _r_debug.r_map;
  if (map == nullptr || map->l_ld == nullptr) return true;
  const Program program = read_program(map->l_ld);
  const auto lowest = reinterpret_cast<uintptr_t>(map->l_addr);
  if (reinterpret_cast<uintptr_t>(program.symbols) <= lowest ||
      reinterpret_cast<uintptr_t>(program.names) <= lowest) {
    return true;
  }
  return (program.calls != nullptr &&
          any_by_name(program, program.calls, program.call_bytes, symbols, count)) ||
         (program.relocations != nullptr &&
          any_by_name(program, program.relocations, program.relocation_bytes, symbols, count));
}

}  // namespace mtrace::unwind
