// What the tables promise, in every order of a few threads. See scheduler.h.
//
//   scenarios [--arm] [--bound N] [--orders N] [--sample N] [NAME...]
//
// On the memory of x86, or of Arm.
// Prints for each scenario how many orders there are; ends with status 1 at a counterexample. The
// tables' sources are part of this file, so that a copy of one with a bug can take its place.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <set>

#include "base/clock.h"
#include "base/probe.h"
#include "base/process.h"
#include "base/table_memory.h"
#include "ledger/block_hash.cc"
#include "ledger/block_table.cc"
#include "ledger/heap_shadow.cc"
#include "ledger/peak.cc"
#include "ledger/stack_table.cc"
#include "ledger/thread_slots.cc"
#include "memory.h"
#include "notes_and_rules.h"
#include "scheduler.h"

namespace mtrace::base {

// How often, to see a table grow.
unsigned g_maps = 0;

void* map_memory(size_t bytes) {
  ++g_maps;
  return schedule::map(bytes);
}
void* map_sparse_memory(size_t bytes) { return schedule::map(bytes); }
bool give_back(void*, size_t) { return false; }
bool tables_in_file() { return false; }
bool may_be_filtered() { return false; }
void* TableTurn::grow_part(size_t) { return nullptr; }
void unmap_memory(void*, size_t) {}
// No file behind the tables.
format::LedgerHeader g_own_header = {};
format::LedgerHeader* g_table_header = &g_own_header;
TableTurn::TableTurn() = default;
void Turn::leave() {}
void* TableTurn::grow(size_t, bool) { return nullptr; }

// Threads 1 to 9 live, the others are gone.
bool thread_exists(uint32_t, uint32_t tid) { return tid < 10; }
uint32_t thread_id() { return 0; }
bool fence_all_threads() { return schedule::fence_all(), true; }
uint64_t block_signals() { return 0; }
void restore_signals(uint64_t) {}

namespace {
int no_time(clockid_t, timespec* now) { return *now = {}, 0; }
}  // namespace
namespace internal {
GetTime get_time = no_time;
}
uint64_t g_time_zero = 0;

}  // namespace mtrace::base

namespace mtrace::ledger {
namespace {

using schedule::expect;
using schedule::Scenario;

// As large as it is, only what is touched costs.
template <typename T>
T& make() {
  return *new (schedule::map(sizeof(T))) T;
}

Stack stack_of(const uintptr_t* frames, uint8_t depth, uint64_t hash) {
  return {1, hash, frames, depth, 0, false, false};
}

// ---- Stack table.

// Two threads meet two stacks of equal hash at once, in both orders, a third one reads.
class SameStacks : public Scenario {
 public:
  SameStacks() { table_.init(nullptr); }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    for (const unsigned which : {thread, 1 - thread}) {
      const uint32_t index = table_.intern(stack_of(frames_[which], 2, 42), thread + 1);
      found_[thread][which] = index;
    }
  }
  void check() override {
    expect(found_[0][0] == found_[1][0] && found_[0][1] == found_[1][1], "one stack, two records");
    expect(found_[0][0] != found_[0][1], "two stacks, one record");
    expect(table_.size() == 3, "as many records as there are");
    std::set<uint32_t> visited;
    table_.for_each([&](uint32_t index, const StackRecord&) {
      expect(visited.insert(index).second, "a record is visited twice");
    });
    expect(visited.size() == 3, "a record is not visited");
  }

