
#include "base/probe.h"
#include "events/logging.h"
#include "ledger/ledger.h"
#include "ledger/resource_table.h"
#include "record/call_form.h"
#include "record/call_stack.h"
#include "record/recorder.h"

namespace mtrace::record {

uint8_t g_mapping_watchers = 0;

namespace {

using ledger::g_ledger;
using ledger::g_regions;
using ledger::Region;

unsigned g_kind = 0;
unsigned g_end_kind = 0;  // 0: ends are not recorded

void watch(MappingWatcher watcher, bool on) {
  const uint8_t others = g_mapping_watchers & static_cast<uint8_t>(~watcher);
  store(g_mapping_watchers, static_cast<uint8_t>(others | (on ? watcher : 0)));
}

uint64_t bytes_of(const Region& region) { return region.end - region.start; }

void book_end(const Region& region, int change) {
  ledger::count_cut(g_ledger.stacks.record(region.stack), bytes_of(region), change);
}

// Whether a region is still mapped after the call that was to end it has failed.
bool is_mapped(const Region& region) {
  if (base::mapped(region.start, bytes_of(region))) return true;
  // mremap may have cut the end off before it failed.
  if (base::mapped(region.start, 1)) g_regions.count_lost();
  return false;
}

}  // namespace

void watch_regions(bool ends) {
  g_kind = ledger::find_or_add_kind("mmap");
  g_end_kind = ends ? ledger::find_or_add_kind("munmap") : 0;
  if (g_kind != 0) watch(kReportsWatch, true);
}

void stop_watching_regions() { watch(kReportsWatch, false); }

void watch_mappings_for_events(bool on) { watch(kEventsWatch, on); }

void log_mapping(uintptr_t start, size_t bytes, const unwind::Registers& caller) {
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  events::mapped(slot, start, bytes, walk_to_stack(caller, slot, form_of(format::kMmap)));
}

void log_remapping(uintptr_t old, size_t old_bytes, uintptr_t start, size_t bytes,
                   const unwind::Registers& caller) {
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  events::remapped(slot, old, old_bytes, start, bytes,
                   walk_to_stack(caller, slot, form_of(format::kMremap)));
}

void log_unmapping(uintptr_t start, size_t bytes, uint8_t call, const unwind::Registers& caller) {
  if (start != base::page_start(start) || bytes == 0) return;
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  const uint32_t stack = g_free_stacks ? walk_to_stack(caller, slot, form_of(call)) : 0;
  events::unmapped(slot, start, bytes, stack);
}

void record_region(uintptr_t start, size_t bytes, uint8_t call, uint32_t form,
                   const unwind::Registers& caller) {
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  const uint32_t index = intern_of_kind(g_kind, caller, call, form);
  if (index == 0) return g_regions.count_lost();
  ledger::StackRecord& stack = g_ledger.stacks.record(index);
  // Counted before another thread can end the region: no stack may release more than it recorded.
  ledger::count_recorded(stack, bytes);
  // The kernel chooses only free addresses: a region known there was unmapped past the hooks.
  const bool known = g_regions.put(start, start + bytes, index, book_end);
  if (!known) ledger::count_released(stack, bytes);
}

void RegionsEnd::begin(uintptr_t start, size_t bytes) {
  constexpr uintptr_t kUserEnd = uintptr_t{1} << 56;  // of the widest paging
  if (start != base::page_start(start) || start >= kUserEnd) return;
  if (bytes == 0 || bytes > kUserEnd - start) return;
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  ending_ = g_regions.begin_end(start, start + bytes);
}

void RegionsEnd::finish(bool good, uint8_t call, const unwind::Registers& caller) {
  if (ending_.mark == 0) return;
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  const bool ours = g_regions.end(ending_, book_end, good ? nullptr : is_mapped);
  if (!ours || !good || g_end_kind == 0) return;
  const uint32_t index = intern_of_kind(g_end_kind, caller, call);
  if (index != 0) ledger::count_recorded(g_ledger.stacks.record(index), ending_.bytes);
}

}  // namespace mtrace::record
