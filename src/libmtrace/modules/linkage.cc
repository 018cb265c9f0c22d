#include "modules/linkage.h"

#include <elf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/machine.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "modules/c_library.h"
#include "modules/object.h"

namespace mtrace::modules {
namespace {

// The way to read an object's tables that stays loaded; ProbedMemory is the other one.
struct DirectMemory {
  static bool read(uintptr_t from, void* to, size_t bytes) {
    memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return true;
  }
};

// Addresses and sizes from an object's dynamic section; 0: it has none.
struct Tables {
  uintptr_t symbols, names, hash, gnu_hash, relocations, plt_relocations;
  uintptr_t versions;  // of each symbol
  size_t names_size, relocations_size, plt_size;
  size_t relative_count;
};

template <typename Memory>
Tables tables_of(Memory&& memory, const void* dynamic, uintptr_t base) {
  constexpr unsigned kMost = 4096;  // entries
  Tables tables = {};
  Elf64_Dyn entry;
  auto at = reinterpret_cast<uintptr_t>(dynamic);
  for (unsigned i = 0; at != 0 && i < kMost; ++i, at += sizeof entry) {
    if (!memory.read(at, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
    // The loader has relocated most of these values, but not all in every object.
    const uint64_t value = entry.d_un.d_val;
    const uintptr_t address = value < base ? base + value : value;
    switch (entry.d_tag) {
      case DT_SYMTAB:
        tables.symbols = address;
        break;
      case DT_STRTAB:
        tables.names = address;
        break;
      case DT_STRSZ:
        tables.names_size = value;
        break;
      case DT_HASH:
        tables.hash = address;
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = address;
        break;
      case DT_VERSYM:
        tables.versions = address;
        break;
      case DT_RELA:
        tables.relocations = address;
        break;
      case DT_RELASZ:
        tables.relocations_size = value;
        break;
      case DT_RELACOUNT:
        tables.relative_count = value;
        break;
      case DT_JMPREL:
        tables.plt_relocations = address;
        break;
      case DT_PLTRELSZ:
        tables.plt_size = value;
        break;
      default:
        break;
    }
  }
  return tables;
}

Tables tables_of(const link_map& object) {
  return tables_of(DirectMemory(), object.l_ld, object.l_addr);
}

uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// The first symbol that the object defines by this name and for which fits(symbol, number) is true;
// nullptr: none. DT_GNU_HASH: count of buckets, first symbol in them, words of the Bloom filter,
// its shift; the filter; the buckets; a hash for each symbol, whose lowest bit ends a bucket.
template <typename Fits>
const Elf64_Sym* find_symbol(const Tables& tables, const char* name, Fits fits) {
  if (tables.gnu_hash == 0 || tables.symbols == 0 || tables.names == 0) return nullptr;
  const auto* const head = reinterpret_cast<const uint32_t*>(tables.gnu_hash);
  if (head[0] == 0) return nullptr;
  const uint32_t* const buckets = head + 4 + 2 * size_t{head[2]};
  const uint32_t* const hashes = buckets + head[0];
  const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(tables.symbols);
  const auto* const names = reinterpret_cast<const char*>(tables.names);
  const uint32_t first = head[1];
  const uint32_t hash = hash_of(name);
  for (uint32_t number = buckets[hash % head[0]]; number >= first; ++number) {
    const uint32_t seen = hashes[number - first];
    const Elf64_Sym& symbol = symbols[number];
    if ((seen | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        strcmp(names + symbol.st_name, name) == 0 && fits(symbol, number)) {
      return &symbol;
    }
    if ((seen & 1) != 0) break;
  }
  return nullptr;
}

bool is_for_new_programs(const Tables& tables, uint32_t number) {
  constexpr uint16_t kOldVersion = 0x8000;  // hidden: only for programs linked with this version
  return tables.versions == 0 ||
         (reinterpret_cast<const uint16_t*>(tables.versions)[number] & kOldVersion) == 0;
}

uint32_t symbol_of(const Elf64_Rela& relocation) {
  return static_cast<uint32_t>(relocation.r_info >> 32);
}
bool is_by_symbol(const Elf64_Rela& relocation) {
  const auto type = static_cast<uint32_t>(relocation.r_info);
  return symbol_of(relocation) != 0 &&
         (type == machine::kSlotRelocation || type == machine::kDataRelocation);
}
bool is_word_of_symbol(const Elf64_Rela& relocation) {
  return symbol_of(relocation) != 0 && relocation.r_addend == 0 &&
         static_cast<uint32_t>(relocation.r_info) == machine::kWordRelocation;
}

}  // namespace

const link_map* first_object() { return loader_state().r_map; }

const link_map* object_of(const void* address) {
  FoundObject found;
  return find_object(reinterpret_cast<uintptr_t>(address), &found) ? found.map : nullptr;
}

bool is_loader(const link_map& object) { return object.l_addr == loader_state().r_ldbase; }

bool is_program(const link_map& object) { return &object == first_object(); }

// In its list the loader comes after the objects that were loaded before main.
bool is_loaded_late(const link_map& object) {
  for (const link_map* before = object.l_prev; before != nullptr; before = before->l_prev) {
    if (is_loader(*before)) return true;
  }
  return false;
}

const Elf64_Sym* find_function(const link_map& object, const char* name) {
  return find_symbol(tables_of(object), name, [](const Elf64_Sym& symbol, uint32_t) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
  });
}

const Elf64_Sym* find_definition(const link_map& object, const char* name) {
  const Tables tables = tables_of(object);
  return find_symbol(tables, name, [&](const Elf64_Sym& symbol, uint32_t number) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    return (type == STT_FUNC || type == STT_OBJECT) && is_for_new_programs(tables, number);
  });
}

void* first_definition(const char* name, const link_map* but) {
  for (const link_map* object = first_object(); object != nullptr; object = object->l_next) {
    const Elf64_Sym* found = object == but ? nullptr : find_definition(*object, name);
    if (found != nullptr) return reinterpret_cast<void*>(address_of(*object, *found));
  }
  return nullptr;
}

void* vdso_function(const char* name) {
  const link_map* const vdso = object_of(reinterpret_cast<void*>(getauxval(AT_SYSINFO_EHDR)));
  const Elf64_Sym* const found = vdso == nullptr ? nullptr : find_function(*vdso, name);
  return found == nullptr ? nullptr : reinterpret_cast<void*>(address_of(*vdso, *found));
}

bool may_define(const link_map& object, const char* name) {
  const Tables tables = tables_of(object);
  return tables.gnu_hash == 0 || find_symbol(tables, name, [&](const Elf64_Sym&, uint32_t number) {
                                   return is_for_new_programs(tables, number);
                                 }) != nullptr;
}

void each_reference(const link_map& object,
                    void (*visit)(uintptr_t* word, const char* name, void* context),
                    void* context) {
  const Tables tables = tables_of(object);
  if (tables.symbols == 0 || tables.names == 0) return;
  const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(tables.symbols);
  const auto* const names = reinterpret_cast<const char*>(tables.names);
  const auto look = [&](uintptr_t table, size_t begin, size_t size) {
    const auto* const relocations = reinterpret_cast<const Elf64_Rela*>(table);
    for (size_t i = begin; table != 0 && i < size / sizeof *relocations; ++i) {
      const Elf64_Rela& relocation = relocations[i];
      if (!is_by_symbol(relocation) && !is_word_of_symbol(relocation)) continue;
      visit(reinterpret_cast<uintptr_t*>(object.l_addr + relocation.r_offset),
            names + symbols[symbol_of(relocation)].st_name, context);
    }
  };
  look(tables.relocations, tables.relative_count, tables.relocations_size);
  look(tables.plt_relocations, 0, tables.plt_size);
}

namespace {

constexpr unsigned kMostObjects = 16384;
constexpr unsigned kMostNamespaces = 16;
constexpr unsigned kMostSymbols = 16;  // of one search
constexpr size_t kNames = 1 << 20;     // bytes of an object's names that are read
constexpr size_t kUndefined = 16384;   // symbols
constexpr size_t kRelocations = 4096;  // at a time

struct Scratch {
  Elf64_Sym undefined[kUndefined];
  Elf64_Rela relocations[kRelocations];
  char names[kNames];
  Binding binding;
};

struct Search {
  const char* const* symbols;
  unsigned count;
  bool (*visit)(const Binding&, void*);
  void* context;
  Scratch* scratch = nullptr;  // mapped for the first object that is read