 private:
  StackTable& table_ = make<StackTable>();
  const uintptr_t frames_[2][2] = {{1, 2}, {1, 3}};
  uint32_t found_[2][2] = {};
};

// Two threads meet two stacks with one tail at once, which is there once and whole.
class SameTails : public Scenario {
 public:
  SameTails() { table_.init(nullptr); }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    for (const unsigned which : {thread, 1 - thread}) {
      uintptr_t frames[1 + kTailFrames] = {which + 1u};
      for (unsigned i = 1; i <= kTailFrames; ++i) frames[i] = 100 + i;
      const uint32_t index =
          table_.intern(stack_of(frames, 1 + kTailFrames, 40 + which), thread + 1);
      const StackRecord& stack = table_.record(index);
      found_[thread][which] = stack.tail;
      uintptr_t read[1 + kTailFrames] = {};
      expect(table_.frames_of(stack, read) == 1 + kTailFrames, "frames are missing");
      expect(std::equal(frames, frames + 1 + kTailFrames, read), "other frames");
    }
  }
  void check() override {
    expect(found_[0][0] == found_[1][0] && found_[0][1] == found_[1][1], "one stack, two records");
    expect(found_[0][0] == found_[0][1], "one tail, two pieces");
    expect(table_.tail_at(found_[0][0]).children >= 2, "a piece that two stacks end with");
  }

 private:
  StackTable& table_ = make<StackTable>();
  uint32_t found_[2][2] = {};
};

// Two stacks find their place taken by the same one at once, while a third thread visits all.
class TakenPlace : public Scenario {
 public:
  TakenPlace() { table_.init(nullptr); }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 2) {
      uint64_t before = 0;
      table_.for_each([&](uint32_t, const StackRecord& stack) { before += stack.depth(); });
      expect(before <= 2, "what is not there was visited");
      return;
    }
    found_[thread] = table_.intern(stack_of(frames_, 1, hashes_[thread]), thread + 1);
  }
  void check() override {
    for (const unsigned which : {0, 1}) {
      expect(table_.intern(stack_of(frames_, 1, hashes_[which]), 1) == found_[which], "lost");
    }
    unsigned count = 0;
    table_.for_each([&](uint32_t, const StackRecord&) { ++count; });
    expect(count == 3, "a record is not visited");
  }

 private:
  StackTable& table_ = make<StackTable>();
  const uintptr_t frames_[1] = {7};
  const uint64_t hashes_[2] = {1u << 14, 1u << 15};  // as the low bits of the overflow record's
  uint32_t found_[2] = {};
};

// ---- Counters.

// Threads that come after the owner, one of them without a slot, and a handler count for one stack.
// No count is lost, though most sets are added to without a lock. `late`: another has come before
// them, so that they are not the second.
class SetsOfAStack : public Scenario {
 public:
  SetsOfAStack(unsigned threads, bool handler, bool late) : threads_(threads), handler_(handler) {
    table_.init(nullptr);
    record_ = table_.intern(stack_of(frames_, 1, 5), 1);
    if (late) table_.counting(table_.record(record_), 4);
  }
  unsigned threads() const override { return threads_; }
  bool has_handler() const override { return handler_; }
  void handle() override { count(numbers_[0]); }
  void run(unsigned thread) override {
    count(numbers_[thread]);
    if (thread == 0) count(numbers_[thread]);
  }
  void check() override {
    const Counters sum = table_.read(table_.record(record_));
    expect(sum.allocated_blocks == operations_, "a count is lost");
    expect(sum.allocated_bytes == 10 * operations_, "bytes are lost");
  }

 private:
  void count(uint32_t number) {
    ++operations_;
    const auto [set, owner] = table_.counting(table_.record(record_), number);
    count_allocated(set, owner, {10, 1, 0});
  }
  StackTable& table_ = make<StackTable>();
  const uintptr_t frames_[1] = {7};
  const uint32_t numbers_[3] = {2, 3, 0};  // 1 is the owner
  unsigned threads_;
  bool handler_;
  uint64_t operations_ = 0;
  uint32_t record_ = 0;
};

// A block goes from one thread to another while a report reads: what is freed was allocated.
class ReadWhileCounting : public Scenario {
 public:
  ReadWhileCounting() {
    table_.init(nullptr);
    record_ = table_.intern(stack_of(frames_, 1, 5), 1);
    table_.counting(table_.record(record_), 2);
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    StackRecord& stack = table_.record(record_);
    if (thread == 0) {
      count_allocated(table_.counting(stack, 1).set, true, {10, 1, 0});
      store_release(handed_, 1u);
    } else if (thread == 1) {
      if (load_acquire(handed_) == 0) return;
      count_freed(table_.counting(stack, 2).set, true, {10, 1, 0, 0, false, false});
    } else {
      const Counters sum = table_.read(stack);
      expect(sum.freed_blocks <= sum.allocated_blocks, "freed, but never allocated");
      expect(sum.freed_bytes <= sum.allocated_bytes, "more freed than allocated");
    }
  }
  void check() override {}

