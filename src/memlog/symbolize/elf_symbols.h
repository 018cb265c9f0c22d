// The symbols of an ELF file: of its symbol table, or the dynamic ones.
#pragma once

#include <gelf.h>

#include <cstddef>

namespace mtrace::symbolize {

// Calls visit(symbol, name) for each symbol that the file defines in its tables of a type
// (SHT_DYNSYM or SHT_SYMTAB), until one call returns true. Returns whether one did.
template <typename Visit>
bool any_symbol(Elf* elf, GElf_Word type, Visit&& visit) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != type) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    const size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    if (data == nullptr || entry == 0) continue;
    for (size_t i = 0; i < data->d_size / entry; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (symbol.st_shndx != SHN_UNDEF && name != nullptr && visit(symbol, name)) return true;
    }
  }
  return false;
}

template <typename Visit>
bool any_dynamic_symbol(Elf* elf, Visit&& visit) {
  return any_symbol(elf, SHT_DYNSYM, visit);
}

}  // namespace mtrace::symbolize
