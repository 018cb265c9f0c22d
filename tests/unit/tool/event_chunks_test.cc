// Chunks of event logs: what was written is read, and takes the room that it should.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/events/chunk_reader.h"
#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "model/recording/chunk_writer.h"
#include "model/recording/log_writer.h"
#include "tool_test.h"
#include "util/error.h"

namespace mtrace::test {
namespace {

using events::Event;
using events::Kind;
using format::EventForm;

std::string header(const std::string& key = format::kEventsStarted,
                   const std::string& value = "1700000000000000000") {
  events::Column head;
  head.put_raw({format::kEventHeaderMark, format::kEventMark});
  head.put_text(key);
  head.put_text(value);
  return std::string(head.bytes());
}

// The sizes of live blocks in a plain map, beside LiveBlocks.
class LiveSizes {
 public:
  bool agrees(const events::EventLog& log, const Event& event) {
    blocks_.expect(log);
    const events::BlockChange change = blocks_.apply(event);
    bool same = true;
    if (event.kind == Kind::kFree || event.kind == Kind::kRealloc) {
      const uint64_t old = event.kind == Kind::kFree ? event.address : event.old_address;
      const auto found = sizes_.find(old);
      same = change.ended == (found != sizes_.end()) &&
             (!change.ended || change.old.requested == found->second);
      if (found != sizes_.end()) sizes_.erase(found);
    }
    if (event.kind == Kind::kAllocation || event.kind == Kind::kRealloc) {
      sizes_[event.address] = event.requested;
    }
    if (++events_ % 1000 != 0) return same;
    std::map<uint64_t, uint64_t> live;
    blocks_.for_each(
        [&](uint64_t address, const events::LiveBlock& block) { live[address] = block.requested; });
    return same && live == sizes_;
  }

 private:
  events::LiveBlocks blocks_;
  std::map<uint64_t, uint64_t> sizes_;  // by address
  uint64_t events_ = 0;
};

// Writes chunks, and keeps what is to be read.
class Written {
 public:
  Written(EventForm form, size_t events_of_chunk)
      : form_(form), chunk_(form), most_(events_of_chunk) {
    add(header());
  }

  void allocate(uint32_t thread, uint64_t address, uint64_t size) {
    put(Kind::kAllocation, thread, address, 0, size);
  }
  void free(uint32_t thread, uint64_t address) { put(Kind::kFree, thread, address, 0, 0); }
  void begin_realloc(uint32_t thread, uint64_t address) {
    put(Kind::kReallocBegin, thread, address, 0, 0);
  }
  void fail_realloc(uint32_t thread, uint64_t address) {
    put(Kind::kReallocFailed, thread, address, 0, 0);
  }
  void realloc(uint32_t thread, uint64_t old, uint64_t address, uint64_t size) {
    put(Kind::kRealloc, thread, address, old, size);
  }
  void fork(uint32_t thread) { put(Kind::kFork, thread, 0, 0, 0); }
  const std::string& last_chunk() const { return last_chunk_; }
  // Ends the log. Returns the bytes of all contents.
  size_t finish() {
    if (!chunk_.empty()) add(chunk_.finish());
    return bytes_;
  }
  // The log is what was written, also the events that it tells in advance and the blocks that live.
  void check() {
    events::EventLog log(std::move(contents_));
    size_t number = 0;
    LiveSizes live;
    for (Event event; log.next(event); ++number) {
      ASSERT_LT(number, expected_.size());
      const Event& one = expected_[number];
      check_time(event, one);
      name_block(event, one);
      ASSERT_TRUE(event.kind == one.kind && event.thread == one.thread &&
                  address_of(event.address) == one.address &&
                  address_of(event.old_address) == one.old_address &&
                  event.requested == one.requested && event.usable == one.usable)
          << "event " << number << ": " << event.address << " in place of " << one.address;
      if (event.kind == Kind::kFree) names_.erase(event.address);
      if (event.kind == Kind::kRealloc) names_.erase(event.old_address);
      if (event.kind == Kind::kFork) {
        for (const auto& [name, address] : names_) ASSERT_EQ(log.address_of(name), address);
      }
      for (const size_t calls : {size_t{0}, events::EventLog::kDecodedAhead - 2}) {
        const Event* const soon = log.coming(calls);
        if (soon == nullptr) continue;
        ASSERT_EQ(soon->requested, expected_[number + 1 + calls].requested)
            << number << '+' << calls;
        ++coming_;
      }
      ASSERT_TRUE(live.agrees(log, event)) << "event " << number;
    }
    EXPECT_EQ(number, expected_.size());
    EXPECT_EQ(log.damaged_chunks(), 0u);
    if (most_ >= 1000) {
      EXPECT_GT(coming_, expected_.size());
    }
  }