 private:
  StackTable& table_ = make<StackTable>();
  const uintptr_t frames_[1] = {7};
  uint32_t record_ = 0;
  uint32_t handed_ = 0;
};

// ---- Blocks: in the hash table, or in the shadow of the heap beside it.

struct Hash : BlockHash {
  static constexpr uintptr_t kBase = 0x7f0000001000;
};
constexpr BlockTable::Process kRoomy = {[] { return uint64_t{1} << 40; }, [](bool) { return true; },
                                        [](uint64_t) {}};
struct Shadow : BlockTable {
  static constexpr uintptr_t kBase = 0x100;
  bool init() {
    use_shadow(HeapShadow::Granules::kShared, kRoomy);
    return BlockTable::init();
  }
};

// Blocks of one line, or one granule, put and taken by two threads, one of them handed over; a
// report looks on.
template <typename Table>
class BlocksOfALine : public Scenario {
 public:
  explicit BlocksOfALine(bool reader) : reader_(reader) { table_.init(); }
  unsigned threads() const override { return reader_ ? 3 : 2; }
  void run(unsigned thread) override {
    Block block;
    if (thread == 0) {
      put(kBase, 100);
      put(kBase + 8, 200);
      store_release(handed_, 1u);
      take(kBase, 100);
    } else if (thread == 1) {
      put(kBase + 16, 300);
      if (load_acquire(handed_) == 1) {
        take(kBase + 8, 200);
        taken_ = true;
      }
      take(kBase + 16, 300);
      expect(!table_.take(kBase + 24, &block), "a block that nobody put");
    } else {
      table_.for_each([&](uintptr_t, const Block& seen) {
        expect(seen.size == seen.stack * uint64_t{100}, "a block that never was");
      });
    }
  }
  void check() override {
    Block block;
    expect(table_.take(kBase + 8, &block) == !taken_, "a block is there twice, or lost");
    expect(table_.repair([](uintptr_t, const Block&) { expect(false, "a block is left"); }) == 0,
           "something is left half done");
  }

 private:
  void put(uintptr_t address, uint64_t size) {
    expect(table_.put(address, {size, static_cast<uint32_t>(size / 100), 0}), "no room");
  }
  void take(uintptr_t address, uint64_t size) {
    Block block = {};
    expect(table_.take(address, &block), "a block is not found");
    expect(block.size == size && block.stack == size / 100, "another block");
  }
  static constexpr uintptr_t kBase = Table::kBase;
  Table& table_ = make<Table>();
  bool reader_;
  bool taken_ = false;
  uint32_t handed_ = 0;
};

// A put that is one too many for the newest level, by two threads at once; then the next level.
class NextLevel : public Scenario {
 public:
  NextLevel() {
    table_.init();
    for (unsigned i = 0; i < before_growth(); ++i) table_.put(address(i), {i, 1, 0});
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    const unsigned first = before_growth() + 2 * thread;
    for (unsigned i = first; i < first + 2; ++i) {
      expect(table_.put(address(i), {i, 1, 0}), "no room");
    }
    Block block;
    expect(table_.take(address(first), &block) && block.size == first, "a block is not found");
    expect(table_.take(address(0 + thread), &block) && block.size == thread,
           "an old block is lost");
  }
  void check() override {
    uint64_t count = 0;
    Block block;
    for (unsigned i = 2; i < before_growth() + 4; ++i) count += table_.take(address(i), &block);
    expect(count == before_growth(), "a block is lost");
    expect(table_.lost_blocks() == 0, "counted as lost");
  }