  ~Search() {
    if (scratch != nullptr) base::unmap_memory(scratch, sizeof(Scratch));
  }
  bool has_scratch() {
    if (scratch == nullptr) scratch = static_cast<Scratch*>(base::map_memory(sizeof(Scratch)));
    return scratch != nullptr;
  }
};

// Number of symbols before those that the object defines; without DT_GNU_HASH, of all symbols.
size_t undefined_count(const Tables& tables) {
  uint32_t words[2] = {};
  const bool gnu = tables.gnu_hash != 0;
  if (!gnu && tables.hash == 0) return 0;
  if (!base::read_memory(gnu ? tables.gnu_hash : tables.hash, words, sizeof words)) return 0;
  return words[1];
}

// Whether no visited place will change.
bool visit_relocations(const Search& search, const link_map& object, uintptr_t table, size_t count,
                       const uint32_t* numbers) {
  bool fixed = true;
  Scratch& scratch = *search.scratch;
  for (size_t done = 0; done < count;) {
    const size_t part = std::min(count - done, kRelocations);
    if (!base::read_memory(table + done * sizeof(Elf64_Rela), scratch.relocations,
                           part * sizeof(Elf64_Rela))) {
      return false;
    }
    for (size_t i = 0; i < part; ++i) {
      const Elf64_Rela& relocation = scratch.relocations[i];
      if (!is_by_symbol(relocation)) continue;
      for (unsigned symbol = 0; symbol < search.count; ++symbol) {
        if (numbers[symbol] != symbol_of(relocation)) continue;
        scratch.binding.symbol = symbol;
        fixed &= base::read_word(object.l_addr + relocation.r_offset, &scratch.binding.target) &&
                 search.visit(scratch.binding, search.context);
      }
    }
    done += part;
  }
  return fixed;
}

// Whether no visited place of the object will change.
bool visit_bindings(const Search& search, const link_map& object) {
  Scratch& scratch = *search.scratch;
  const Tables tables = tables_of(ProbedMemory(), object.l_ld, object.l_addr);
  if (tables.symbols == 0 || tables.names == 0) return false;
  const size_t symbols = std::min(undefined_count(tables), kUndefined);
  const size_t names = std::min(tables.names_size, kNames);
  if (symbols == 0 || names == 0 ||
      !base::read_memory(tables.symbols, scratch.undefined, symbols * sizeof(Elf64_Sym)) ||
      !base::read_memory(tables.names, scratch.names, names)) {
    return false;
  }
  scratch.names[names - 1] = '\0';
  uint32_t numbers[kMostSymbols] = {};
  bool any = false;
  for (uint32_t i = 1; i < symbols; ++i) {
    if (scratch.undefined[i].st_name >= names) continue;
    for (unsigned symbol = 0; symbol < search.count; ++symbol) {
      if (strcmp(scratch.names + scratch.undefined[i].st_name, search.symbols[symbol]) != 0)
        continue;
      numbers[symbol] = i;
      any = true;
    }
  }
  if (!any) return true;
  scratch.binding.object = object.l_addr;
  scratch.binding.end = reinterpret_cast<uintptr_t>(object.l_ld);
  const auto name = reinterpret_cast<uintptr_t>(object.l_name);
  if (!base::read_string(name, scratch.binding.name, sizeof scratch.binding.name)) {
    memcpy(scratch.binding.name, "?", 2);
  }
  const size_t skipped = tables.relative_count * sizeof(Elf64_Rela);
  bool fixed = true;
  if (tables.relocations != 0 && tables.relocations_size > skipped) {
    fixed &= visit_relocations(search, object, tables.relocations + skipped,
                               (tables.relocations_size - skipped) / sizeof(Elf64_Rela), numbers);
  }
  if (tables.plt_relocations != 0) {
    fixed &= visit_relocations(search, object, tables.plt_relocations,
                               tables.plt_size / sizeof(Elf64_Rela), numbers);
  }
  return fixed;
}

// Objects whose bindings are fixed, each at a place chosen by a hash of its link_map. An object
// whose place is overwritten is read again.
constexpr unsigned kFixedLog2 = 10;
uint64_t g_fixed[1 << kFixedLog2];

void visit_object(Search& search, const link_map& object) {
  const uint64_t key = (reinterpret_cast<uintptr_t>(object.l_ld) ^
                        reinterpret_cast<uintptr_t>(object.l_name) << 16 ^ object.l_addr << 1) *
                       0x9e3779b97f4a7c15u;
  uint64_t& known = g_fixed[key >> (64 - kFixedLog2)];
  if (load(known) == key || !search.has_scratch()) return;
  if (visit_bindings(search, object)) store(known, key);
}

// Visits up to `most` objects of the list at `at`; returns their number.
unsigned visit_list(Search& search, uintptr_t at, unsigned most) {
  unsigned objects = 0;
  for (link_map object; at != 0 && objects < most; ++objects) {
    if (!base::read_memory(at, &object, sizeof object)) break;
    visit_object(search, object);
    at = reinterpret_cast<uintptr_t>(object.l_next);
  }
  return objects;
}

}  // namespace

void each_binding(const char* const* symbols, unsigned count,
                  bool (*visit)(const Binding& binding, void* context), void* context) {
  Search search = {symbols, std::min(count, kMostSymbols), visit, context};
  auto list = reinterpret_cast<uintptr_t>(&loader_state());
  unsigned objects = 0;
  for (unsigned i = 0; list != 0 && i < kMostNamespaces; ++i) {
    r_debug_extended of_namespace = {};
    // Before glibc 2.35 there is only the base, without r_next.
    if (!base::read_memory(list, &of_namespace.base, sizeof of_namespace.base)) break;
    if (of_namespace.base.r_version >= 2)
      base::read_memory(list, &of_namespace, sizeof of_namespace);
    objects += visit_list(search, reinterpret_cast<uintptr_t>(of_namespace.base.r_map),
                          kMostObjects - objects);
    list = reinterpret_cast<uintptr_t>(of_namespace.r_next);
  }
}

void each_binding_from(const void* first, unsigned most, const char* const* symbols, unsigned count,
                       bool (*visit)(const Binding& binding, void* context), void* context) {
  Search search = {symbols, std::min(count, kMostSymbols), visit, context};
  visit_list(search, reinterpret_cast<uintptr_t>(first), most);
}

}  // namespace mtrace::modules
