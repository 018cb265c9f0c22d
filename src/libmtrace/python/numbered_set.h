// Objects that get a number when they first appear, found by a 64-bit identity. Insert-only,
// lock-free, of a fixed size; async-signal-safe. The memory is mapped with the first object.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"

namespace mtrace::unwind {

// `kPlaces`: a power of two, several times kMost.
template <typename T, uint32_t kMost, uint32_t kPlaces>
class NumberedSet {
 public:
  // Number, from 1, of the object with this identity for which is_same(object) is true. If there is
  // none, make(number) makes it, or returns nullptr: no room. 0: no room, `*made` is then false.
  template <typename IsSame, typename Make>
  uint32_t find_or_make(uint64_t identity, IsSame is_same, Make make, bool* made) {
    uint32_t fresh = 0;
    *made = false;
    if (!has_tables()) return 0;
    for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
      uint32_t& place = tables_->places[(identity + probe) % kPlaces];
      uint32_t number = load_acquire(place);
      if (number == 0) {
        if (fresh == 0 && (fresh = enter(make)) == 0) return 0;
        // The loser of a race goes on with the winner's, and its own number stays unused.
        if (compare_exchange(place, number, fresh)) return *made = true, fresh;
      }
      const T& known = *find(number);
      if (known.identity == identity && is_same(known)) return number;
    }
    return 0;
  }

  // nullptr: no object has the number.
  const T* find(uint32_t number) const {
    const bool is_number = number != 0 && number <= kMost && load_acquire(tables_) != nullptr;
    return is_number ? known(number) : nullptr;
  }
  // find() for a number that this set has given out.
  const T* known(uint32_t number) const { return load_acquire(tables_->things[number]); }
  uint32_t highest() const {
    const uint32_t count = load(count_);
    return count < kMost ? count : kMost;
  }
  bool is_full() const { return load(count_) >= kMost; }

 private:
  static constexpr uint32_t kMostProbes = 64;
  struct Tables {
    const T* things[kMost + 1];
    uint32_t places[kPlaces];
  };

  // Maps the tables, which another thread may do meanwhile. False: no memory.
  bool has_tables() {
    if (load_acquire(tables_) != nullptr) return true;
    auto* const made = static_cast<Tables*>(sys::map_memory(sizeof(Tables)));
    if (made == nullptr) return false;
    Tables* none = nullptr;
    if (!compare_exchange(tables_, none, made)) sys::unmap_memory(made, sizeof(Tables));
    return true;
  }

  template <typename Make>
  uint32_t enter(Make make) {
    if (is_full()) return 0;
    const uint32_t number = fetch_add(count_, 1u) + 1;
    if (number > kMost) return 0;
    const T* const thing = make(number);
    if (thing == nullptr) return 0;
    store_release(tables_->things[number], thing);
    return number;
  }

  Tables* tables_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace mtrace::unwind
