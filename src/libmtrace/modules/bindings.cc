#include "modules/bindings.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/machine.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "modules/c_library.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kMostObjects = 16384;
constexpr unsigned kMostNamespaces = 16;
constexpr unsigned kMostDynamic = 256;
constexpr unsigned kMostSymbols = 16;  // of one search
constexpr size_t kNames = 1 << 20;     // bytes of an object's names that are read
constexpr size_t kUndefined = 16384;   // symbols
constexpr size_t kRelocations = 4096;  // at a time

struct Scratch {
  Elf64_Dyn dynamic[kMostDynamic];
  Elf64_Sym undefined[kUndefined];
  Elf64_Rela relocations[kRelocations];
  char names[kNames];
  Binding binding;
};

// Addresses and sizes from an object's dynamic section.
struct Tables {
  uintptr_t symbols, names, hash, gnu_hash, relocations, plt_relocations;
  size_t names_size, relocations_size, relative_count, plt_size;
};

struct Search {
  const char* const* symbols;
  unsigned count;
  bool (*visit)(const Binding&, void*);
  void* context;
  Scratch* scratch = nullptr;  // mapped for the first object that is looked at

  ~Search() {
    if (scratch != nullptr) sys::unmap_memory(scratch, sizeof(Scratch));
  }
  bool has_scratch() {
    if (scratch == nullptr) scratch = static_cast<Scratch*>(sys::map_memory(sizeof(Scratch)));
    return scratch != nullptr;
  }
};

bool read_tables(const link_map& object, Scratch& scratch, Tables* tables) {
  *tables = {};
  const auto at = reinterpret_cast<uintptr_t>(object.l_ld);
  unsigned count = 0;
  constexpr unsigned kAtATime = 32;
  // In pieces, because the memory behind the section may not be mapped.
  for (bool ended = false; !ended && count < kMostDynamic; ++count) {
    Elf64_Dyn& entry = scratch.dynamic[count];
    if (count % kAtATime == 0 &&
        !sys::read_memory(at + count * sizeof entry, &entry, kAtATime * sizeof entry)) {
      for (unsigned i = 0; i < kAtATime; ++i) {
        scratch.dynamic[count + i] = {};
        if (!sys::read_memory(at + (count + i) * sizeof entry, &scratch.dynamic[count + i],
                              sizeof entry)) {
          break;
        }
      }
    }
    // The loader has relocated most of these values, but not all in every object.
    const uint64_t value = entry.d_un.d_val;
    const uintptr_t address = value < object.l_addr ? object.l_addr + value : value;
    switch (entry.d_tag) {
      case DT_NULL:
        ended = true;
        break;
      case DT_SYMTAB:
        tables->symbols = address;
        break;
      case DT_STRTAB:
        tables->names = address;
        break;
      case DT_STRSZ:
        tables->names_size = value;
        break;
      case DT_HASH:
        tables->hash = address;
        break;
      case DT_GNU_HASH:
        tables->gnu_hash = address;
        break;
      case DT_RELA:
        tables->relocations = address;
        break;
      case DT_RELASZ:
        tables->relocations_size = value;
        break;
      case DT_RELACOUNT:
        tables->relative_count = value;
        break;
      case DT_JMPREL:
        tables->plt_relocations = address;
        break;
      case DT_PLTRELSZ:
        tables->plt_size = value;
        break;
      default:
        break;
    }
  }
  return tables->symbols != 0 && tables->names != 0;
}

// Number of symbols before those that the object defines; without DT_GNU_HASH, of all symbols.
size_t undefined_count(const Tables& tables) {
  uint32_t words[2] = {};
  const bool gnu = tables.gnu_hash != 0;
  if (!gnu && tables.hash == 0) return 0;
  if (!sys::read_memory(gnu ? tables.gnu_hash : tables.hash, words, sizeof words)) return 0;
  return words[1];
}

// True: no place needs a further look.
bool look_through(const Search& search, const link_map& object, uintptr_t table, size_t count,
                  const uint32_t* numbers) {
  bool settled = true;
  Scratch& scratch = *search.scratch;
  for (size_t done = 0; done < count;) {
    const size_t part = std::min(count - done, kRelocations);
    if (!sys::read_memory(table + done * sizeof(Elf64_Rela), scratch.relocations,
                          part * sizeof(Elf64_Rela))) {
      return false;
    }
    for (size_t i = 0; i < part; ++i) {
      const Elf64_Rela& relocation = scratch.relocations[i];
      const auto type = static_cast<uint32_t>(relocation.r_info);
      const auto number = static_cast<uint32_t>(relocation.r_info >> 32);
      if (number == 0 || (type != machine::kSlotRelocation && type != machine::kDataRelocation))
        continue;
      for (unsigned symbol = 0; symbol < search.count; ++symbol) {
        if (numbers[symbol] != number) continue;
        scratch.binding.symbol = symbol;
        settled &= sys::read_word(object.l_addr + relocation.r_offset, &scratch.binding.target) &&
                   search.visit(scratch.binding, search.context);
      }
    }
    done += part;
  }
  return settled;
}

// True: the object needs no further look.
bool look_at(const Search& search, const link_map& object) {
  Scratch& scratch = *search.scratch;
  Tables tables;
  if (!read_tables(object, scratch, &tables)) return false;
  const size_t symbols = std::min(undefined_count(tables), kUndefined);
  const size_t names = std::min(tables.names_size, kNames);
  if (symbols == 0 || names == 0 ||
      !sys::read_memory(tables.symbols, scratch.undefined, symbols * sizeof(Elf64_Sym)) ||
      !sys::read_memory(tables.names, scratch.names, names)) {
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
  if (!sys::read_string(name, scratch.binding.name, sizeof scratch.binding.name)) {
    memcpy(scratch.binding.name, "?", 2);
  }
  const size_t skipped = tables.relative_count * sizeof(Elf64_Rela);
  bool settled = true;
  if (tables.relocations != 0 && tables.relocations_size > skipped) {
    settled &= look_through(search, object, tables.relocations + skipped,
                            (tables.relocations_size - skipped) / sizeof(Elf64_Rela), numbers);
  }
  if (tables.plt_relocations != 0) {
    settled &= look_through(search, object, tables.plt_relocations,
                            tables.plt_size / sizeof(Elf64_Rela), numbers);
  }
  return settled;
}

// Objects that need no further look, each at a place chosen by a hash of its link_map. An object
// whose place is overwritten is looked at again.
constexpr unsigned kSettledLog2 = 10;
uint64_t g_settled[1 << kSettledLog2];

void visit_object(Search& search, const link_map& object) {
  const uint64_t key = (reinterpret_cast<uintptr_t>(object.l_ld) ^
                        reinterpret_cast<uintptr_t>(object.l_name) << 16 ^ object.l_addr << 1) *
                       0x9e3779b97f4a7c15u;
  uint64_t& known = g_settled[key >> (64 - kSettledLog2)];
  if (load(known) == key || !search.has_scratch()) return;
  if (look_at(search, object)) store(known, key);
}

// Visits up to `most` objects of the list at `at`; returns their number.
unsigned visit_list(Search& search, uintptr_t at, unsigned most) {
  unsigned objects = 0;
  for (link_map object; at != 0 && objects < most; ++objects) {
    if (!sys::read_memory(at, &object, sizeof object)) break;
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
    if (!sys::read_memory(list, &of_namespace.base, sizeof of_namespace.base)) break;
    if (of_namespace.base.r_version >= 2)
      sys::read_memory(list, &of_namespace, sizeof of_namespace);
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

}  // namespace mtrace::unwind
