// Resources that the program records itself: (kind, id) -> size and stack. A hash table with open
// addressing, for one thread at a time (base/turn.h).
//
// Thread-safe; async-signal-safe. A table of zeros is ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/turn.h"
#include "format/ledger.h"

namespace mtrace::ledger {

struct Resource {
  uint64_t size;   // bytes
  uint32_t stack;  // index in the stack table; 0: no resource
};

class ResourceTable {
 public:
  static constexpr unsigned kMostKinds = 30;  // kinds are 1 to kMostKinds

  // Makes the resource live. `ended`: the one of the same kind and id that was live before. False:
  // no room and nothing has changed, but lost() has grown.
  bool put(unsigned kind, uint64_t id, const Resource& resource, Resource* ended);
  // Takes the resource out. False: it is not live. True, but no resource: the turn did not come,
  // and lost() has grown.
  bool take(unsigned kind, uint64_t id, Resource* resource);

  // Calls visit(resource) for every live resource. No other thread may run.
  template <typename Visit>
  void for_each(Visit&& visit) {
    const base::Turn turn(turn_);
    if (!begin(turn)) return;
    for (size_t i = 0; table_ != nullptr && i < table_->capacity; ++i) {
      const Slot& slot = table_->slots()[i];
      if (slot.kind != 0) visit(Resource{slot.size, slot.stack});
    }
  }

  // Forgets all resources. No other thread may be inside the library.
  void clear();

 private:
  struct Slot {
    uint64_t id;
    uint64_t size;
    uint32_t stack;
    uint32_t kind;  // 0: free
  };
  struct Table {
    size_t capacity;  // a power of two
    size_t count;     // of slots in use; one at least is free

    Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
    static size_t bytes(size_t capacity) { return sizeof(Table) + capacity * sizeof(Slot); }
    size_t mask() const { return capacity - 1; }
    size_t home(uint32_t kind, uint64_t id) const;
    Slot& find(uint32_t kind, uint64_t id);
  };

  static void fill(Slot& slot, const Slot& content);
  bool begin(const base::Turn& turn);
  bool rebuild(size_t capacity);
  void count_lost();

  uint64_t turn_ = 0;
  Table* table_ = nullptr;
};

// Of this process.
extern ResourceTable g_resources;

// ---- Names of the kinds of resources that the program records, numbered from 1 as they appear.
// Names are in the header of the ledger. They are only added, at most ResourceTable::kMostKinds of
// them, one thread at a time (base/turn.h). Thread-safe; async-signal-safe.

inline constexpr size_t kMostKindName = 31;  // bytes

// Whether `name` is 1 to 31 letters, digits and "-" (ASCII). nullptr is not.
bool is_kind_name(const char* name);

// Number of the kind with this name, which must pass is_kind_name(); 0: unknown.
unsigned find_kind(const char* name);
// Number of the kind with this name, added if unknown; 0: no room for another kind.
unsigned find_or_add_kind(const char* name);

// Name by number; nullptr past the last.
const char* kind_name(unsigned number);

}  // namespace mtrace::ledger
