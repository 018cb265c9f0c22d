#include "symbolize/dynamic_symbol.h"

#include <gelf.h>

#include <memory>

#include "symbolize/load_bias.h"

namespace mtrace::symbolize {
namespace {

struct End {
  void operator()(Elf* elf) const { elf_end(elf); }
};

std::optional<GElf_Sym> find_exported(Elf* elf, const std::string& name) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    const size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    if (data == nullptr || entry == 0) continue;
    for (size_t i = 0; i < data->d_size / entry; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const char* text = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (symbol.st_shndx != SHN_UNDEF && text != nullptr && name == text) return symbol;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset,
                                         uint64_t* size) {
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, End> elf(elf_begin(descriptor, ELF_C_READ, nullptr));
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF) return std::nullopt;
  const auto symbol = find_exported(elf.get(), name);
  const auto bias = load_bias(elf.get(), map_address, map_offset);
  if (!symbol || !bias) return std::nullopt;
  *size = symbol->st_size;
  return *bias + symbol->st_value;
}

}  // namespace mtrace::symbolize
