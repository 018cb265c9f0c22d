#include "symbolize/symbol_table.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace mtrace::symbolize {
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

}  // namespace mtrace::symbolize
