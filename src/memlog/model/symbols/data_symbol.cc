#include "model/symbols/data_symbol.h"

#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <string_view>

#include "model/symbols/demangle.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"
#include "util/machine.h"

namespace mtrace::symbols {
namespace {

constexpr unsigned kDataSymbolSeconds = 20;

std::string data_symbol(int descriptor, uint64_t map_address, const DataPlace& place) {
  const OpenElf elf = open_elf(descriptor);
  if (elf == nullptr) return {};
  const auto value = value_in_file(elf.get(), map_address, place);
  if (!value) return {};
  const uint64_t wanted = *value;
  const int type = place.in_thread() ? STT_TLS : STT_OBJECT;
  std::string found;
  const auto visit = [&](const GElf_Sym& symbol, std::string_view name) {
    const bool holds = GELF_ST_TYPE(symbol.st_info) == type && wanted >= symbol.st_value &&
                       wanted - symbol.st_value < symbol.st_size;
    if (!holds) return false;
    found = demangle(std::string(name).c_str());
    if (wanted != symbol.st_value) found += fmt::format("+0x{:x}", wanted - symbol.st_value);
    return true;
  };
  if (!any_symbol(elf.get(), SHT_SYMTAB, visit)) any_dynamic_symbol(elf.get(), visit);
  return found;
}

}  // namespace

std::string data_symbol_of(int descriptor, uint64_t map_address, const DataPlace& place) {
  if (descriptor < 0) return {};
  const auto found = run_isolated([&] { return data_symbol(descriptor, map_address, place); },
                                  kDataSymbolSeconds, descriptor);
  ::close(descriptor);
  return found.value_or("");
}
namespace {

std::optional<uint64_t> offset_in_storage(Elf* elf, const DataPlace& place) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_TLS) continue;
    const uint64_t align = segment.p_align > 1 ? segment.p_align : 1;
    const uint64_t first = (0 - segment.p_vaddr) & (align - 1);
    const uint64_t offset = place.address - util::machine::tls_storage(place.thread_pointer, align,
                                                                       first, segment.p_memsz);
    return offset < segment.p_memsz ? std::optional<uint64_t>(offset) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> value_in_file(Elf* elf, uint64_t map_address, const DataPlace& place) {
  if (place.in_thread()) return offset_in_storage(elf, place);
  const auto bias = load_bias(elf, map_address, 0);
  if (!bias) return std::nullopt;
  return place.address - *bias;
}

}  // namespace mtrace::symbols