 private:
  static uintptr_t address(unsigned i) { return 0x7f0000000000 + 128 * uintptr_t{i} * 37; }
  // Blocks that the first level takes without asking for a second: the memory mapped tells.
  static unsigned before_growth() {
    static const unsigned most = [] {
      BlockHash& table = make<BlockHash>();
      table.init();
      unsigned i = 0;
      for (base::g_maps = 0; base::g_maps == 0; ++i) table.put(address(i), {i, 1, 0});
      return i - 1;
    }();
    return most;
  }

  BlockHash& table_ = make<BlockHash>();
};

// A realloc that moves a block, while another thread is given the old address.
template <typename Table>
class ReallocMoves : public Scenario {
 public:
  ReallocMoves() {
    table_.init();
    table_.put(kOld, {100, 1, 0});
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    Block block;
    if (thread == 0) {
      const auto reserved = table_.reserve(kOld, &block);
      expect(is_known(reserved) && block.size == 100, "the block is not found");
      store_release(moved_, 1u);  // the allocator has given the address away
      expect(table_.put(kNew, {200, 2, 0}), "no room");
      table_.release(reserved);
      expect(table_.take(kNew, &block) && block.size == 200, "the new block is not found");
    } else if (load_acquire(moved_) == 1) {
      expect(table_.put(kOld, {300, 3, 0}), "no room");
      expect(table_.take(kOld, &block) && block.size == 300, "another's block was taken");
    }
  }
  void check() override {
    expect(table_.repair([](uintptr_t, const Block&) { expect(false, "a block is left"); }) == 0,
           "something is left half done");
  }

 private:
  static bool is_known(const BlockHash::Slot* slot) { return slot != nullptr; }
  static bool is_known(const BlockTable::Reserved& reserved) { return reserved.known; }
  static constexpr uintptr_t kOld = Table::kBase;
  static constexpr uintptr_t kNew = Table::kBase + 8;
  Table& table_ = make<Table>();
  uint32_t moved_ = 0;
};

// The only thread, which claims slots without a lock, and its signal handler.
template <typename Table>
class HandlerInsidePut : public Scenario {
 public:
  HandlerInsidePut() { table_.init(); }
  unsigned threads() const override { return 1; }
  bool has_handler() const override { return true; }
  void handle() override { put_and_take(kBase + 32, 500); }
  void run(unsigned) override {
    expect(table_.put(kBase, {100, 1, 0}), "no room");
    put_and_take(kBase + 8, 200);
    Block block;
    expect(table_.take(kBase, &block) && block.size == 100, "a block is lost");
  }
  void check() override {
    expect(table_.repair([](uintptr_t, const Block&) { expect(false, "a block is left"); }) == 0,
           "something is left half done");
  }

 private:
  void put_and_take(uintptr_t address, uint64_t size) {
    Block block;
    expect(table_.put(address, {size, 1, 0}), "no room");
    expect(table_.take(address, &block) && block.size == size, "a block is lost");
  }
  static constexpr uintptr_t kBase = Table::kBase;
  Table& table_ = make<Table>();
};

// The first blocks in a piece of the heap, by two threads at once, while a report looks on; no two
// begin in one granule.
class FirstPage : public Scenario {
 public:
  FirstPage() {
    table_.init();
    table_.use_shadow(HeapShadow::Granules::kOwn, kRoomy);
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    Block block;
    if (thread == 2) {
      const bool there = load_acquire(done_) == 1;
      unsigned seen = 0;
      table_.for_each([&](uintptr_t address, const Block& one) {
        expect(address == kBase + 32 * one.stack && one.size == 100 * one.stack, "never put");
        seen += one.stack == 1;
      });
      expect(!there || seen == 1, "a live block is not seen");
      return;
    }
    const uint32_t stack = thread + 1;
    expect(table_.put(kBase + 32 * stack, {100 * stack, stack, 0}), "no room");
    if (thread == 0) {
      store_release(done_, 1u);
    } else {
      expect(table_.take(kBase + 32 * stack, &block) && block.size == 200, "a block is lost");
      expect(!table_.take(kBase + 32 * stack, &block), "taken twice");
    }
  }
  void check() override {
    Block block;
    expect(table_.take(kBase + 32, &block) && block.size == 100, "a block is lost");
    expect(table_.repair([](uintptr_t, const Block&) { expect(false, "a block is left"); }) == 0,
           "something is left half done");
    expect(table_.lost_blocks() == 0, "counted as lost");
  }

