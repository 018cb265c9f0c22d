#include "model/symbols/data_symbol.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include "model/symbols/demangle.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"
#include "util/machine.h"

namespace mtrace::symbols {
namespace {

constexpr unsigned kDataSymbolSeconds = 20;

std::string data_symbol(const DataFile& file, const DataPlace& place) {
  const OpenElf elf = open_elf(file.descriptor);
  const auto wanted =
      elf == nullptr ? std::nullopt : value_in_file(elf.get(), file.map_address, place);
  if (!wanted) return {};
  const int type = place.in_thread() ? STT_TLS : STT_OBJECT;
  std::string found;
  const auto visit = [&](const GElf_Sym& symbol, const char* name) {
    const bool holds = GELF_ST_TYPE(symbol.st_info) == type && *wanted >= symbol.st_value &&
                       *wanted - symbol.st_value < symbol.st_size;
    if (!holds) return false;
    found = demangle(name);
    if (*wanted != symbol.st_value) found += fmt::format("+0x{:x}", *wanted - symbol.st_value);
    return true;
  };
  if (any_symbol(elf.get(), SHT_SYMTAB, visit) || any_dynamic_symbol(elf.get(), visit))
    return found;
  const ModuleSymbols symbols(file.where, file.path, ::dup(file.descriptor));
  const int count = symbols.module() == nullptr ? 0 : dwfl_module_getsymtab(symbols.module());
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    const char* const name =
        dwfl_module_getsym_info(symbols.module(), i, &symbol, &address, nullptr, nullptr, nullptr);
    if (name != nullptr && symbol.st_shndx != SHN_UNDEF && visit(symbol, name)) break;
  }
  return found;
}

}  // namespace

std::string data_symbol_of(const DataFile& file, const DataPlace& place) {
  if (file.descriptor < 0) return {};
  const auto found =
      run_isolated([&] { return data_symbol(file, place); }, kDataSymbolSeconds, file.descriptor);
  ::close(file.descriptor);
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
