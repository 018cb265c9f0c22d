#include "modules/modules.h"

#include <string.h>

#include <algorithm>
#include <atomic>

#include "base/atomic.h"
#include "base/table_file.h"
#include "modules/module_entry.h"
#include "modules/object.h"

namespace mtrace::modules {
namespace internal {
MTRACE_HOT constinit uint32_t unload_epoch = 0;
}
namespace {

constexpr uint32_t kHints = 4096;  // each a power of two
constexpr uint32_t kObjectHints = 2048;
constexpr uint32_t kRetiredHints = 1024;

// Entries by number, in order of birth; the first null ends the list. An entry is published by the
// one compare-and-swap that puts it here; a thread that loses it looks again.
std::atomic<Entry*> entries[kMaxModules];
// Bits of the entries that live, or whose death forget_unloaded() has not reported. Searches skip
// the others, of which there are many where objects come and go.
std::atomic<uint64_t> active[kMaxModules / 64];
// By page of the address: the number of the entry that held it last. Only a hint.
std::atomic<uint16_t> hints[kObjectHints];  // for loaded_object
std::atomic<uint16_t> name_hints[kHints];   // for find_module, by hint_bits()
// By page and epoch: the one entry that a stack retired then means. Later entries do not change it.
std::atomic<uint16_t> retired_hints[kRetiredHints];
// Whether an object may have been in a hole of another, both loaded.
std::atomic<bool> overlapped{false};

Entry* entry_at(uint32_t index) {
  return index < kMaxModules ? entries[index].load(std::memory_order_acquire) : nullptr;
}

// Call after the entry has come to life, so that deactivate() sees that it lives.
void activate(uint32_t number) { active[number / 64].fetch_or(uint64_t{1} << number % 64); }

// Call after the entry's death is reported; an entry that lives again stays active.
void deactivate(const Entry& entry, uint32_t number) {
  active[number / 64].fetch_and(~(uint64_t{1} << number % 64));
  if (died(entry.module) == kAlive) activate(number);
}

// Calls visit(number, entry) in order of birth until it returns true; returns whether it did.
template <typename Visit>
bool any_active(const Visit& visit) {
  for (uint32_t part = 0; part < kMaxModules / 64; ++part) {
    uint64_t bits = active[part].load(std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      const uint32_t number = part * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      if (visit(number, *entry_at(number))) return true;
    }
  }
  return false;
}

std::atomic<uint16_t>& hint_for(uintptr_t address) {
  return hints[address >> 12 & (kObjectHints - 1)];
}

// The bits of an address that its name hint leaves out. Text of two objects seldom lies within 16
// KiB, and large objects need fewer hints than they have pages. Only a page is of one object for
// certain.
unsigned hint_bits() { return overlapped.load(std::memory_order_relaxed) ? 12 : 14; }

// One object lies in a hole of another: the hints were for one object alone.
void forget_hints() {
  overlapped.store(true, std::memory_order_relaxed);
  for (std::atomic<uint16_t>& hint : name_hints) hint = kMaxModules;
  for (std::atomic<uint16_t>& hint : retired_hints) hint = kMaxModules;
}

bool overlap(const Module& a, const Module& b) { return a.start < b.end && b.start < a.end; }

// Enters `fresh` into the list and returns it, or the entry that another thread has entered, or a
// dead one that lives again. nullptr: the list is full.
Entry* publish(Entry* fresh) {
  Module& module = fresh->module;
  module.born = module.first = unload_epoch();
  module.generation = 1;
  Entry* revivable = nullptr;
  uint32_t revivable_number = 0;
  bool epoch_taken = false;
  uint32_t number = 0;
  for (;; ++number) {
    if (number == kMaxModules) {
      fetch_add<uint64_t>(base::g_table_header->lost_modules, 1);
      return nullptr;
    }
    Entry* other = entries[number].load(std::memory_order_acquire);
    if (other == nullptr) {
      if (revivable != nullptr) {
        const uint32_t death = died(revivable->module);
        if (death == kAlive || set_died(revivable, death, kAlive)) {
          activate(revivable_number);
          revivable->name.store(fresh->object.name, std::memory_order_relaxed);
          return revivable;
        }
      }
      if (entries[number].compare_exchange_strong(other, fresh, std::memory_order_acq_rel)) {
        activate(number);
        fresh->logged.store(log_module(module, number));
        log_death(fresh->logged, module);
        return fresh;
      }
    }
    const Module& known = other->module;
    if (known.base == module.base && known.identity == module.identity) {
      module.first = known.first < module.first ? known.first : module.first;
    }
    const bool same_range = known.start == module.start && known.end == module.end &&
                            known.base == module.base && same_file(known, module);
    const uint32_t death = died(known);
    if (same_range && death == kAlive) return other;
    if (overlap(known, module)) {
      // Another object was there between two lives of one file at one place: the file gets two
      // entries under one name, so that stacks of each life find theirs.
      revivable = same_range ? other : nullptr;
      revivable_number = number;
      if (death == kAlive && still_loaded(*other)) {
        forget_hints();
      } else if (death == kAlive) {
        // Its dlclose was not seen (libc closes its own plug-ins from inside).
        if (!epoch_taken) module.born = add_fetch_ordered(internal::unload_epoch, 1u);
        epoch_taken = true;
        if (set_died(other, kAlive, module.born)) unwind::forget_rules(known.start, known.end);
      }
    }
    if (other->path_number == fresh->path_number && strcmp(known.path, module.path) == 0) {
      if (same_range) {
        module.generation = known.generation;
      } else if (known.generation >= module.generation) {
        module.generation = known.generation + 1;
      }
    }
  }
}

bool holds(const Module& module, uintptr_t address) {
  return address >= module.start && address < module.end;
}

// A hole between the segments of one object may hold another one: the narrower range counts.
bool narrower(const Module& a, const Module& b) { return a.end - a.start < b.end - b.start; }

// The living entry of `object`, which holds `address`: by hint, else by search. nullptr: there is
// none, and *dead is one of the same file at the same place, if there is one.
Entry* living_entry(uintptr_t address, const Object& object, Entry** dead) {
  auto fits = [&](Entry* entry) {
    return entry != nullptr && holds(entry->module, address) && entry->object.base == object.base &&
           same_object(*entry, object);
  };
  std::atomic<uint16_t>& hint = hint_for(address);
  Entry* hinted = entry_at(hint.load(std::memory_order_relaxed));
  if (fits(hinted) && died(hinted->module) == kAlive) return hinted;
  Entry* living = nullptr;
  any_active([&](uint32_t number, Entry& entry) {
    if (died(entry.module) != kAlive || !fits(&entry)) return false;
    hint.store(static_cast<uint16_t>(number), std::memory_order_relaxed);
    living = &entry;
    return true;
  });
  for (uint32_t i = 0; Entry* entry = living == nullptr ? entry_at(i) : nullptr; ++i) {
    if (!fits(entry)) continue;
    *dead = entry;
    break;
  }
  return living;
}

// Revives an entry that was found dead while another thread loaded its object again: walks go
// through the object by rules cached before, which enter nothing into the list.
Entry* back_again(uintptr_t address, uint32_t* number) {
  Entry* last = nullptr;
  for (uint32_t i = 0; Entry* entry = entry_at(i); ++i) {
    if (!holds(entry->module, address) || !still_loaded(*entry)) continue;
    if (last != nullptr && died(entry->module) < died(last->module)) continue;
    last = entry;
    *number = i;
  }
  const uint32_t death = last != nullptr ? died(last->module) : kAlive;
  // A thread that loses to another one has nothing left to do.
  if (death != kAlive && set_died(last, death, kAlive)) {
    activate(*number);
    forget_hints();  // another object may have come into a hole of this one
  }
  return last;
}

}  // namespace

const Object* loaded_object(uintptr_t address, Object* scratch) {
  if (!locate_object(address, scratch)) return nullptr;
  Entry* dead = nullptr;
  Entry* entry = living_entry(address, *scratch, &dead);
  if (entry != nullptr) return &entry->object;
  if (dead != nullptr) entry = make_entry_again(*dead, *scratch);
  if (entry == nullptr) {
    inspect_object(scratch);
    entry = make_entry(*scratch);
  }
  if (entry != nullptr) entry = publish(entry);
  return entry != nullptr ? &entry->object : scratch;
}

const Module* find_module(uintptr_t address, uint32_t retired, uint32_t* index) {
  // Hints are only left for addresses that one entry alone held.
  auto fits = [=](const Module& module) {
    const uint32_t death = died(module);
    return holds(module, address) &&
           (retired == kAlive ? death == kAlive : module.born < retired && retired <= death);
  };
  std::atomic<uint16_t>& hint =
      retired == kAlive ? name_hints[address >> hint_bits() & (kHints - 1)]
                        : retired_hints[((address >> 12) + retired) & (kRetiredHints - 1)];
  uint32_t number = hint.load(std::memory_order_relaxed);
  const Entry* found = entry_at(number);
  if (found == nullptr || !fits(found->module)) {
    found = nullptr;
    unsigned candidates = 0;
    const Entry* dying = nullptr;
    uint32_t dying_number = 0;
    const auto consider = [&](uint32_t i, const Entry& entry) {
      const Module& module = entry.module;
      if (fits(module)) {
        ++candidates;
        // Of two that were there in turn, the later; of two at once, the one in the other's hole.
        if (found != nullptr && narrower(found->module, module)) return false;
        found = &entry;
        number = i;
      } else if (holds(module, address) && died(module) != kAlive &&
                 entry.announced.load(std::memory_order_acquire) != died(module)) {
        dying = &entry;  // its stacks are about to be retired
        dying_number = i;
      }
      return false;
    };
    if (retired == kAlive) any_active(consider);
    for (uint32_t i = 0; const Entry* entry = retired != kAlive ? entry_at(i) : nullptr; ++i) {
      consider(i, *entry);
    }
    if (found == nullptr && retired == kAlive) {
      found = dying != nullptr ? dying : back_again(address, &dying_number);
      number = dying_number;
      candidates = 0;
    }
    if (found == nullptr) return nullptr;
    if (candidates == 1) {
      hint.store(static_cast<uint16_t>(number), std::memory_order_relaxed);
    }
  }
  if (index != nullptr) *index = number;
  return &found->module;
}

const Module* find_module(uintptr_t address, StackEpoch& epoch, uint32_t* index) {
  constexpr unsigned kTries = 8;  // each of them sees a dlclose and a dlopen of other threads
  const Module* module = nullptr;
  unsigned tries = 0;
  do {
    module = find_module(address, epoch.seen(), index);
  } while (epoch.moved() && ++tries < kTries);
  return module;
}

void log_modules_again() {
  for (uint32_t i = 0; Entry* entry = entry_at(i); ++i) {
    entry->logged.store(log_module(entry->module, i));
  }
}

const Module* module_at(uint32_t index) {
  const Entry* entry = entry_at(index);
  return entry == nullptr ? nullptr : &entry->module;
}

bool any_unloaded() {
  return any_active([](uint32_t, const Entry& entry) {
    Object now;
    return died(entry.module) == kAlive && !locate_object(entry.object.start, &now);
  });
}

uint32_t forget_unloaded(void (*unloaded)(uintptr_t, uintptr_t, uint32_t, void*), void* context) {
  uint32_t seen = unload_epoch();
  uint32_t now = 0;
  uintptr_t start = UINTPTR_MAX;  // a range that holds all unloaded objects
  uintptr_t end = 0;
  any_active([&](uint32_t, Entry& entry) {
    if (died(entry.module) != kAlive || seems_loaded(entry)) return false;
    if (now == 0) {
      now = add_fetch_ordered(internal::unload_epoch, 1u);
      ++seen;
    }
    set_died(&entry, kAlive, now);
    start = std::min(start, entry.module.start);
    end = std::max(end, entry.module.end);
    return false;
  });
  // Objects that found no room in the list may have rules, but no entry that could be seen dying.
  if (load(base::g_table_header->lost_modules) != 0) start = 0, end = UINTPTR_MAX;
  if (end != 0) {
    unwind::forget_rules(start, end);
    ++seen;
  }
  any_active([&](uint32_t number, Entry& entry) {
    const uint32_t death = died(entry.module);
    if (death == kAlive) return false;
    // Two threads may both report it. Before that, stacks in use may have frames in the object.
    if (unloaded != nullptr) {
      unloaded(entry.module.start, entry.module.end, death, context);
    }
    entry.announced.store(death, std::memory_order_release);
    deactivate(entry, number);
    return false;
  });
  return seen;
}

}  // namespace mtrace::modules