 private:
  static constexpr uintptr_t kBase = Shadow::kBase;
  Shadow& table_ = make<Shadow>();
  uint32_t done_ = 0;
};

// A block is put into a page, and one taken out of it, while the page is given back.
class PageIsGivenBack : public Scenario {
 public:
  explicit PageIsGivenBack(bool empty) : empty_(empty) {
    threads_ = &make<ThreadSlots>();
    threads_->acquire(1, 1);
    table_.init();
    table_.use_shadow(
        HeapShadow::Granules::kOwn,
        {kRoomy.live_blocks, [](bool inside) { return threads_->all_were_outside(inside); },
         [](uint64_t) {}});
    put(1);
    if (empty_) take(1);
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 1) return table_.give_back_empty(false);
    if (!empty_) return take(1), put(2);
    put(2);
    take(2);
    put(2);
  }
  void check() override {
    unsigned seen = 0;
    table_.for_each([&](uintptr_t address, const Block& block) {
      expect(address == kBase + 64 && block.size == 200, "a block that never was");
      ++seen;
    });
    expect(seen == 1, "a block is not seen, or twice");
    take(2);
  }

 private:
  void put(uint32_t number) {
    Operation operation(threads_->slot(1));
    expect(table_.put(kBase + 32 * number, {100 * number, number, 0}), "no room");
  }
  void take(uint32_t number) {
    Operation operation(threads_->slot(1));
    Block block;
    expect(table_.take(kBase + 32 * number, &block) && block.size == 100 * number,
           "a block is lost");
  }
  static constexpr uintptr_t kBase = Shadow::kBase;
  static inline ThreadSlots* threads_;
  Shadow& table_ = make<Shadow>();
  bool empty_;
};

// A realloc that fails, while a neighbour in the same granule comes or goes.
class ReallocFails : public Scenario {
 public:
  ReallocFails() {
    table_.init();
    table_.put(kOld, {100, 1, 0});
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    Block block;
    if (thread == 0) {
      const BlockTable::Reserved reserved = table_.reserve(kOld, &block);
      expect(reserved.known && block.size == 100, "the block is not found");
      table_.restore(reserved, kOld, block);
      expect(table_.take(kOld, &block) && block.size == 100, "the block is lost");
    } else {
      expect(table_.put(kOld + 8, {300, 3, 0}), "no room");
      expect(table_.take(kOld + 8, &block) && block.size == 300, "another's block was taken");
    }
  }
  void check() override {
    expect(table_.repair([](uintptr_t, const Block&) { expect(false, "a block is left"); }) == 0,
           "something is left half done");
    expect(table_.lost_blocks() == 0, "counted as lost");
  }

 private:
  static constexpr uintptr_t kOld = Shadow::kBase;
  Shadow& table_ = make<Shadow>();
};

// ---- Peak.

// A second thread comes while the first, which has published its peak only, goes on.
class SecondThreadJoins : public Scenario {
 public:
  SecondThreadJoins() {
    threads_.acquire(1, 1);
    change(1, 100);
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      change(1, -90);
      store_release(freed_, 1u);
    } else {
      expect(threads_.acquire(1, 2) == 2, "another slot");
      peak_.join(threads_);
      const bool freed = load_acquire(freed_) != 0;
      change(2, 50);
      const uint64_t height = peak_.height();
      if (freed) expect(height <= 100 + peak_.kept_at_most(threads_), "a peak that never was");
    }
  }
  void check() override {
    const uint64_t off = peak_.kept_at_most(threads_);
    expect(peak_.height() + off >= 100 && peak_.height() <= 150 + off, "not the peak");
    expect(threads_.totals().live_bytes == 60, "not what is live");
    // Both have published now, so what they say together is what is live.
    change(1, 1000), change(2, 1000);
    expect(peak_.height_now(threads_) == 2060, "something was published twice, or never");
  }

 private:
  void change(uint32_t number, int64_t bytes) {
    peak_.changed(threads_, number, bytes, bytes > 0 ? 1 : -1);
  }
  ThreadSlots& threads_ = make<ThreadSlots>();
  Peak& peak_ = make<Peak>();
  uint32_t freed_ = 0;
};

