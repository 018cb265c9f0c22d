#include "symbolize/load_bias.h"

namespace mtrace::symbolize {

std::optional<uint64_t> load_bias(Elf* elf, uint64_t map_address, uint64_t map_offset) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    // The loader maps whole pages: a segment may begin a little before its offset.
    const uint64_t page = segment.p_align > 1 ? segment.p_align - 1 : 0;
    if (segment.p_type != PT_LOAD || map_offset < (segment.p_offset & ~page) ||
        map_offset >= segment.p_offset + segment.p_filesz) {
      continue;
    }
    return map_address - map_offset + segment.p_offset - segment.p_vaddr;
  }
  return std::nullopt;
}

}  // namespace mtrace::symbolize
