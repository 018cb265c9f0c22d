#include "events/logging.h"

#include <algorithm>
#include <cstring>

namespace mtrace::events {

constinit bool g_logging = false;

namespace {

using ledger::Call;

constexpr size_t kMostText = 255;  // bytes
constexpr uint64_t kMostSlack = 0xffffffffu;

uint32_t g_forks = 0;  // of the present log

uint64_t address_bits(const void* address) { return reinterpret_cast<uintptr_t>(address) >> 3; }
uint64_t place_word(const Block& block) {
  return block.stack | std::min(block.slack, kMostSlack) << 32;
}

void put_text(EventRecord kind, uint64_t low, const char* text) {
  const size_t length = text != nullptr ? strnlen(text, kMostText) : 0;
  Record record(kNoRing,
                2 + static_cast<unsigned>((length + sizeof(EventUnit) - 1) / sizeof(EventUnit)));
  if (!record) return;
  record.unit(1) = {length, 0};
  record.put_bytes(2, text, length);
  record.commit(kind, low);
}

void put_mark(EventRecord kind, uint32_t ring, uint64_t low) {
  Record record(ring, 1);
  if (record) record.commit(kind, low);
}

}  // namespace

void begin_log() { g_forks = 0; }

void set_logging(bool on) { store(g_logging, on); }

void allocated(uint32_t slot, const void* address, const Block& block, Call call) {
  Record record(ring_of(slot), 2);
  if (!record) return;
  record.unit(1) = {block.size, place_word(block)};
  record.commit(EventRecord::kAllocation, address_bits(address), static_cast<unsigned>(call));
}

void freed(uint32_t slot, const void* address, bool known, uint32_t stack, Call call) {
  const uint32_t ring = ring_of(slot);
  if (stack == 0) {
    Record record(ring, 1);
    if (!record) return;
    return record.commit(known ? EventRecord::kFree : EventRecord::kUnknownFree,
                         address_bits(address), static_cast<unsigned>(call));
  }
  Record record(ring, 2);
  if (!record) return;
  record.unit(1) = {0, stack};
  record.commit(known ? EventRecord::kFreeWithStack : EventRecord::kUnknownFreeWithStack,
                address_bits(address), static_cast<unsigned>(call));
}

void realloc_begins(uint32_t slot, const void* address) {
  put_mark(EventRecord::kReallocBegin, ring_of(slot), address_bits(address));
}

void realloc_failed(uint32_t slot, const void* address) {
  put_mark(EventRecord::kReallocFailed, ring_of(slot), address_bits(address));
}

void reallocated(uint32_t slot, const void* old, const void* address, const Block& block,
                 Call call) {
  Record record(ring_of(slot), 3);
  if (!record) return;
  record.unit(1) = {block.size, place_word(block)};
  record.unit(2) = {reinterpret_cast<uintptr_t>(old), 0};
  record.commit(EventRecord::kRealloc, address_bits(address), static_cast<unsigned>(call));
}

void mapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack) {
  Record record(ring_of(slot), 2);
  if (!record) return;
  record.unit(1) = {bytes, stack};
  record.commit(EventRecord::kMap, start >> 3);
}

void unmapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack) {
  Record record(ring_of(slot), 2);
  if (!record) return;
  record.unit(1) = {bytes, stack};
  record.commit(EventRecord::kUnmap, start >> 3);
}

void remapped(uint32_t slot, uintptr_t old_start, uint64_t old_bytes, uintptr_t start,
              uint64_t bytes, uint32_t stack) {
  Record record(ring_of(slot), 3);
  if (!record) return;
  record.unit(1) = {bytes, stack};
  record.unit(2) = {old_start, old_bytes};
  record.commit(EventRecord::kRemap, start >> 3);
}

void thread_begins(uint32_t slot, uint32_t tid) {
  const uint32_t ring = ring_of(slot);
  if (ring == kNoRing) return;
  count_thread(ring, tid);
  put_mark(EventRecord::kThread, ring, tid);
}

uint32_t fork_begins(uint32_t slot) {
  const uint32_t number = fetch_add(g_forks, 1u) + 1;
  Record record(ring_of(slot), 1, true);
  if (!record) return 0;
  record.commit(EventRecord::kFork, number);
  return number;
}

void recording(bool on) { put_mark(on ? EventRecord::kStart : EventRecord::kStop, kNoRing, 0); }

void reported(uint32_t seq, const char* label) { put_text(EventRecord::kReport, seq, label); }

void noted(const char* text) { put_text(EventRecord::kNote, 0, text); }

}  // namespace mtrace::events