// The share that a set had in the peak is asked for while it is touched for the first time since.
class ShareIsRead : public Scenario {
 public:
  explicit ShareIsRead(bool owner) : owner_(owner) {
    peak_.restart(50, 0);
    set_.allocated_bytes = 77;
    peak_.set_aside(set_, true);
    set_.allocated_bytes = 200;
    peak_.restart(500, 0);
  }
  unsigned threads() const override { return owner_ ? 2 : 3; }
  void run(unsigned thread) override {
    if (thread == 1) {
      const uint64_t share = peak_.share(set_);
      // Operations under way count or do not.
      expect(share >= 200 && share <= 200 + 2 * 8, "the share of another time");
    } else {
      peak_.set_aside(set_, owner_);
      count_allocated(set_, owner_, {8, 1, 0});
    }
  }
  void check() override { expect(peak_.share(set_) == 200, "not what it held at the peak"); }

 private:
  Peak& peak_ = make<Peak>();
  CounterSet& set_ = make<CounterSet>();
  bool owner_;
};

// ---- Slots and memory.

// Threads come at once where some have gone.
class SlotsOfTheDead : public Scenario {
 public:
  SlotsOfTheDead() {
    for (const uint32_t tid : {20, 1, 21}) slots_.slot(slots_.acquire(1, tid)).tid = tid;
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override { number_[thread] = slots_.acquire(1, 5 + thread); }
  void check() override {
    std::set<uint32_t> numbers(number_, number_ + 3);
    expect(numbers.size() == 3, "two threads hold one slot");
    for (unsigned t = 0; t < 3; ++t) {
      expect(number_[t] != 0 && slots_.slot(number_[t]).tid == 5 + t, "not its holder's");
      expect(number_[t] <= slots_.used(), "beyond what is used");
    }
  }

 private:
  ThreadSlots& slots_ = make<ThreadSlots>();
  uint32_t number_[3] = {};
};

// Allocations at the end of a chunk.
class ArenaChunks : public Scenario {
 public:
  ArenaChunks() {
    arena_.allocate(size_t{Arena::kChunkUnits - 4} * Arena::kUnit);
    array_.find_or_create(0);
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    for (const unsigned which : {0, 1}) {
      const uint32_t index = arena_.allocate(2 * Arena::kUnit);
      index_[2 * thread + which] = index;
      auto* word = static_cast<uint64_t*>(arena_.at(index));
      expect(load(*word) == 0, "memory that somebody uses");
      store(*word, uint64_t{2 * thread + which + 1});
    }
    uint64_t* element = array_.find_or_create(GrowingArray<uint64_t>::kChunk + thread);
    store(*element, uint64_t{thread + 1});
  }
  void check() override {
    for (unsigned i = 0; i < 6; ++i) {
      expect(*static_cast<uint64_t*>(arena_.at(index_[i])) == i + 1, "overwritten");
    }
    for (unsigned thread = 0; thread < 3; ++thread) {
      expect(*array_.find(GrowingArray<uint64_t>::kChunk + thread) == thread + 1, "lost");
    }
  }

