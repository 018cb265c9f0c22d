#include "model/symbols/symbol_table.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"

namespace mtrace::symbols {
namespace {

constexpr int kUnsized = 1000;

int rank_of(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  int rank = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 100 : 200;
  rank += static_cast<int>(std::min<size_t>(std::strspn(name, "_"), 9)) * 10;
  return symbol.st_size == 0 ? rank + kUnsized : rank;
}

bool names_code(const GElf_Sym& symbol) {
  switch (GELF_ST_TYPE(symbol.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
    case STT_NOTYPE:  // labels of assembly
      return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
    default:
      return false;
  }
}

// "memcpy@@GLIBC_2.14" -> "memcpy"
std::string_view without_version(const char* name) {
  const char* version = std::strchr(name + 1, '@');
  return version == nullptr ? std::string_view(name)
                            : std::string_view(name, static_cast<size_t>(version - name));
}

// The section that holds `address`: a label without size reaches to its end at most.
uint64_t section_end(Dwfl_Module* module, GElf_Addr address, bool* is_code) {
  GElf_Addr bias = 0;
  GElf_Addr offset = address;
  Elf_Scn* section = dwfl_module_address_section(module, &offset, &bias);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return address + 1;
  *is_code = (header.sh_flags & SHF_EXECINSTR) != 0;
  return address - offset + header.sh_size;
}

}  // namespace

SymbolTable::SymbolTable(Dwfl_Module* module) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word index = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, &index, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || !names_code(symbol)) continue;
    uint64_t end = 0;
    if (__builtin_add_overflow(address, symbol.st_size, &end)) continue;
    symbols_.push_back({address, end, name, rank_of(symbol, name)});
  }
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.rank != b.rank) return a.rank < b.rank;
    const size_t a_size = std::strlen(a.name);
    const size_t b_size = std::strlen(b.name);
    return a_size != b_size ? a_size < b_size : std::strcmp(a.name, b.name) < 0;
  });
  // Labels without size reach to the next symbol, within their section.
  uint64_t next = UINT64_MAX;
  uint64_t known_begin = 1;  // the section looked at last
  uint64_t known_end = 0;
  bool known_code = false;
  for (size_t i = symbols_.size(); i-- > 0;) {
    Symbol& symbol = symbols_[i];
    if (symbol.end == symbol.begin) {
      if (symbol.begin < known_begin || symbol.begin >= known_end) {
        known_code = false;
        known_begin = symbol.begin;
        known_end = section_end(module, symbol.begin, &known_code);
      }
      if (known_code) symbol.end = std::min(next, known_end);
    }
    if (i > 0 && symbols_[i - 1].begin != symbol.begin) next = symbol.begin;
  }
  // Nor does a label within a function reach beyond that function.
  uint64_t function_end = 0;
  for (Symbol& symbol : symbols_) {
    if (symbol.rank < kUnsized) {
      function_end = std::max(function_end, symbol.end);
    } else if (symbol.begin < function_end) {
      symbol.end = std::min(symbol.end, function_end);
    }
  }
}

std::string SymbolTable::find(uint64_t address) const {
  // Functions may lie inside others (labels, cold parts): the nearest one that reaches so far.
  constexpr int kSteps = 64;
  auto after =
      std::upper_bound(symbols_.begin(), symbols_.end(), address,
                       [](uint64_t value, const Symbol& symbol) { return value < symbol.begin; });
  const Symbol* best = nullptr;
  for (int step = 0; step < kSteps && after != symbols_.begin(); ++step) {
    --after;
    if (best != nullptr && after->begin != best->begin && best->rank < kUnsized) break;
    if (address >= after->end) continue;
    const bool better = best == nullptr || (best->rank >= kUnsized && after->rank < kUnsized) ||
                        (after->begin == best->begin && after->rank <= best->rank);
    if (better) best = &*after;
  }
  return best == nullptr ? std::string() : std::string(without_version(best->name));
}

std::vector<uint64_t> SymbolTable::addresses(const std::string& name) const {
  std::vector<const Symbol*> same;
  for (const Symbol& symbol : symbols_) {
    if (without_version(symbol.name) == name) same.push_back(&symbol);
  }
  std::stable_sort(same.begin(), same.end(),
                   [](const Symbol* a, const Symbol* b) { return a->rank < b->rank; });
  std::vector<uint64_t> found;
  found.reserve(same.size());
  for (const Symbol* symbol : same) found.push_back(symbol->begin);
  return found;
}
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
namespace {

constexpr unsigned kSymbolAddressSeconds = 60;

void put(std::string& out, uint64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

std::vector<std::vector<uint64_t>> symbol_addresses(const SearchPath& where,
                                                    const std::string& path,
                                                    const std::string& build_id,
                                                    const std::vector<std::string>& names) {
  std::vector<std::vector<uint64_t>> found(names.size());
  // For each name the number of its addresses, then these.
  const auto work = [&] {
    ModuleSymbols module(where, path, build_id);
    std::string out;
    for (const std::string& name : names) {
      const std::vector<uint64_t> addresses = module.addresses(name);
      put(out, addresses.size());
      for (const uint64_t address : addresses) put(out, address);
    }
    return out;
  };
  const auto bytes = run_isolated(work, kSymbolAddressSeconds);
  if (!bytes) return found;
  size_t at = 0;
  const auto take = [&] {
    uint64_t number = 0;
    if (bytes->size() - at >= sizeof number) {
      std::memcpy(&number, bytes->data() + at, sizeof number);
      at += sizeof number;
    }
    return number;
  };
  for (std::vector<uint64_t>& addresses : found) {
    for (uint64_t left = take(); left != 0 && at < bytes->size(); --left) {
      addresses.push_back(take());
    }
  }
  return found;
}

}  // namespace mtrace::symbols
