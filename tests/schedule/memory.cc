#include "memory.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

namespace mtrace::schedule::memory {

Model g_model = Model::kX86;

namespace {

struct Value {
  uint64_t value;
  uint64_t since;  // the number of the change of memory
};

struct View {
  std::deque<Store> buffer;  // that only this thread sees, oldest first
  unsigned barriers = 0;
  uint64_t floor = 0;                                // no load is done before this time
  std::unordered_map<const void*, uint64_t> looked;  // nor one of the same word before this
};

View g_views[kMostThreads];
uint64_t g_time = 0;
// Of each word that was written: its values, oldest first.
std::unordered_map<const void*, std::vector<Value>> g_values;

const Store* own_store(const View& view, const void* address, unsigned size) {
  for (auto store = view.buffer.rbegin(); store != view.buffer.rend(); ++store) {
    if (store->address == address && store->size == size) return &*store;
  }
  return nullptr;
}

// Whether the store has to wait for one of those before it.
bool waits(const Store& store, std::deque<Store>::const_iterator begin,
           std::deque<Store>::const_iterator end) {
  return std::any_of(begin, end, [&](const Store& before) {
    return g_model == Model::kX86 || store.release || store.barriers != before.barriers ||
           store.address == before.address;
  });
}

// Sends on the stores up to the last one of which `which` is true.
template <typename Which>
void flush_until(unsigned thread, const Which& which) {
  std::deque<Store>& buffer = g_views[thread].buffer;
  const auto last = std::find_if(buffer.rbegin(), buffer.rend(), which);
  for (auto count = buffer.rend() - last; count > 0; --count) flush(thread, 0);
}

}  // namespace

void reset() {
  for (View& view : g_views) view = {};
  g_time = 0;
  g_values.clear();
}

uint64_t now(const void* address, unsigned size) {
  uint64_t value = 0;
  memcpy(&value, address, size);
  return value;
}

void set(void* address, unsigned size, uint64_t value) {
  if (g_model == Model::kArm) {
    std::vector<Value>& values = g_values[address];
    if (values.empty()) values.push_back({now(address, size), 0});
    values.push_back({size == 8 ? value : value & ((uint64_t{1} << 8 * size) - 1), ++g_time});
  }
  memcpy(address, &value, size);
}

uint64_t read(unsigned thread, const void* address, unsigned size, Order order, bool shared) {
  View& view = g_views[thread];
  const bool acquire = order == Order::kAcquire;
  if (g_model == Model::kArm && acquire) {
    flush_until(thread, [](const Store& store) { return store.release; });
  }
  if (const Store* own = own_store(view, address, size)) return own->value;
  const auto found = g_values.find(address);
  if (found == g_values.end()) return now(address, size);
  const std::vector<Value>& values = found->second;
  uint64_t& looked = view.looked[address];
  const uint64_t first = std::max(view.floor, looked);
  static std::vector<uint8_t> costs;
  costs.assign(1, 0);  // the newest
  for (size_t i = values.size() - 1; shared && i > 0 && values[i].since > first; --i) {
    costs.push_back(1);
  }
  const Value& value = values[values.size() - 1 - choose(costs)];
  looked = std::max(first, value.since);
  if (acquire) view.floor = looked;
  return value.value;
}

uint64_t read_to_exchange(unsigned thread, const void* address, unsigned size, uint64_t wanted,
                          bool shared) {
  if (g_model == Model::kArm) {
    const uint64_t seen = read(thread, address, size, Order::kAcquire, shared);
    if (seen != wanted) return seen;
    // The exchange is not done if another has come between: it looks again.
  }
  before_update(thread, address, Order::kBoth);
  return now(address, size);
}

void before_update(unsigned thread, const void* address, Order order) {
  if (g_model == Model::kX86 || order == Order::kBoth) return flush_all(thread);
  flush_until(thread, [&](const Store& store) { return store.address == address; });
}

void after_update(unsigned thread, const void* address, Order order) {
  g_views[thread].looked[address] = g_time;
  if (order == Order::kBoth) g_views[thread].floor = g_time;
}

void write(unsigned thread, Store store, bool shared) {
  View& view = g_views[thread];
  store.barriers = view.barriers;
  static const std::vector<uint8_t> kSendOrKeep = {0, 1};
  const bool keep =
      waits(store, view.buffer.begin(), view.buffer.end()) || (shared && choose(kSendOrKeep) == 1);
  view.buffer.push_back(store);
  if (!keep) flush(thread, static_cast<unsigned>(view.buffer.size() - 1));
}

void fence(unsigned thread) {
  flush_all(thread);
  g_views[thread].floor = g_time;
}

void store_barrier(unsigned thread) { ++g_views[thread].barriers; }

void for_each_next_store(unsigned thread, const std::function<void(unsigned store)>& visit) {
  const std::deque<Store>& buffer = g_views[thread].buffer;
  for (auto store = buffer.begin(); store != buffer.end(); ++store) {
    if (!waits(*store, buffer.begin(), store)) {
      visit(static_cast<unsigned>(store - buffer.begin()));
    }
  }
}

void flush(unsigned thread, unsigned store) {
  View& view = g_views[thread];
  const auto found = view.buffer.begin() + store;
  set(found->address, found->size, found->value);
  view.looked[found->address] = g_time;
  view.buffer.erase(found);
}

void flush_all(unsigned thread) {
  while (!g_views[thread].buffer.empty()) flush(thread, 0);
}

}  // namespace mtrace::schedule::memory
