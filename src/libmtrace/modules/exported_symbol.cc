#include "modules/exported_symbol.h"

#include <elf.h>
#include <link.h>
#include <string.h>

namespace mtrace::unwind {
namespace {

// A value at `address`; zero, and *ok false, when it is outside the object.
template <typename T>
T value_at(const Bounds& bounds, uintptr_t address, bool* ok) {
  T value{};
  if (!bounds.contains(address, sizeof value)) {
    *ok = false;
  } else {
    memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  }
  return value;
}

struct Tables {
  uintptr_t symbols = 0;
  uintptr_t names = 0;
  uintptr_t hash = 0;  // DT_GNU_HASH
};

Tables tables_of(const Object& object) {
  Tables tables;
  FoundObject found;
  // A segment's start, as the headers of an object at address 0 may not be mapped.
  if (!find_object(object.start, &found)) return tables;
  auto at = reinterpret_cast<uintptr_t>(found.map->l_ld);
  for (bool ok = true; ok; at += sizeof(Elf64_Dyn)) {
    const auto entry = value_at<Elf64_Dyn>(object.bounds, at, &ok);
    if (entry.d_tag == DT_NULL) break;
    // The loader has relocated these values, except in objects that it does not relocate.
    const uintptr_t value = entry.d_un.d_ptr;
    const uintptr_t address = value < object.base ? object.base + value : value;
    if (entry.d_tag == DT_SYMTAB) tables.symbols = address;
    if (entry.d_tag == DT_STRTAB) tables.names = address;
    if (entry.d_tag == DT_GNU_HASH) tables.hash = address;
  }
  return tables;
}

uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

bool is_called(const Bounds& bounds, uintptr_t text, const char* name) {
  const size_t size = strlen(name) + 1;
  return bounds.contains(text, size) &&
         memcmp(reinterpret_cast<const void*>(text), name, size) == 0;
}

}  // namespace

// DT_GNU_HASH: count of buckets, first symbol in them, words of the Bloom filter, its shift; the
// filter; the buckets; a hash for each symbol, whose lowest bit ends a bucket.
bool find_exported(const Object& object, const char* name, ExportedSymbol* symbol) {
  const Tables tables = tables_of(object);
  const Bounds& bounds = object.bounds;
  bool ok = tables.symbols != 0 && tables.names != 0 && tables.hash != 0;
  const auto word = [&](uintptr_t index) {
    return value_at<uint32_t>(bounds, tables.hash + index * sizeof(uint32_t), &ok);
  };
  const uint32_t hash = hash_of(name);
  const uint32_t buckets = ok ? word(0) : 0;
  const uint32_t first = ok ? word(1) : 0;
  const uintptr_t filter_words = ok ? uintptr_t{word(2)} * 2 : 0;
  if (!ok || buckets == 0) return false;
  uint32_t number = word(4 + filter_words + hash % buckets);
  if (number < first) return false;
  for (; ok; ++number) {
    const uint32_t seen = word(4 + filter_words + buckets + (number - first));
    const auto known =
        value_at<Elf64_Sym>(bounds, tables.symbols + number * sizeof(Elf64_Sym), &ok);
    if (ok && (seen | 1) == (hash | 1) && known.st_shndx != SHN_UNDEF &&
        is_called(bounds, tables.names + known.st_name, name)) {
      *symbol = {object.base + known.st_value, known.st_size};
      return true;
    }
    if ((seen & 1) != 0) return false;
  }
  return false;
}

}  // namespace mtrace::unwind
