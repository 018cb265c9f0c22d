#include "scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "stepped_atomic.h"

namespace mtrace::schedule {
namespace {

constexpr unsigned kMostThreads = 4;
constexpr size_t kStack = 256 * 1024;
constexpr uint64_t kMostSteps = 20'000;  // of one order: more is a loop without an end

struct Store {
  void* address;
  unsigned size;
  uint64_t value;
};

struct Thread {
  ucontext_t context;
  std::deque<Store> buffer;  // stores that only this thread sees, oldest first
  bool finished;
};

struct Mapping {
  void* start;
  size_t bytes;
};

// What may happen next.
struct Action {
  enum Kind : uint8_t { kRun, kFlush, kSignal, kKeep } kind;
  uint8_t thread;
  uint8_t cost;
};
struct Choice {
  unsigned taken;
  unsigned count;
  uint8_t cost[3 * kMostThreads];
};

Thread g_threads[kMostThreads];
std::unique_ptr<char[]> g_stacks[kMostThreads];
ucontext_t g_main;
Scenario* g_scenario = nullptr;
unsigned g_count = 0;
unsigned g_current = 0;
bool g_running = false;
bool g_signal_pending = false;
uint64_t g_steps = 0;
std::vector<Mapping> g_mappings;
std::string g_failure;

// Which words matter: a word that one thread alone accesses, or that nobody writes, needs no
// choices before it. By mapping and place in it, since an order may have them elsewhere. The
// handler counts as a thread of its own.
struct Users {
  uint8_t readers;
  uint8_t writers;
  bool several() const { return writers != 0 && std::popcount(unsigned{readers} | writers) > 1; }
};
constexpr unsigned kHandler = kMostThreads;
std::unordered_map<uint64_t, Users> g_users;
std::unordered_set<uint64_t> g_shared;  // as found out when the search began
bool g_all_shared = true;
bool g_new_shared = false;
bool g_in_handler = false;

// The order under way: choices made before and to be made again, then the first of each.
std::vector<Choice> g_way;
size_t g_at = 0;
unsigned g_spent = 0;
unsigned g_bound = 0;
std::mt19937_64* g_random = nullptr;

// Sums of costs never make an action impossible that costs nothing.
unsigned choose(const Action* actions, unsigned count) {
  if (count == 1) return 0;
  if (g_random != nullptr) {
    // Mostly on as before, so that a thread gets somewhere.
    const unsigned taken = (*g_random)() % 4 != 0 ? 0 : (*g_random)() % count;
    return taken;
  }
  if (g_at == g_way.size()) {
    Choice choice = {};
    choice.count = count;
    for (unsigned i = 0; i < count; ++i) choice.cost[i] = actions[i].cost;
    g_way.push_back(choice);
  }
  const Choice& choice = g_way[g_at++];
  if (choice.count != count) {
    fprintf(stderr, "an order is not repeatable\n");
    abort();
  }
  g_spent += choice.cost[choice.taken];
  return choice.taken;
}

// The next order: the last choice that has another alternative within the bound. False: none.
bool next_way() {
  while (!g_way.empty()) {
    unsigned before = 0;
    for (size_t i = 0; i + 1 < g_way.size(); ++i) before += g_way[i].cost[g_way[i].taken];
    Choice& last = g_way.back();
    while (++last.taken < last.count) {
      if (before + last.cost[last.taken] <= g_bound) return true;
    }
    g_way.pop_back();
  }
  return false;
}

void to_memory(const Store& store) { memcpy(store.address, &store.value, store.size); }
void flush_one(Thread& thread) {
  to_memory(thread.buffer.front());
  thread.buffer.pop_front();
}
void flush_all(Thread& thread) {
  while (!thread.buffer.empty()) flush_one(thread);
}

void switch_to(unsigned next) {
  const unsigned old = g_current;
  g_current = next;
  swapcontext(&g_threads[old].context, &g_threads[next].context);
}

// What comes before the current thread's next access.
void step(bool signals = true) {
  if (!g_running) return;
  if (++g_steps > kMostSteps) {
    expect(false, "a loop without an end");
    swapcontext(&g_threads[g_current].context, &g_main);  // never comes back
  }
  for (;;) {
    Action actions[3 * kMostThreads];
    unsigned count = 0;
    const uint8_t self = static_cast<uint8_t>(g_current);
    const bool finished = g_threads[self].finished;
    if (!finished) actions[count++] = {Action::kRun, self, 0};
    for (uint8_t t = 0; t < g_count; ++t) {
      if (t != self && !g_threads[t].finished) {
        actions[count++] = {Action::kRun, t, static_cast<uint8_t>(finished ? 0 : 1)};
      }
    }
    for (uint8_t t = 0; t < g_count; ++t) {
      // The thread itself sees its stores anyhow.
      if (t != self && !g_threads[t].buffer.empty()) actions[count++] = {Action::kFlush, t, 0};
    }
    if (signals && self == 0 && !finished && g_signal_pending) {
      actions[count++] = {Action::kSignal, 0, 1};
    }
    if (finished && (count == 0 || actions[0].kind != Action::kRun)) return;  // the last one
    const Action& action = actions[choose(actions, count)];
    if (action.kind == Action::kFlush) {
      flush_one(g_threads[action.thread]);
      continue;
    }
    if (action.kind == Action::kSignal) {
      g_signal_pending = false;
      g_in_handler = true;
      g_scenario->handle();
      g_in_handler = false;
      continue;
    }
    if (action.thread != self) {
      switch_to(action.thread);
      if (finished) abort();
    }
    return;
  }
}

void body(unsigned thread) {
  g_scenario->run(thread);
  g_threads[thread].finished = true;
  step();
  // All have ended.
  setcontext(&g_main);
}

// Notes the access. False: it needs no choice before it.
bool is_shared(const void* address, bool writes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (size_t i = 0; i < g_mappings.size(); ++i) {
    const uintptr_t place = at - reinterpret_cast<uintptr_t>(g_mappings[i].start);
    if (place >= g_mappings[i].bytes) continue;
    const uint64_t key = uint64_t{i} << 32 | place;
    Users& users = g_users[key];
    const auto self = static_cast<uint8_t>(1u << (g_in_handler ? kHandler : g_current));
    (writes ? users.writers : users.readers) |= self;
    if (g_all_shared || g_shared.contains(key)) return true;
    g_new_shared |= users.several();
    return false;
  }
  return true;  // the scenario's own
}

// Notes the access and takes the choices before it. False: there were none, nor is one needed
// whether others see a store.
bool access(const void* address, bool writes, bool signals = true) {
  if (!g_running) return false;
  const bool shared = is_shared(address, writes);
  if (shared) step(signals);
  return shared;
}

const Store* own_store(const void* address, unsigned size) {
  const std::deque<Store>& buffer = g_threads[g_current].buffer;
  for (auto store = buffer.rbegin(); store != buffer.rend(); ++store) {
    if (store->address == address && store->size == size) return &*store;
  }
  return nullptr;
}

uint64_t in_memory(const void* address, unsigned size) {
  uint64_t value = 0;
  memcpy(&value, address, size);
  return value;
}

void put(void* address, unsigned size, uint64_t value, bool shared) {
  Thread& self = g_threads[g_current];
  bool keep = !self.buffer.empty();
  if (!keep && shared) {
    const Action actions[] = {{Action::kFlush, 0, 0}, {Action::kKeep, 0, 1}};
    keep = choose(actions, 2) == 1;
  }
  if (keep) {
    self.buffer.push_back({address, size, value});
  } else {
    to_memory({address, size, value});
  }
}

uint64_t cut(uint64_t value, unsigned size) {
  return size == 8 ? value : value & ((uint64_t{1} << 8 * size) - 1);
}

void prepare(unsigned number) {
  Thread& thread = g_threads[number];
  thread.finished = false;
  thread.buffer.clear();
  getcontext(&thread.context);
  if (g_stacks[number] == nullptr) g_stacks[number] = std::make_unique<char[]>(kStack);
  thread.context.uc_stack.ss_sp = g_stacks[number].get();
  thread.context.uc_stack.ss_size = kStack;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, reinterpret_cast<void (*)()>(body), 1, number);
}

void one_order(const Make& make, Outcome* outcome) {
  g_steps = 0;
  g_failure.clear();
  g_at = 0;
  g_spent = 0;
  std::unique_ptr<Scenario> scenario(make());
  g_scenario = scenario.get();
  g_count = scenario->threads();
  g_signal_pending = scenario->has_handler();
  for (unsigned t = 0; t < g_count; ++t) prepare(t);
  g_current = 0;
  g_running = true;
  swapcontext(&g_main, &g_threads[0].context);
  g_running = false;
  for (unsigned t = 0; t < g_count; ++t) flush_all(g_threads[t]);
  if (g_failure.empty()) scenario->check();
  scenario.reset();
  for (const Mapping& mapping : g_mappings) munmap(mapping.start, mapping.bytes);
  g_mappings.clear();
  ++outcome->orders;
  outcome->steps += g_steps;
  outcome->failure = g_failure;
}

}  // namespace

