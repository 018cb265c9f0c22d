#include "symbolize/loaded_file.h"

#include <gelf.h>

#include <algorithm>
#include <memory>

#include "symbolize/dynamic_table.h"
#include "symbolize/load_bias.h"

namespace mtrace::symbolize {
namespace {

void read_segments(Elf* elf, size_t segments, uint64_t bias, LoadedFile& file) {
  file.all.begin = UINT64_MAX;
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    const Extent extent = {bias + segment.p_vaddr, bias + segment.p_vaddr + segment.p_memsz};
    if (segment.p_type == PT_GNU_EH_FRAME) file.eh_frame_header = extent.begin;
    if (segment.p_type != PT_LOAD) continue;
    file.all.begin = std::min(file.all.begin, extent.begin);
    file.all.end = std::max(file.all.end, extent.end);
    if ((segment.p_flags & PF_X) != 0) file.code.push_back(extent);
  }
}

void read_functions(Elf* elf, uint64_t bias, LoadedFile& file) {
  any_dynamic_symbol(elf, [&](const GElf_Sym& symbol, const char* name) {
    const uint64_t begin = bias + symbol.st_value;
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC) {
      file.functions.push_back({name, {begin, begin + symbol.st_size}});
    }
    return false;
  });
}

}  // namespace

std::optional<LoadedFile> loaded_file(int descriptor, uint64_t map_address, uint64_t map_offset) {
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(descriptor, ELF_C_READ, nullptr),
                                                     elf_end);
  GElf_Ehdr header;
  size_t segments = 0;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr || header.e_machine != EM_X86_64 ||
      gelf_getclass(elf.get()) != ELFCLASS64 || elf_getphdrnum(elf.get(), &segments) != 0) {
    return std::nullopt;
  }
  const auto bias = load_bias(elf.get(), map_address, map_offset);
  if (!bias) return std::nullopt;
  LoadedFile file;
  read_segments(elf.get(), segments, *bias, file);
  read_functions(elf.get(), *bias, file);
  return file;
}

}  // namespace mtrace::symbolize