 private:
  static constexpr uint64_t kStarted = 1'700'000'000'000'000'000;

  void put(Kind kind, uint32_t thread, uint64_t address, uint64_t old, uint64_t size) {
    if (chunk_.count() == most_) add(chunk_.finish());
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.old_address = old;
    event.requested = size;
    event.usable = size == 0 ? 0 : size + size % 7;
    steps_ += 1 + size % 60;
    event.time = kStarted + steps_ * format::kEventTimeStep;
    if (thread != 0 && defined_.insert(thread).second) chunk_.define_thread(thread, thread, "");
    chunk_.put(event, steps_);
    // The log has its threads in the order in which they come.
    event.thread =
        thread == 0 ? 0 : numbers_.try_emplace(thread, numbers_.size() + 1).first->second;
    expected_.push_back(event);
  }
  // A compact log has whole milliseconds, but what follows a fork is a step later at least.
  void check_time(const Event& read, const Event& written) {
    constexpr uint64_t kTick = 1'000'000;
    uint64_t expected = written.time;
    if (form_ == EventForm::kCompact && written.kind != Kind::kFork) {
      expected = std::max(expected - (expected - kStarted) % kTick, after_fork_);
    }
    ASSERT_EQ(read.time, expected);
    if (written.kind == Kind::kFork) after_fork_ = read.time + format::kEventTimeStep;
  }
  // A compact log names a block anew with each allocation.
  void name_block(const Event& event, const Event& one) {
    if (form_ == EventForm::kFull) return;
    if (event.kind != Kind::kAllocation && event.kind != Kind::kRealloc) return;
    // But of a block at whose address one lives, whose free was lost.
    const auto [at, fresh] = names_.try_emplace(event.address, one.address);
    ASSERT_TRUE(fresh ? event.address > newest_ : at->second == one.address);
    newest_ = std::max(newest_, event.address);
  }
  uint64_t address_of(uint64_t address) const {
    const auto found = names_.find(address);
    return found != names_.end() ? found->second : address;
  }
  void add(std::string content) {
    bytes_ += content.size();
    last_chunk_ = content;
    contents_->add(std::move(content));
  }

  EventForm form_;
  std::unique_ptr<events::MadeContents> contents_ = std::make_unique<events::MadeContents>();
  events::ChunkWriter chunk_;
  std::set<uint32_t> defined_;
  std::map<uint32_t, uint32_t> numbers_;  // of threads
  std::map<uint64_t, uint64_t> names_;    // addresses of live blocks, by what stands for them
  uint64_t newest_ = 0;
  uint64_t after_fork_ = 0;
  std::vector<Event> expected_;
  size_t coming_ = 0;  // events that were told in advance
  size_t most_;
  size_t bytes_ = 0;
  std::string last_chunk_;
  uint64_t steps_ = 0;
};

// An allocator whose threads take what they freed last of a size, and new memory otherwise.
class Allocator {
 public:
  uint64_t take(uint32_t thread, uint64_t size) {
    std::vector<uint64_t>& freed = freed_[{thread, size}];
    if (freed.empty()) {
      const uint64_t address = end_;
      end_ += (size + 23) / 16 * 16;
      return address;
    }
    const uint64_t address = freed.back();
    freed.pop_back();
    return address;
  }
  void give(uint32_t thread, uint64_t size, uint64_t address) {
    freed_[{thread, size}].push_back(address);
  }

