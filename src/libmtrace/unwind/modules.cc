#include "unwind/modules.h"

#include <string.h>

#include <atomic>

#include "base/hot.h"
#include "base/table_file.h"
#include "unwind/module_entry.h"
#include "unwind/module_log.h"
#include "unwind/object.h"
#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace internal {
MTRACE_HOT constinit uint32_t unload_epoch = 0;
}
namespace {

constexpr uint32_t kHints = 4096;  // a power of two

// Entries by number, in order of birth; the first null ends the list. An entry is published by the
// one compare-and-swap that puts it here; who loses it looks again.
std::atomic<Entry*> entries[kMaxModules];
std::atomic<uint32_t> lost{0};
// By page of the address: the number of the entry that held it last. Only a hint.
std::atomic<uint16_t> hints[kHints];       // for loaded_object
std::atomic<uint16_t> name_hints[kHints];  // for find_module

Entry* entry_at(uint32_t index) {
  return index < kMaxModules ? entries[index].load(std::memory_order_acquire) : nullptr;
}

std::atomic<uint16_t>& hint_for(uintptr_t address) { return hints[address >> 12 & (kHints - 1)]; }

bool overlap(const Module& a, const Module& b) { return a.start < b.end && b.start < a.end; }

// Enters `fresh` into the list, or finds that another thread has, or that a dead entry can live
// again. nullptr: the list is full.
Entry* publish(Entry* fresh) {
  Module& module = fresh->module;
  module.born = unload_epoch();
  module.generation = 1;
  Entry* revivable = nullptr;
  bool epoch_taken = false;
  uint32_t number = 0;
  for (;; ++number) {
    if (number == kMaxModules) {
      lost.fetch_add(1, std::memory_order_relaxed);
      sys::count_loss(&format::LedgerHeader::lost_modules);
      return nullptr;
    }
    Entry* other = entries[number].load(std::memory_order_acquire);
    if (other == nullptr) {
      if (revivable != nullptr) {
        const uint32_t death = died(revivable->module);
        if (death == kAlive || set_died(revivable, death, kAlive)) return revivable;
      }
      if (entries[number].compare_exchange_strong(other, fresh, std::memory_order_acq_rel)) {
        fresh->logged.store(log_module(module, number));
        log_death(fresh->logged, module);
        return fresh;
      }
    }
    const Module& known = other->module;
    const bool same_range = known.start == module.start && known.end == module.end &&
                            known.base == module.base && same_file(known, module);
    const uint32_t death = died(known);
    if (same_range && death == kAlive) return other;
    if (overlap(known, module)) {
      // Between two lives of one file at one place another one was there: two entries, so that
      // stacks of each life find theirs, under one name.
      revivable = same_range ? other : nullptr;
      if (death == kAlive && still_loaded(*other)) {
        // One lies in a hole of the other: its addresses are no longer that one's alone.
        for (std::atomic<uint16_t>& hint : name_hints) hint = kMaxModules;
      } else if (death == kAlive) {
        // Its dlclose was not seen (libc closes its own plug-ins from inside).
        if (!epoch_taken) module.born = add_fetch_ordered(internal::unload_epoch, 1u);
        epoch_taken = true;
        if (set_died(other, kAlive, module.born)) forget_rules();
      }
    }
    if (strcmp(known.path, module.path) == 0) {
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

// In a hole between the segments of one object there may be another one.
bool narrower(const Module& a, const Module& b) { return a.end - a.start < b.end - b.start; }

// The living entry of `object`, which holds `address`: by hint, else by search.
Entry* living_entry(uintptr_t address, const Object& object) {
  auto fits = [&](Entry* entry) {
    return entry != nullptr && holds(entry->module, address) && entry->object.base == object.base &&
           died(entry->module) == kAlive && same_object(*entry, object);
  };
  std::atomic<uint16_t>& hint = hint_for(address);
  Entry* hinted = entry_at(hint.load(std::memory_order_relaxed));
  if (fits(hinted)) return hinted;
  for (uint32_t i = 0; Entry* entry = entry_at(i); ++i) {
    if (fits(entry)) {
      hint.store(static_cast<uint16_t>(i), std::memory_order_relaxed);
      return entry;
    }
  }
  return nullptr;
}

// An entry that was found dead while another thread loaded its object again, which was then met by
// rules of before: it lives again, as if a walk had come to its code anew.
Entry* back_again(uintptr_t address, uint32_t* number) {
  Entry* last = nullptr;
  for (uint32_t i = 0; Entry* entry = entry_at(i); ++i) {
    if (!holds(entry->module, address) || !still_loaded(*entry)) continue;
    if (last != nullptr && died(entry->module) < died(last->module)) continue;
    last = entry;
    *number = i;
  }
  const uint32_t death = last != nullptr ? died(last->module) : kAlive;
  // Who loses to another that sees the same has nothing left to do.
  if (death != kAlive) set_died(last, death, kAlive);
  return last;
}

}  // namespace

uint32_t lost_modules() { return lost.load(std::memory_order_relaxed); }

const Object* loaded_object(uintptr_t address, Object* scratch) {
  if (!locate_object(address, scratch)) return nullptr;
  Entry* entry = living_entry(address, *scratch);
  if (entry != nullptr) return &entry->object;
  inspect_object(scratch);
  entry = make_entry(*scratch);
  if (entry != nullptr) entry = publish(entry);
  return entry != nullptr ? &entry->object : scratch;
}

const Module* find_module(uintptr_t address, uint32_t retired, uint32_t* index) {
  // Hints are only left for addresses that one living entry alone holds.
  auto alive = [](const Module& module) { return died(module) == kAlive; };
  std::atomic<uint16_t>& hint = name_hints[address >> 12 & (kHints - 1)];
  uint32_t number = hint.load(std::memory_order_relaxed);
  const Entry* found = retired == kAlive ? entry_at(number) : nullptr;
  if (found == nullptr || !holds(found->module, address) || !alive(found->module)) {
    found = nullptr;
    unsigned candidates = 0;
    const Entry* dying = nullptr;
    uint32_t dying_number = 0;
    for (uint32_t i = 0; const Entry* entry = entry_at(i); ++i) {
      const Module& module = entry->module;
      if (!holds(module, address)) continue;
      const uint32_t death = died(module);
      const bool loaded =
          retired == kAlive ? death == kAlive : module.born < retired && retired <= death;
      if (!loaded) {
        // Its stacks are about to be retired.
        if (death != kAlive && entry->announced.load(std::memory_order_acquire) != death) {
          dying = entry;
          dying_number = i;
        }
        continue;
      }
      ++candidates;
      // Of two that were there in turn, the later; of two at once, the one in the other's hole.
      if (found != nullptr && narrower(found->module, module)) continue;
      found = entry;
      number = i;
    }
    if (found == nullptr && retired == kAlive) {
      found = dying != nullptr ? dying : back_again(address, &dying_number);
      number = dying_number;
      candidates = 0;
    }
    if (found == nullptr) return nullptr;
    if (retired == kAlive && candidates == 1) {
      hint.store(static_cast<uint16_t>(number), std::memory_order_relaxed);
    }
  }
  if (index != nullptr) *index = number;
  return &found->module;
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
  for (uint32_t i = 0; const Entry* entry = entry_at(i); ++i) {
    Object now;
    if (died(entry->module) == kAlive && !locate_object(entry->object.start, &now)) return true;
  }
  return false;
}

uint32_t forget_unloaded(void (*unloaded)(uintptr_t, uintptr_t, uint32_t, void*), void* context) {
  uint32_t seen = unload_epoch();
  uint32_t now = 0;
  for (uint32_t i = 0; Entry* entry = entry_at(i); ++i) {
    if (died(entry->module) != kAlive) continue;
    if (still_loaded(*entry)) continue;
    if (now == 0) {
      now = add_fetch_ordered(internal::unload_epoch, 1u);
      ++seen;
    }
    set_died(entry, kAlive, now);
  }
  // Rules of objects that found no room in the list have no entry that could be seen dying.
  if (now != 0 || lost_modules() != 0) {
    forget_rules();
    ++seen;
  }
  for (uint32_t i = 0; Entry* entry = entry_at(i); ++i) {
    const uint32_t death = died(entry->module);
    if (death == kAlive || entry->announced.load(std::memory_order_acquire) == death) continue;
    // Two threads may both do so. Until it is done, stacks in use may have frames in the object.
    if (unloaded != nullptr) {
      unloaded(entry->module.start, entry->module.end, death, context);
    }
    entry->announced.store(death, std::memory_order_release);
  }
  return seen;
}

}  // namespace mtrace::unwind
