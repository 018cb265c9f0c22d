#include "modules/linkage.h"

#include <elf.h>

#include <cstring>

#include "base/machine.h"
#include "modules/c_library.h"
#include "modules/object.h"

namespace mtrace::unwind {
namespace {

// Fields of an object's dynamic section.
struct Tables {
  const Elf64_Sym* symbols;
  const char* names;
  const uint32_t* gnu_hash;
  const uint16_t* versions;  // of each symbol; nullptr: the object has none
  const Elf64_Rela* relocations;
  const Elf64_Rela* plt_relocations;
  size_t count;
  size_t relative_count;
  size_t plt_count;
};

Tables tables_of(const link_map& object) {
  Tables tables = {};
  for (const Elf64_Dyn* entry = object.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const uint64_t value = entry->d_un.d_val;
    // The loader has relocated most of these values, but not all in every object.
    const uintptr_t address = value < object.l_addr ? object.l_addr + value : value;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const Elf64_Sym*>(address);
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(address);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = reinterpret_cast<const uint32_t*>(address);
        break;
      case DT_VERSYM:
        tables.versions = reinterpret_cast<const uint16_t*>(address);
        break;
      case DT_RELA:
        tables.relocations = reinterpret_cast<const Elf64_Rela*>(address);
        break;
      case DT_RELASZ:
        tables.count = value / sizeof(Elf64_Rela);
        break;
      case DT_RELACOUNT:
        tables.relative_count = value;
        break;
      case DT_JMPREL:
        tables.plt_relocations = reinterpret_cast<const Elf64_Rela*>(address);
        break;
      case DT_PLTRELSZ:
        tables.plt_count = value / sizeof(Elf64_Rela);
        break;
      default:
        break;
    }
  }
  return tables;
}

uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

constexpr uint16_t kOldVersion = 0x8000;  // hidden: only for programs linked with this version

bool is_for_new_programs(const Tables& tables, uint32_t number) {
  return tables.versions == nullptr || (tables.versions[number] & kOldVersion) == 0;
}

// Finds the first symbol that the object defines by this name and for which fits(symbol, number) is
// true. DT_GNU_HASH: count of buckets, first symbol in them, words of the Bloom filter, its shift;
// the filter; the buckets; a hash for each symbol, whose lowest bit ends a bucket.
template <typename Fits>
const Elf64_Sym* find_symbol(const Tables& tables, const char* name, Fits fits) {
  if (tables.gnu_hash == nullptr || tables.symbols == nullptr || tables.names == nullptr) {
    return nullptr;
  }
  const uint32_t count = tables.gnu_hash[0];
  const uint32_t first = tables.gnu_hash[1];
  const uint32_t* buckets = tables.gnu_hash + 4 + 2 * tables.gnu_hash[2];
  const uint32_t* hashes = buckets + count;
  const uint32_t hash = gnu_hash(name);
  if (count == 0) return nullptr;
  uint32_t number = buckets[hash % count];
  if (number < first) return nullptr;
  for (;; ++number) {
    const uint32_t seen = hashes[number - first];
    const Elf64_Sym& symbol = tables.symbols[number];
    if ((seen | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        strcmp(tables.names + symbol.st_name, name) == 0 && fits(symbol, number)) {
      return &symbol;
    }
    if ((seen & 1) != 0) return nullptr;
  }
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

bool may_define(const link_map& object, const char* name) {
  const Tables tables = tables_of(object);
  if (tables.gnu_hash == nullptr) return true;
  return find_symbol(tables, name, [&](const Elf64_Sym&, uint32_t number) {
           return is_for_new_programs(tables, number);
         }) != nullptr;
}

void each_reference(const link_map& object,
                    void (*visit)(uintptr_t* word, const char* name, void* context),
                    void* context) {
  const Tables tables = tables_of(object);
  if (tables.symbols == nullptr || tables.names == nullptr) return;
  const auto look = [&](const Elf64_Rela* relocations, size_t begin, size_t end) {
    for (size_t i = begin; relocations != nullptr && i < end; ++i) {
      const Elf64_Rela& relocation = relocations[i];
      const auto type = static_cast<uint32_t>(relocation.r_info);
      const auto number = static_cast<uint32_t>(relocation.r_info >> 32);
      const bool whole = type == machine::kSlotRelocation || type == machine::kDataRelocation ||
                         (type == machine::kWordRelocation && relocation.r_addend == 0);
      if (!whole || number == 0) continue;
      visit(reinterpret_cast<uintptr_t*>(object.l_addr + relocation.r_offset),
            tables.names + tables.symbols[number].st_name, context);
    }
  };
  look(tables.relocations, tables.relative_count, tables.count);
  look(tables.plt_relocations, 0, tables.plt_count);
}

}  // namespace mtrace::unwind
