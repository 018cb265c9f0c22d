#include "symbolize/dynamic_symbol.h"

#include <gelf.h>

#include "symbolize/elf_symbols.h"
#include "symbolize/load_bias.h"
#include "symbolize/open_elf.h"

namespace mtrace::symbolize {
namespace {

std::optional<GElf_Sym> find_exported(Elf* elf, const std::string& wanted) {
  std::optional<GElf_Sym> found;
  any_dynamic_symbol(elf, [&](const GElf_Sym& symbol, const char* name) {
    if (wanted == name) found = symbol;
    return found.has_value();
  });
  return found;
}

}  // namespace

std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset,
                                         uint64_t* size) {
  const OpenElf elf = open_elf(descriptor, ELF_C_READ);
  if (elf == nullptr) return std::nullopt;
  const auto symbol = find_exported(elf.get(), name);
  const auto bias = load_bias(elf.get(), map_address, map_offset);
  if (!symbol || !bias) return std::nullopt;
  *size = symbol->st_size;
  return *bias + symbol->st_value;
}

}  // namespace mtrace::symbolize
