#include "symbolize/data_symbol.h"

#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <string_view>

#include "symbolize/demangle.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/open_elf.h"
#include "symbolize/worker.h"

namespace mtrace::symbolize {
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

}  // namespace mtrace::symbolize