void expect(bool good, const std::string& what) {
  if (!good && g_failure.empty()) g_failure = what;
}

void* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  g_mappings.push_back({memory, bytes});
  return memory;
}

Outcome sample(const Make& make, uint64_t orders, uint64_t seed) {
  Outcome outcome;
  std::mt19937_64 random(seed);
  g_random = &random;
  g_all_shared = true;
  g_users.clear();
  while (outcome.orders < orders && outcome.failure.empty()) one_order(make, &outcome);
  g_random = nullptr;
  outcome.complete = outcome.failure.empty();
  return outcome;
}

Outcome explore(const Make& make, unsigned bound, uint64_t most_orders) {
  constexpr uint64_t kToLearn = 300;
  // Finds out which words are shared. Should an order show one more, all begins again.
  Outcome outcome = sample(make, kToLearn, 7);
  if (!outcome.failure.empty()) return outcome;
  g_all_shared = false;
  g_bound = bound;
  do {
    g_new_shared = false;
    outcome = {};
    g_way.clear();
    for (const auto& [key, users] : g_users) {
      if (users.several()) g_shared.insert(key);
    }
    do {
      one_order(make, &outcome);
      g_way.resize(g_at);
      if (!outcome.failure.empty()) break;
      outcome.complete = !next_way();
    } while (!outcome.complete && !g_new_shared && outcome.orders < most_orders);
  } while (g_new_shared && outcome.failure.empty());
  g_shared.clear();
  return outcome;
}