 private:
  Arena& arena_ = make<Arena>();
  GrowingArray<uint64_t>& array_ = make<GrowingArray<uint64_t>>();
  uint32_t index_[6] = {};
};

struct Named {
  const char* name;
  schedule::Make make;
};
const Named kScenarios[] = {
    {"same-stacks", [] { return new SameStacks; }},
    {"same-tails", [] { return new SameTails; }},
    {"taken-place", [] { return new TakenPlace; }},
    {"sets-of-a-stack", [] { return new SetsOfAStack(3, false, false); }},
    {"sets-and-handler", [] { return new SetsOfAStack(2, true, false); }},
    {"sets-of-late-threads", [] { return new SetsOfAStack(3, false, true); }},
    {"sets-of-late-and-handler", [] { return new SetsOfAStack(2, true, true); }},
    {"read-while-counting", [] { return new ReadWhileCounting; }},
    {"blocks-of-a-line", [] { return new BlocksOfALine<Hash>(false); }},
    {"blocks-and-reader", [] { return new BlocksOfALine<Hash>(true); }},
    {"next-level", [] { return new NextLevel; }},
    {"realloc-moves", [] { return new ReallocMoves<Hash>; }},
    {"handler-inside-put", [] { return new HandlerInsidePut<Hash>; }},
    {"blocks-of-a-granule", [] { return new BlocksOfALine<Shadow>(false); }},
    {"granule-and-report", [] { return new BlocksOfALine<Shadow>(true); }},
    {"realloc-in-the-shadow", [] { return new ReallocMoves<Shadow>; }},
    {"realloc-fails", [] { return new ReallocFails; }},
    {"handler-inside-shadow", [] { return new HandlerInsidePut<Shadow>; }},
    {"first-page", [] { return new FirstPage; }},
    {"page-is-given-back", [] { return new PageIsGivenBack(true); }},
    {"page-is-emptied", [] { return new PageIsGivenBack(false); }},
    {"second-thread-joins", [] { return new SecondThreadJoins; }},
    {"share-is-read", [] { return new ShareIsRead(true); }},
    {"share-of-shared-set", [] { return new ShareIsRead(false); }},
    {"slots-of-the-dead", [] { return new SlotsOfTheDead; }},
    {"arena-chunks", [] { return new ArenaChunks; }},
    {"rule-of-the-unloaded", [] { return new unwind::RuleOfTheUnloaded; }},
    {"notes-and-report", [] { return new report::NotesAndReport(false); }},
    {"notes-and-handler", [] { return new report::NotesAndReport(true); }},
};

}  // namespace
}  // namespace mtrace::ledger

int main(int argc, char** argv) {
  using namespace mtrace;
  unsigned bound = 2;
  uint64_t orders = 1'000'000;
  uint64_t samples = 0;
  std::set<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (strcmp(argv[i], "--bound") == 0 && more) {
      bound = static_cast<unsigned>(atoi(argv[++i]));
    } else if (strcmp(argv[i], "--orders") == 0 && more) {
      orders = strtoull(argv[++i], nullptr, 10);
    } else if (strcmp(argv[i], "--sample") == 0 && more) {
      samples = strtoull(argv[++i], nullptr, 10);
    } else if (strcmp(argv[i], "--arm") == 0) {
      schedule::memory::g_model = schedule::memory::Model::kArm;
    } else {
      wanted.insert(argv[i]);
    }
  }
  const bool some = !wanted.empty();
  int status = 0;
  uint64_t all = 0;
  for (const auto& [name, make] : ledger::kScenarios) {
    if (some && wanted.erase(name) == 0) continue;
    schedule::Outcome outcome = schedule::explore(make, bound, orders);
    all += outcome.orders;
    if (outcome.failure.empty() && samples != 0) {
      const schedule::Outcome sampled = schedule::sample(make, samples, 1);
      outcome.failure = sampled.failure;
      all += sampled.orders;
    }
    printf("%s: %llu orders of about %llu steps, %s\n", name,
           static_cast<unsigned long long>(outcome.orders),
           static_cast<unsigned long long>(outcome.steps / outcome.orders),
           !outcome.failure.empty() ? ("FAILED: " + outcome.failure).c_str()
           : outcome.complete       ? "all within the bound"
                                    : "not all");
    fflush(stdout);
    if (!outcome.failure.empty()) status = 1;
  }
  for (const std::string& name : wanted) {
    fprintf(stderr, "no scenario %s\n", name.c_str());
    status = 2;
  }
  printf("%llu orders, bound %u\n", static_cast<unsigned long long>(all), bound);
  return status;
}
