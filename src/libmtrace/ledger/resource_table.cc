#include "ledger/resource_table.h"

#include <cstring>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/turn.h"
#include "format/memlog.h"

namespace mtrace::ledger {

constinit ResourceTable g_resources = {};

// A thread that vanishes in here leaves a free slot, and never a mix of two resources.
void ResourceTable::fill(Slot& slot, const Slot& content) {
  store(slot.kind, 0u);
  store_barrier();
  slot.id = content.id;
  slot.size = content.size;
  slot.stack = content.stack;
  store_release(slot.kind, content.kind);
}

// False: the table must not be used.
bool ResourceTable::begin(const base::Turn& turn) {
  if (turn && !turn.orphaned()) return true;
  count_lost();
  // A slot that was being moved may stand in two places.
  return turn && (table_ == nullptr || rebuild(table_->capacity));
}

size_t ResourceTable::Table::home(uint32_t kind, uint64_t id) const {
  return format::mix64(id + kind * 0x9e3779b97f4a7c15u) & mask();
}

// The slot of the resource, or the free one in which to put it.
ResourceTable::Slot& ResourceTable::Table::find(uint32_t kind, uint64_t id) {
  for (size_t at = home(kind, id);; at = (at + 1) & mask()) {
    Slot& slot = slots()[at];
    if (slot.kind == 0 || (slot.kind == kind && slot.id == id)) return slot;
  }
}

// Replaces the table by one of another capacity. False: no memory, and nothing has changed.
bool ResourceTable::rebuild(size_t capacity) {
  auto* const fresh = static_cast<Table*>(base::map_memory(Table::bytes(capacity)));
  if (fresh == nullptr) return false;
  fresh->capacity = capacity;
  Table* const old = table_;
  for (size_t i = 0; old != nullptr && i < old->capacity; ++i) {
    const Slot& slot = old->slots()[i];
    if (slot.kind == 0) continue;
    Slot& copy = fresh->find(slot.kind, slot.id);
    fresh->count += copy.kind == 0;
    copy = slot;
  }
  store_release(table_, fresh);
  if (old != nullptr) base::unmap_memory(old, Table::bytes(old->capacity));
  return true;
}

bool ResourceTable::put(unsigned kind, uint64_t id, const Resource& resource, Resource* ended) {
  constexpr size_t kFirstCapacity = 256;
  *ended = {};
  const base::Turn turn(turn_);
  if (!begin(turn)) return false;
  // Three quarters are used at most, or all but one where there is no memory.
  if (table_ == nullptr) {
    rebuild(kFirstCapacity);
  } else if ((table_->count + 1) * 4 > table_->capacity * 3) {
    rebuild(table_->capacity * 2);
  }
  Slot* const slot = table_ != nullptr ? &table_->find(kind, id) : nullptr;
  if (slot == nullptr || (slot->kind == 0 && table_->count + 1 >= table_->capacity)) {
    count_lost();
    return false;
  }
  if (slot->kind != 0) *ended = {slot->size, slot->stack};
  table_->count += slot->kind == 0;
  fill(*slot, {id, resource.size, resource.stack, kind});
  return true;
}

bool ResourceTable::take(unsigned kind, uint64_t id, Resource* resource) {
  *resource = {};
  const base::Turn turn(turn_);
  if (!begin(turn)) return true;
  const Slot* const found = table_ != nullptr ? &table_->find(kind, id) : nullptr;
  if (found == nullptr || found->kind == 0) return false;
  *resource = {found->size, found->stack};
  // The following slots move up, except where a search from their home would then miss them.
  const size_t mask = table_->mask();
  Slot* const slots = table_->slots();
  size_t free = static_cast<size_t>(found - slots);
  for (size_t at = (free + 1) & mask; slots[at].kind != 0; at = (at + 1) & mask) {
    const size_t from_home = (at - table_->home(slots[at].kind, slots[at].id)) & mask;
    if (from_home < ((at - free) & mask)) continue;
    fill(slots[free], slots[at]);
    free = at;
  }
  store_release(slots[free].kind, 0u);
  --table_->count;
  return true;
}

void ResourceTable::clear() {
  if (table_ != nullptr) base::unmap_memory(table_, Table::bytes(table_->capacity));
  table_ = nullptr;
  turn_ = 0;
  store(base::g_table_header->lost_resources, uint64_t{0});
}

void ResourceTable::count_lost() { fetch_add<uint64_t>(base::g_table_header->lost_resources, 1); }

namespace {

constexpr unsigned kMost = ResourceTable::kMostKinds;
static_assert(format::kLedgerKinds == kMost && format::kLedgerKindName == kMostKindName + 1);

uint64_t g_turn = 0;  // to add a name

unsigned kinds_used() { return load_acquire(base::g_table_header->kinds_used); }

}  // namespace

bool is_kind_name(const char* name) {
  if (name == nullptr) return false;
  size_t length = 0;
  for (; name[length] != '\0'; ++length) {
    const char c = name[length];
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!good || length == kMostKindName) return false;
  }
  return length != 0;
}

unsigned find_kind(const char* name) {
  const unsigned count = kinds_used();
  for (unsigned number = 1; number <= count; ++number) {
    if (strcmp(kind_name(number), name) == 0) return number;
  }
  return 0;
}

unsigned find_or_add_kind(const char* name) {
  if (const unsigned known = find_kind(name)) return known;
  const base::Turn turn(g_turn);
  if (!turn) return 0;
  if (const unsigned known = find_kind(name)) return known;
  const unsigned count = kinds_used();
  if (count == kMost) return 0;
  // What a thread that vanished here has left of a name is overwritten.
  strncpy(base::g_table_header->kinds[count], name, kMostKindName);
  store_release(base::g_table_header->kinds_used, count + 1);
  return count + 1;
}

const char* kind_name(unsigned number) {
  return number >= 1 && number <= kinds_used() ? base::g_table_header->kinds[number - 1] : nullptr;
}

}  // namespace mtrace::ledger
