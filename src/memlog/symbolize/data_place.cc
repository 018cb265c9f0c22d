#include "symbolize/data_place.h"

#include "symbolize/load_bias.h"

namespace mtrace::symbolize {
namespace {

// As glibc lays it out: the segment ends at the thread pointer, but for what its alignment asks for
// ("ELF Handling For Thread-Local Storage", variant II).
std::optional<uint64_t> offset_in_storage(Elf* elf, uint64_t below_pointer) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_TLS) continue;
    const uint64_t align = segment.p_align > 1 ? segment.p_align : 1;
    const uint64_t first = (0 - segment.p_vaddr) & (align - 1);
    const uint64_t size = (segment.p_memsz - first + align - 1) / align * align + first;
    if (below_pointer == 0 || below_pointer > size) return std::nullopt;
    return size - below_pointer;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> value_in_file(Elf* elf, uint64_t map_address, const DataPlace& place) {
  if (place.in_thread()) return offset_in_storage(elf, place.thread_pointer - place.address);
  const auto bias = load_bias(elf, map_address, 0);
  if (!bias) return std::nullopt;
  return place.address - *bias;
}

}  // namespace mtrace::symbolize
