#include "symbolize/linked_allocator.h"

#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "symbolize/elf_symbols.h"
#include "symbolize/open_elf.h"
#include "symbolize/worker.h"

namespace mtrace::symbolize {
namespace {

constexpr unsigned kAllocatorSeconds = 20;

// The functions by which programs call them. jemalloc's have the prefix that it was built with.
bool is_of_allocator(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "_rjem_malloc", "je_malloc",      "tc_malloc", "TCMallocInternalMalloc",
      "mi_malloc",    "mi_heap_malloc", "rpmalloc",  "sn_malloc"};
  return name.ends_with("mallocx") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Programs name their loader; shared libraries do not.
bool is_program(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_INTERP) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string linked_allocator(int descriptor) {
  const OpenElf elf = open_elf(descriptor);
  if (elf == nullptr) return {};
  // Of several the shortest: malloc rather than mallocx.
  std::string found;
  any_symbol(elf.get(), SHT_SYMTAB, [&](const GElf_Sym& symbol, std::string_view name) {
    const bool better = found.empty() || name.size() < found.size();
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && is_of_allocator(name) && better) found = name;
    return false;
  });
  if (found.empty() || is_program(elf.get())) return found;
  const bool exported = any_dynamic_symbol(
      elf.get(), [&](const GElf_Sym&, std::string_view name) { return is_of_allocator(name); });
  return exported ? std::string() : found;
}

std::string uncovered_share(uint64_t resident, uint64_t live) {
  if (resident <= live) return {};
  const uint64_t other = resident - live;
  return fmt::format("; of {} resident bytes {} ({:.1f}%) are not malloc's", resident, other,
                     100.0 * static_cast<double>(other) / static_cast<double>(resident));
}

std::string linked_allocator_of(int descriptor) {
  if (descriptor < 0) return {};
  const auto found =
      run_isolated([&] { return linked_allocator(descriptor); }, kAllocatorSeconds, descriptor);
  ::close(descriptor);
  return found.value_or("");
}

}  // namespace mtrace::symbolize
