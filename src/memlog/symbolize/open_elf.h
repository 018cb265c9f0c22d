// An ELF file that libelf has open.
#pragma once

#include <libelf.h>

#include <memory>

namespace mtrace::symbolize {

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using OpenElf = std::unique_ptr<Elf, EndElf>;

// Opens the file behind the descriptor, which stays the caller's. Null: it is no ELF file.
inline OpenElf open_elf(int descriptor, Elf_Cmd how = ELF_C_READ_MMAP) {
  elf_version(EV_CURRENT);
  OpenElf elf(elf_begin(descriptor, how, nullptr));
  if (elf != nullptr && elf_kind(elf.get()) != ELF_K_ELF) elf.reset();
  return elf;
}

}  // namespace mtrace::symbolize
