#include "scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "memory.h"
#include "stepped_atomic.h"

namespace mtrace::schedule {
namespace {

constexpr size_t kStack = 256 * 1024;
constexpr uint64_t kMostSteps = 20'000;  // of one order: more is a loop without an end

struct Thread {
  ucontext_t context;
  bool finished;
};

struct Mapping {
  void* start;
  size_t bytes;
};

// What may happen next.
struct Action {
  enum Kind : uint8_t { kRun, kFlush, kSignal } kind;
  uint8_t thread;
  unsigned store = 0;
};
struct Choice {
  unsigned taken;
  std::vector<uint8_t> costs;
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
unsigned g_bound = 0;
std::mt19937_64* g_random = nullptr;

// The next order: the last choice that has another alternative within the bound. False: none.
bool next_way() {
  while (!g_way.empty()) {
    unsigned before = 0;
    for (size_t i = 0; i + 1 < g_way.size(); ++i) before += g_way[i].costs[g_way[i].taken];
    Choice& last = g_way.back();
    while (++last.taken < last.costs.size()) {
      if (before + last.costs[last.taken] <= g_bound) return true;
    }
    g_way.pop_back();
  }
  return false;
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
    static std::vector<Action> actions;  // their memory is kept
    static std::vector<uint8_t> costs;
    actions.clear();
    costs.clear();
    const auto add = [&](Action action, uint8_t cost) {
      actions.push_back(action);
      costs.push_back(cost);
    };
    const uint8_t self = static_cast<uint8_t>(g_current);
    const bool finished = g_threads[self].finished;
    if (!finished) add({Action::kRun, self}, 0);
    for (uint8_t t = 0; t < g_count; ++t) {
      if (t != self && !g_threads[t].finished) add({Action::kRun, t}, finished ? 0 : 1);
    }
    for (uint8_t t = 0; t < g_count; ++t) {
      // The thread itself sees its stores anyhow.
      if (t == self) continue;
      memory::for_each_next_store(t, [&](unsigned store) { add({Action::kFlush, t, store}, 0); });
    }
    if (signals && self == 0 && !finished && g_signal_pending) add({Action::kSignal, 0}, 1);
    if (finished && (actions.empty() || actions[0].kind != Action::kRun)) return;  // the last one
    const Action action = actions[choose(costs)];
    if (action.kind == Action::kFlush) {
      memory::flush(action.thread, action.store);
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

// The second half of an instruction without the lock: no handler comes before it.
void store_unlocked(void* address, unsigned size, uint64_t value) {
  const bool shared = access(address, true, false);
  if (!g_running) return memory::set(address, size, value);
  memory::write(g_current, {address, size, value, false}, shared);
}

// Reads and writes at once. Returns the old value.
uint64_t update(void* address, unsigned size, uint64_t value, Order order, bool adds = false) {
  if (g_running) memory::before_update(g_current, address, order);
  const uint64_t seen = memory::now(address, size);
  memory::set(address, size, adds ? seen + value : value);
  if (g_running) memory::after_update(g_current, address, order);
  return seen;
}

void prepare(unsigned number) {
  Thread& thread = g_threads[number];
  thread.finished = false;
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
  std::unique_ptr<Scenario> scenario(make());
  g_scenario = scenario.get();
  g_count = scenario->threads();
  g_signal_pending = scenario->has_handler();
  for (unsigned t = 0; t < g_count; ++t) prepare(t);
  g_current = 0;
  memory::reset();
  g_running = true;
  swapcontext(&g_main, &g_threads[0].context);
  g_running = false;
  for (unsigned t = 0; t < g_count; ++t) memory::flush_all(t);
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

// Sums of costs never make an action impossible that costs nothing.
unsigned choose(const std::vector<uint8_t>& costs) {
  if (costs.size() == 1) return 0;
  if (g_random != nullptr) {
    // Mostly on as before, so that a thread gets somewhere.
    return (*g_random)() % 4 != 0 ? 0 : static_cast<unsigned>((*g_random)() % costs.size());
  }
  if (g_at == g_way.size()) g_way.push_back({0, costs});
  const Choice& choice = g_way[g_at++];
  if (choice.costs != costs) {
    fprintf(stderr, "an order is not repeatable\n");
    abort();
  }
  return choice.taken;
}

uint64_t read(const void* address, unsigned size, Order order) {
  const bool shared = access(address, false);
  if (!g_running) return memory::now(address, size);
  return memory::read(g_current, address, size, order, shared);
}

void write(void* address, unsigned size, uint64_t value, Order order) {
  const bool shared = access(address, true);
  if (!g_running) return memory::set(address, size, value);
  memory::write(g_current, {address, size, value, order == Order::kRelease}, shared);
}

bool exchange_if(void* address, unsigned size, uint64_t* expected, uint64_t desired) {
  const bool shared = access(address, true);
  const uint64_t wanted = *expected;
  if (g_running) {
    *expected = memory::read_to_exchange(g_current, address, size, wanted, shared);
  } else {
    *expected = memory::now(address, size);
  }
  if (*expected != wanted) return false;
  update(address, size, desired, Order::kBoth);
  return true;
}

uint64_t exchange(void* address, unsigned size, uint64_t value) {
  access(address, true);
  return update(address, size, value, Order::kBoth);
}

uint64_t add(void* address, unsigned size, uint64_t value, Order order) {
  access(address, true);
  return update(address, size, value, order, true);
}

void fence() {
  step();
  if (g_running) memory::fence(g_current);
}

void fence_all() {
  step();
  if (!g_running) return;
  for (unsigned thread = 0; thread < g_count; ++thread) memory::fence(thread);
}

void store_barrier() {
  if (g_running) memory::store_barrier(g_current);
}

uint64_t add_unlocked(void* address, unsigned size, uint64_t value) {
  if (memory::g_model == memory::Model::kArm) return add(address, size, value, Order::kRelaxed);
  const uint64_t seen = read(address, size, Order::kRelaxed);
  store_unlocked(address, size, seen + value);
  return seen;
}

bool exchange_if_unlocked(void* address, unsigned size, uint64_t* expected, uint64_t desired) {
  if (memory::g_model == memory::Model::kArm) return exchange_if(address, size, expected, desired);
  const uint64_t seen = read(address, size, Order::kRelaxed);
  if (seen != *expected) {
    *expected = seen;
    return false;
  }
  store_unlocked(address, size, desired);
  return true;
}

bool one_thread() { return g_count == 1; }

}  // namespace mtrace::schedule
