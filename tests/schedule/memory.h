// The memory between the threads of a scenario: what an access of an atomic word may find, and when
// the others find what it leaves.
//
// kX86: x86-TSO (Sewell and others, x86-TSO: A Rigorous and Usable Programmer's Model for x86
// Multiprocessors, CACM 2010). A thread's stores reach memory late, in their order; locked
// instructions and fences send them on.
//
// kArm: what Armv8 allows beyond it (Pulte and others, Simplifying ARM Concurrency, POPL 2018).
// Memory is one for all threads, but a thread's stores to different words reach it in any order,
// and its loads are done in any order: a load may find a value that has been overwritten since the
// last load with acquire. A store with release waits for all before it; a load with acquire, for
// the stores with release before it. load() and store() order nothing here, though on aarch64 they
// do (base/machine.h): what holds in this model, holds by the orders that the source names.
// Dependencies order nothing either. A load is never done after a store that follows it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "stepped_atomic.h"

namespace mtrace::schedule {

constexpr unsigned kMostThreads = 4;

// Takes one of several ways, of which each costs what `costs` says: the scheduler's.
unsigned choose(const std::vector<uint8_t>& costs);

namespace memory {

enum class Model { kX86, kArm };
extern Model g_model;

struct Store {
  void* address;
  unsigned size;
  uint64_t value;
  bool release;
  unsigned barriers = 0;  // of this thread, before it
};

void reset();  // before an order
// Without a thread.
uint64_t now(const void* address, unsigned size);
void set(void* address, unsigned size, uint64_t value);

// `shared`: there are other threads that can tell.
uint64_t read(unsigned thread, const void* address, unsigned size, Order order, bool shared);
void write(unsigned thread, Store store, bool shared);
// What a compare-and-exchange finds: `wanted` only if that is there now.
uint64_t read_to_exchange(unsigned thread, const void* address, unsigned size, uint64_t wanted,
                          bool shared);
// Around now() and set(), where they are one.
void before_update(unsigned thread, const void* address, Order order);
void after_update(unsigned thread, const void* address, Order order);
void fence(unsigned thread);
void store_barrier(unsigned thread);

// Stores of a thread that could reach memory now, by number.
void for_each_next_store(unsigned thread, const std::function<void(unsigned store)>& visit);
void flush(unsigned thread, unsigned store);
void flush_all(unsigned thread);

}  // namespace memory
}  // namespace mtrace::schedule