 private:
  std::map<std::pair<uint32_t, uint64_t>, std::vector<uint64_t>> freed_;
  uint64_t end_ = 0x5555'0000'0010;
};

struct Block {
  uint64_t address;
  uint64_t size;
};

// Frees a block picked by `random` for each that is allocated, once `most` live.
void churn(Written& written, unsigned threads, size_t most, size_t events, uint64_t odd) {
  std::mt19937_64 random(7);
  Allocator allocator;
  std::vector<Block> live;
  for (size_t i = 0; i < events; ++i) {
    const auto thread = static_cast<uint32_t>(random() % threads);
    const uint64_t size = 24 + random() % 40 * 16;
    if (odd != 0 && random() % 1000 == 0) written.fork(thread);
    if (live.size() < most) {
      const uint64_t away = odd != 0 && random() % odd == 0 ? random() % 1024 * 8 + (1u << 30) : 0;
      live.push_back({allocator.take(thread, size) + away, size});
      written.allocate(thread, live.back().address, size);
      continue;
    }
    Block& block = live[random() % live.size()];
    if (odd != 0 && random() % 4 == 0) {
      const Block old = block;
      written.begin_realloc(thread, old.address);
      if (random() % 4 == 0) {
        written.fail_realloc(thread, old.address);
        continue;
      }
      if (random() % 8 == 0) {  // realloc(block, 0)
        written.free(thread, old.address);
        block = live.back();
        live.pop_back();
        continue;
      }
      block.size = size;
      if (random() % 2 == 0) block.address = allocator.take(thread, size);
      written.realloc(thread, old.address, block.address, size);
      continue;
    }
    written.free(thread, block.address);
    allocator.give(thread, block.size, block.address);
    block = live.back();
    live.pop_back();
  }
}

TEST(EventChunks, AreReadAsWritten) {
  for (const EventForm form : {EventForm::kFull, EventForm::kCompact}) {
    for (const unsigned threads : {1u, 5u}) {
      for (const size_t of_chunk : {1u, 17u, 1000u, 100'000u}) {
        Written written(form, of_chunk);
        churn(written, threads, 700, 30'000, 10);
        written.finish();
        written.check();
      }
    }
  }
}

// Of threads without a slot, which share a number, in any order.
TEST(EventChunks, KnowWhichReallocEnds) {
  for (const EventForm form : {EventForm::kFull, EventForm::kCompact}) {
    for (const size_t of_chunk : {1u, 17u, 1000u}) {
      Written written(form, of_chunk);
      constexpr uint64_t kMost = 100;
      for (uint64_t i = 1; i <= kMost; ++i) written.allocate(0, i << 12, i);
      for (uint64_t i = 1; i <= kMost; ++i) written.begin_realloc(0, i << 12);
      for (uint64_t i = 1; i <= kMost; ++i) {
        const uint64_t old = i * 37 % (kMost + 1) << 12;
        i % 4 == 0 ? written.fail_realloc(0, old) : written.realloc(0, old, old + 8, i);
      }
      written.finish();
      written.check();
    }
  }
}

// An allocation takes a byte or two, a free of one of 1,000 blocks as many and two of its distance.
// In a full chunk both have a byte of the time as well, and an allocation one of where its block
// is.
TEST(EventChunks, NameBlocksInFewBytes) {
  constexpr size_t kEvents = 100'000;
  for (const auto& [form, most] :
       {std::pair{EventForm::kFull, size_t{4 + 5}}, {EventForm::kCompact, size_t{2 + 4}}}) {
    Written written(form, kEvents);
    churn(written, 1, 1000, kEvents, 0);
    const size_t bytes = written.finish();
    EXPECT_LT(bytes, kEvents * most / 2);
    written.check();
  }
}

// A program that does the same again and again makes a compact log that hardly grows.
TEST(EventChunks, ALoopTakesNoRoomInACompactLog) {
  const auto bytes_of = [](size_t rounds) {
    Written written(EventForm::kCompact, format::kMostChunkEvents);
    for (size_t i = 0; i < rounds; ++i) {
      for (const uint64_t block : {0x1000, 0x2000, 0x3000}) written.allocate(1, block, block / 64);
      for (const uint64_t block : {0x2000, 0x1000, 0x3000}) written.free(1, block);
    }
    written.finish();
    const std::string& chunk = written.last_chunk();
    std::string frame(ZSTD_compressBound(chunk.size()), '\0');
    return ZSTD_compress(frame.data(), frame.size(), chunk.data(), chunk.size(), 6);
  };
  const size_t ticks = 2 * 10'000 * 6 * 100 / 10'000;  // of a millisecond
  EXPECT_LT(bytes_of(10'000), bytes_of(100) + ticks);
}

// The second allocation at an address tells that a free was lost: the block takes the number of the
// one that was there, so that the replay knows that this one is gone.
TEST(EventChunks, ABlockWhoseFreeWasLostIsReplaced) {
  for (const bool in_chunk : {true, false}) {
    events::ChunkWriter chunk(EventForm::kCompact);
    auto contents = std::make_unique<events::MadeContents>();
    contents->add(header());
    Event event;
    event.kind = Kind::kAllocation;
    event.address = 0x5550;
    event.requested = event.usable = 24;
    chunk.put(event, 1);
    if (!in_chunk) contents->add(chunk.finish());
    event.requested = event.usable = 40;
    chunk.put(event, 2);
    event.kind = Kind::kFree;
    chunk.put(event, 3);
    contents->add(chunk.finish());
    events::EventLog log(std::move(contents));
    events::LiveBlocks blocks;
    std::vector<uint64_t> ended;
    for (Event read; log.next(read);) {
      const events::BlockChange change = blocks.apply(read);
      if (change.ended) ended.push_back(change.old.requested);
    }
    EXPECT_EQ(blocks.conflicts(), 1u);
    EXPECT_EQ(ended, std::vector<uint64_t>{40});
    EXPECT_EQ(blocks.unknown_frees(), 0u);
  }
}

// Those of calls that ask for one: replay aligns its blocks so.
TEST(EventChunks, CompactLogsKnowAlignments) {
  events::ChunkWriter chunk(EventForm::kCompact);
  auto contents = std::make_unique<events::MadeContents>();
  contents->add(header());
  Event event;
  event.kind = Kind::kAllocation;
  for (const char* call : {"malloc", "aligned_alloc"}) {
    const auto* const at =
        std::find_if(std::begin(format::kCallNames), std::end(format::kCallNames),
                     [&](const char* name) { return std::string(name) == call; });
    event.call = static_cast<uint8_t>(at - format::kCallNames);
    event.address = 0x5555'0000'0400;
    event.requested = event.usable = 1000;
    chunk.put(event, 1);
  }
  contents->add(chunk.finish());
  events::EventLog log(std::move(contents));
  std::vector<int> read;
  while (log.next(event)) read.push_back(event.alignment);
  EXPECT_EQ(read, (std::vector<int>{0, 10}));
}

TEST(EventChunks, KnowTheOrderOfLiveItems) {
  std::mt19937_64 random(1);
  events::LiveOrder order;
  std::vector<size_t> live;  // the oldest first
  for (size_t added = 0; added < 6000; ++added) {
    order.add();
    live.push_back(added);
    if (random() % 3 == 0) {
      const size_t place = random() % live.size();
      ASSERT_EQ(order.younger(live[place]), live.size() - 1 - place);
      ASSERT_EQ(order.find(live.size() - 1 - place), live[place]);
      order.remove(live[place]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(place));
    }
    ASSERT_EQ(order.count(), live.size());
  }
  while (!live.empty()) {
    ASSERT_EQ(order.find(live.size() - 1), live.front());
    order.remove(live.front());
    live.erase(live.begin());
  }
}

// A chunk for which no other waits is compressed better than at zstd's fastest level.
TEST(EventChunks, TakeLittleRoomInTheFile) {
  std::mt19937_64 random(3);
  std::vector<std::string> calls(200);  // what the program does, again and again
  for (std::string& call : calls) {
    for (uint64_t events = 4 + random() % 12; events != 0; --events) {
      call += static_cast<char>(random() % 40);
    }
  }
  std::string content(format::kEventChunkMark);
  while (content.size() < 300'000) content += calls[random() % (1 + random() % calls.size())];
  TemporaryDirectory directory;
  events::LogFile file(directory / "a.events", "a", 1);
  file.append(content);
  ASSERT_EQ(file.finish(), 0);
  std::string fast(ZSTD_compressBound(content.size()), '\0');
  const size_t bytes = ZSTD_compress(fast.data(), fast.size(), content.data(), content.size(), 1);
  EXPECT_LT(std::filesystem::file_size(file.path()), bytes * 95 / 100);
  EXPECT_EQ(shell("zstd -dc {} | wc -c", file.path()), std::to_string(content.size()) + "\n");
}

TEST(EventChunks, ABadNumberInTheHeaderIsNotZero) {
  const auto head_of = [](const char* key, const char* value) {
    auto contents = std::make_unique<events::MadeContents>();
    contents->add(header(key, value));
    return events::EventLog(std::move(contents)).header();
  };
  EXPECT_EQ(head_of(format::kEventsParent, "4711").parent, 4711);
  EXPECT_EQ(head_of(format::kEventsParentEvents, "7:1 9:2").parent_events.size(), 2u);
  for (const auto& [key, value] : {std::pair{format::kEventsParent, "4711x"},
                                   {format::kEventsPid, "2147483648"},
                                   {format::kEventsStarted, ""},
                                   {format::kEventsParentEvents, "7:1 9"}}) {
    EXPECT_THROW(head_of(key, value), util::FormatError) << key << ' ' << value;
  }
}

TEST(EventChunks, OfOtherVersionsAreRefused) {
  const auto error_of = [](std::string chunk) {
    auto contents = std::make_unique<events::MadeContents>();
    contents->add(header());
    contents->add(std::move(chunk));
    events::EventLog log(std::move(contents));
    Event event;
    try {
      return std::string(log.next(event) ? "an event" : "none");
    } catch (const util::FormatError& error) {
      return std::string(error.what());
    }
  };
  events::ChunkWriter chunk(EventForm::kFull);
  chunk.put({.kind = Kind::kStart}, 1);
  const std::string now = chunk.finish();
  EXPECT_EQ(error_of(now), "an event");
  for (const char version : {'1', '2', '3', '5'}) {
    std::string other = now;
    other[format::kEventMark - 1] = version;
    EXPECT_HAS(error_of(other), std::string("version ") + version);
  }
  // Behind the mark: the first event, its time, four numbers of definitions with seven columns, the
  // number of events.
  std::string old_form = now;
  old_form[format::kEventMark + 2 + 4 + format::kStackColumns + 1] = 0;
  EXPECT_HAS(error_of(old_form), "the full form of version 4");
}

}  // namespace
}  // namespace mtrace::test
