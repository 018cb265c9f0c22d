#include "modules/jit_symfile.h"

#include <algorithm>
#include <cstring>

#include "base/probe.h"

namespace mtrace::unwind {

JitSymfile::JitSymfile(uintptr_t address, uint64_t bytes) : address_(address), bytes_(bytes) {
  if (!read(0, &header_, sizeof header_) || memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
      header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_shentsize != sizeof(Elf64_Shdr) || !find_symbols()) {
    return;
  }
  count_ =
      static_cast<uint32_t>(std::min<uint64_t>(symbols_.sh_size / sizeof(Elf64_Sym), kMostSymbols));
}

bool JitSymfile::read(uint64_t offset, void* to, uint64_t size) const {
  return offset <= bytes_ && size <= bytes_ - offset &&
         sys::read_memory(address_ + offset, to, size);
}

bool JitSymfile::section(uint32_t number, Elf64_Shdr* header) const {
  return number < header_.e_shnum &&
         read(header_.e_shoff + uint64_t{number} * sizeof *header, header, sizeof *header);
}

bool JitSymfile::find_symbols() {
  for (uint32_t number = 1; section(number, &symbols_); ++number) {
    if (symbols_.sh_type != SHT_SYMTAB) continue;
    return section(symbols_.sh_link, &names_) && names_.sh_type == SHT_STRTAB &&
           names_.sh_offset <= bytes_ && names_.sh_size <= bytes_ - names_.sh_offset;
  }
  return false;
}

bool JitSymfile::place(const Elf64_Sym& symbol, uintptr_t* begin) {
  *begin = symbol.st_value;
  if (header_.e_type != ET_REL) return true;
  if (last_number_ != symbol.st_shndx && !section(symbol.st_shndx, &last_)) return false;
  last_number_ = symbol.st_shndx;
  *begin += last_.sh_addr;
  return last_.sh_addr != 0;
}

bool JitSymfile::next(Function* function) {
  while (at_ < count_) {
    Elf64_Sym symbol;
    if (!read(symbols_.sh_offset + uint64_t{at_++} * sizeof symbol, &symbol, sizeof symbol)) break;
    uintptr_t begin;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
        symbol.st_size == 0 || symbol.st_size > UINT32_MAX || symbol.st_name >= names_.sh_size ||
        !place(symbol, &begin)) {
      continue;
    }
    *function = {begin, static_cast<uint32_t>(symbol.st_size),
                 address_ + names_.sh_offset + symbol.st_name, names_.sh_size - symbol.st_name};
    return true;
  }
  return false;
}

}  // namespace mtrace::unwind
