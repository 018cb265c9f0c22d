// Chunks of event logs: what was written is read, and takes the room that it should.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/events/block_addresses.h"
#include "model/events/chunk_writer.h"
#include "model/events/event_log.h"
#include "model/events/frame_reader.h"
#include "model/events/live_blocks.h"
#include "model/events/log_file.h"
#include "tool_test.h"
#include "util/error.h"

namespace mtrace::test {
namespace {

using events::Event;
using events::Kind;
using format::EventCode;

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
  explicit Written(size_t events_of_chunk) : most_(events_of_chunk) { add(header()); }

  void allocate(uint32_t thread, uint64_t address, uint64_t size) {
    begin(EventCode::kAllocation, thread);
    chunk_.allocated(address, size);
    put_size(size);
    expect(Kind::kAllocation, thread, address, 0, size);
  }
  void free(uint32_t thread, uint64_t address) {
    begin(EventCode::kFree, thread);
    chunk_.freed(address);
    expect(Kind::kFree, thread, address, 0, 0);
  }
  void begin_realloc(uint32_t thread, uint64_t address) {
    begin(EventCode::kReallocBegin, thread);
    chunk_.freed(address);
    expect(Kind::kReallocBegin, thread, address, 0, 0);
  }
  void realloc(uint32_t thread, uint64_t old, uint64_t address, uint64_t size) {
    begin(EventCode::kRealloc, thread);
    chunk_.moved_from(old);
    chunk_.allocated(address, size);
    put_size(size);
    expect(Kind::kRealloc, thread, address, old, size);
  }
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
      ASSERT_TRUE(event.kind == one.kind && event.address == one.address &&
                  event.old_address == one.old_address && event.requested == one.requested)
          << "event " << number << ": " << event.address << " in place of " << one.address;
      for (const size_t calls : {size_t{0}, events::EventLog::kDecodedAhead - 2}) {
        const Event* const soon = log.coming(calls);
        if (soon == nullptr) continue;
        ASSERT_EQ(soon->address, expected_[number + 1 + calls].address) << number << '+' << calls;
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
  void begin(EventCode code, uint32_t thread) {
    if (chunk_.count() == most_) add(chunk_.finish());
    chunk_.begin(code, 0, ++time_, thread);
  }
  void put_size(uint64_t size) {
    chunk_.size(size);
    chunk_.usable(size, format::usual_usable_size(size));
    chunk_.stack(0);
  }
  void expect(Kind kind, uint32_t thread, uint64_t address, uint64_t old, uint64_t size) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.old_address = old;
    event.requested = size;
    expected_.push_back(event);
  }
  void add(std::string content) {
    bytes_ += content.size();
    contents_->add(std::move(content));
  }

  std::unique_ptr<events::MadeContents> contents_ = std::make_unique<events::MadeContents>();
  events::ChunkWriter chunk_;
  std::vector<Event> expected_;
  size_t coming_ = 0;  // events that were told in advance
  size_t most_;
  size_t bytes_ = 0;
  uint64_t time_ = 0;
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
  for (const unsigned threads : {1u, 5u}) {
    for (const size_t of_chunk : {1u, 17u, 1000u, 100'000u}) {
      Written written(of_chunk);
      churn(written, threads, 700, 30'000, 10);
      written.finish();
      written.check();
    }
  }
}

// An allocation takes 7 bytes: code, time, 2 of the size, usable, stack, where its block is. A free
// of one of 1,000 blocks takes 4: code, time, 2 of the block's age. Addresses would take 2 or 3.
TEST(EventChunks, NameBlocksInFewBytes) {
  constexpr size_t kEvents = 100'000;
  Written written(kEvents);
  churn(written, 1, 1000, kEvents, 0);
  const size_t bytes = written.finish();
  EXPECT_LT(bytes, kEvents * (7 + 4) / 2);
  written.check();
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

// The log of the queries is of the first version.
TEST(EventChunks, ABadNumberInTheHeaderIsNotZero) {
  const auto head_of = [](const char* key, const char* value) {
    auto contents = std::make_unique<events::MadeContents>();
    contents->add(header(key, value));
    return events::EventLog(std::move(contents)).header();
  };
  EXPECT_EQ(head_of(format::kEventsParent, "4711").parent, 4711);
  EXPECT_EQ(head_of(format::kEventsInherited, "64 2").inherited_blocks, 2u);
  EXPECT_EQ(head_of(format::kEventsParentEvents, "7:1 9:2").parent_events.size(), 2u);
  for (const auto& [key, value] : {std::pair{format::kEventsParent, "4711x"},
                                   {format::kEventsPid, "2147483648"},
                                   {format::kEventsStarted, ""},
                                   {format::kEventsInherited, "64"},
                                   {format::kEventsInherited, "64 2 1"},
                                   {format::kEventsParentEvents, "7:1 9"}}) {
    EXPECT_THROW(head_of(key, value), util::FormatError) << key << ' ' << value;
  }
}

TEST(EventChunks, OfTheFirstVersionAreRead) {
  const std::string old_log = shop_log();
  ASSERT_NE(shell("zstd -dc {} | grep -ac MEC1", old_log), "0\n");
  TemporaryDirectory directory;
  const std::string made = directory / "new.events";
  ASSERT_EQ(memlog({"strip", "--no-resolve", "--size", "0..", "-o", made, old_log}).status, 0);
  EXPECT_NE(shell("zstd -dc {} | grep -ac MEC2", made), "0\n");
  const std::string before = memlog({"events", "--no-resolve", old_log}).out;
  EXPECT_EQ(memlog({"events", "--no-resolve", made}).out, before);
  EXPECT_GT(std::count(before.begin(), before.end(), '\n'), 1000);
}

}  // namespace
}  // namespace mtrace::test
