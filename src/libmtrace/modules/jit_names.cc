#include "modules/jit_names.h"

#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "modules/exported_symbol.h"
#include "modules/jit_symfile.h"

namespace mtrace::unwind {
namespace internal {
uint32_t jit_descriptors = 0;
}
namespace {

constexpr uint32_t kMostDescriptors = 8;
constexpr uint32_t kMostFunctions = 8192;
constexpr uint32_t kMostSymfiles = 8192;
constexpr uint32_t kTextBytes = 1u << 20;
constexpr uint32_t kAddresses = 1024;  // a power of two

// GDB's interface: "JIT Compilation Interface" in its manual.
struct Descriptor {
  uint32_t version;
  uint32_t action;
  uintptr_t relevant;
  uintptr_t first;
  bool operator==(const Descriptor&) const = default;
};
struct ListEntry {
  uintptr_t next;
  uintptr_t previous;
  uintptr_t symfile;
  uint64_t bytes;
};

struct Function {
  uintptr_t begin;
  uint32_t bytes;
  uint32_t name;  // in `text`, ended by a zero
};
// An entry of a list that has been read.
struct Known {
  uintptr_t entry;
  uintptr_t symfile;
  uint64_t bytes;
  uint32_t look;  // number of the last read of the lists that met it
};

struct Names {
  uint32_t begun;      // how many times the functions began again, counted before they are changed
  uint32_t functions;  // published after the function and its text
  uint32_t text_used;
  uint32_t symfiles;
  uint32_t look;
  Descriptor last[kMostDescriptors];
  uintptr_t addresses[kAddresses];  // of code that was met, by their low bits
  Function function[kMostFunctions];
  Known symfile[kMostSymfiles];
  char text[kTextBytes];
};

uintptr_t descriptors[kMostDescriptors];  // their addresses; 0: not written yet
Names* names = nullptr;
uint32_t busy = 0;  // 1: a thread reads the lists
uint32_t functions_logged = 0;

Names* mapped_names() {
  Names* known = load_acquire(names);
  if (known != nullptr) return known;
  auto* const fresh = static_cast<Names*>(sys::map_memory(sizeof(Names)));
  if (fresh == nullptr || compare_exchange(names, known, fresh)) return fresh;
  sys::unmap_memory(fresh, sizeof(Names));
  return known;
}

// The newest of several: newer code lies where older code was.
const Function* function_at(const Names& all, uintptr_t address) {
  for (uint32_t i = load_acquire(all.functions); i-- != 0;) {
    const Function& function = all.function[i];
    if (address - function.begin < function.bytes) return &function;
  }
  return nullptr;
}

// Stores a function that is new as number `*count`, not published yet. False: no more room.
bool keep_function(Names& all, const JitSymfile::Function& function, uint32_t* count) {
  if (*count == kMostFunctions || kTextBytes - all.text_used < kJitNameBytes) return false;
  char* const name = all.text + all.text_used;
  const uint64_t most = std::min<uint64_t>(function.name_bytes, kJitNameBytes - 1);
  if (!sys::read_memory(function.name, name, most)) return true;
  name[most] = '\0';
  const Function* const same = function_at(all, function.begin);
  if (*name == '\0' ||
      (same != nullptr && same->begin == function.begin && same->bytes == function.bytes &&
       strcmp(all.text + same->name, name) == 0)) {
    return true;
  }
  all.function[(*count)++] = {function.begin, function.bytes, all.text_used};
  all.text_used += static_cast<uint32_t>(strlen(name)) + 1;
  return true;
}

// Logs the function to the file behind the tables, for its readers.
void log_function(const Names& all, const Function& function) {
  format::LedgerHeader* const header = sys::g_table_header;
  if (header == nullptr || fetch_add(functions_logged, 1u) >= format::kLedgerMadeFunctions) return;
  const char* const name = all.text + function.name;
  const size_t length = strlen(name);
  sys::TableTurn turn;
  auto* const entry = static_cast<format::LedgerMadeFunction*>(
      turn.grow_little(sizeof(format::LedgerMadeFunction) + length));
  if (entry == nullptr) return;
  entry->begin = function.begin;
  entry->bytes = function.bytes;
  entry->name_bytes = static_cast<uint32_t>(length);
  memcpy(entry + 1, name, length);
  entry->next = load(header->first_made_function);
  store_release(header->first_made_function, reinterpret_cast<uint64_t>(entry));
}

// False: no more room, or the runtime has taken the entry back meanwhile; then the functions just
// read may be anything, and are not kept.
bool read_symfile(Names& all, uintptr_t at, const ListEntry& entry) {
  JitSymfile symfile(entry.symfile, entry.bytes);
  const uint32_t before = load(all.functions);
  uint32_t count = before;
  bool room = true;
  for (JitSymfile::Function function; room && symfile.next(&function);) {
    room = keep_function(all, function, &count);
  }
  ListEntry now;
  if (!sys::read_memory(at, &now, sizeof now) || now.symfile != entry.symfile ||
      now.bytes != entry.bytes) {
    return false;
  }
  store_release(all.functions, count);
  for (uint32_t i = before; i < count; ++i) log_function(all, all.function[i]);
  return room;
}

Known* known_symfile(Names& all, uintptr_t at, const ListEntry& entry) {
  const auto end = all.symfile + all.symfiles;
  const auto found = std::find_if(all.symfile, end, [&](const Known& known) {
    return known.entry == at && known.symfile == entry.symfile && known.bytes == entry.bytes;
  });
  return found == end ? nullptr : found;
}

// Reads a list. New entries come first, so a known one ends the read, unless `whole`.
void read_list(Names& all, uintptr_t first, bool whole) {
  uintptr_t at = first;
  for (uint32_t count = 0; at != 0 && count < kMostSymfiles; ++count) {
    ListEntry entry;
    if (!sys::read_memory(at, &entry, sizeof entry)) return;
    Known* known = known_symfile(all, at, entry);
    if (known != nullptr && !whole) return;
    if (known == nullptr) {
      if (all.symfiles == kMostSymfiles || !read_symfile(all, at, entry)) return;
      known = &all.symfile[all.symfiles++];
      *known = {at, entry.symfile, entry.bytes, 0};
    }
    known->look = all.look;
    at = entry.next;
  }
}

void read_lists(Names& all, bool whole) {
  ++all.look;
  for (uint32_t i = 0; i < kMostDescriptors; ++i) {
    const uintptr_t place = load_acquire(descriptors[i]);
    Descriptor now;
    if (place == 0 || !sys::read_memory(place, &now, sizeof now)) continue;
    if (!whole && now == all.last[i]) continue;
    all.last[i] = now;
    read_list(all, now.first, whole);
  }
}

// Forgets entries that have left the lists: one that comes back may be for other code.
void forget_gone(Names& all) {
  Known* const end = all.symfile + all.symfiles;
  Known* const left =
      std::remove_if(all.symfile, end, [&](const Known& known) { return known.look != all.look; });
  all.symfiles = static_cast<uint32_t>(left - all.symfile);
}

bool is_full(const Names& all) {
  return load(all.functions) == kMostFunctions || kTextBytes - all.text_used < kJitNameBytes;
}

}  // namespace

void note_jit_descriptor(const Object& object) {
  ExportedSymbol symbol;
  if (!find_exported(object, "__jit_debug_descriptor", &symbol)) return;
  for (uintptr_t& place : descriptors) {
    uintptr_t held = 0;
    if (compare_exchange(place, held, symbol.address)) {
      store(internal::jit_descriptors, 1u);
      return;
    }
    if (held == symbol.address) return;
  }
}

[[gnu::noinline]] void internal::look_for_jit_code(uintptr_t address) {
  Names* const all = mapped_names();
  if (all == nullptr) return;
  uintptr_t& met = all->addresses[address % kAddresses];
  if (load(met) == address || exchange(busy, 1u) != 0) return;
  store(met, address);
  read_lists(*all, false);
  store_release(busy, 0u);
}

void read_jit_names() {
  Names* const all = load_acquire(names);
  if (all == nullptr || exchange(busy, 1u) != 0) return;
  if (is_full(*all)) {
    // Begins again with the code that is there now.
    store(all->begun, all->begun + 1);
    store_barrier();
    store(all->functions, 0u);
    all->text_used = 0;
    all->symfiles = 0;
  }
  read_lists(*all, true);
  forget_gone(*all);
  store_release(busy, 0u);
}

size_t jit_name(uintptr_t address, char* name) {
  const Names* const all = load_acquire(names);
  if (all == nullptr) return 0;
  const uint32_t begun = load_acquire(all->begun);
  const Function* const function = function_at(*all, address);
  if (function == nullptr) return 0;
  const char* const text = all->text + load(function->name);
  const size_t bytes = strnlen(text, kJitNameBytes - 1);
  memcpy(name, text, bytes);
  full_fence();
  return load(all->begun) == begun ? bytes : 0;
}

void log_jit_names_again() {
  const Names* const all = load_acquire(names);
  store(functions_logged, 0u);
  for (uint32_t i = 0; all != nullptr && i < load(all->functions); ++i) {
    log_function(*all, all->function[i]);
  }
}

void read_jit_names_again() { store(busy, 0u); }

}  // namespace mtrace::unwind