uint64_t read(const void* address, unsigned size) {
  access(address, false);
  if (g_running) {
    if (const Store* own = own_store(address, size)) return own->value;
  }
  return in_memory(address, size);
}

void write(void* address, unsigned size, uint64_t value) {
  const bool shared = access(address, true);
  if (!g_running) return to_memory({address, size, value});
  put(address, size, value, shared);
}

bool exchange_if(void* address, unsigned size, uint64_t* expected, uint64_t desired) {
  access(address, true);
  if (g_running) flush_all(g_threads[g_current]);
  const uint64_t seen = in_memory(address, size);
  if (seen == cut(*expected, size)) {
    to_memory({address, size, desired});
    return true;
  }
  *expected = seen;
  return false;
}

uint64_t exchange(void* address, unsigned size, uint64_t value) {
  access(address, true);
  if (g_running) flush_all(g_threads[g_current]);
  const uint64_t seen = in_memory(address, size);
  to_memory({address, size, value});
  return seen;
}

uint64_t add(void* address, unsigned size, uint64_t value) {
  access(address, true);
  if (g_running) flush_all(g_threads[g_current]);
  const uint64_t seen = in_memory(address, size);
  to_memory({address, size, seen + value});
  return seen;
}

void fence() {
  step();
  if (g_running) flush_all(g_threads[g_current]);
}

uint64_t add_unlocked(void* address, unsigned size, uint64_t value) {
  const uint64_t seen = read(address, size);
  const bool shared = access(address, true, false);
  if (!g_running) {
    to_memory({address, size, seen + value});
  } else {
    put(address, size, seen + value, shared);
  }
  return seen;
}

bool exchange_if_unlocked(void* address, unsigned size, uint64_t* expected, uint64_t desired) {
  const uint64_t seen = read(address, size);
  if (seen != *expected) {
    *expected = seen;
    return false;
  }
  const bool shared = access(address, true, false);
  if (!g_running) {
    to_memory({address, size, desired});
  } else {
    put(address, size, desired, shared);
  }
  return true;
}

bool one_thread() { return g_count == 1; }

}  // namespace mtrace::schedule
