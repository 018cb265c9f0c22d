// Addresses of blocks as an event log has them. A free is named by how many younger blocks live,
// an allocation by where allocators take blocks from: what the thread freed last of that size, or
// the memory behind the last new block. Writer and reader keep the same history of a chunk.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrace::events {

// Which of a growing number of items live, in the order in which they were added.
class LiveOrder {
 public:
  // Adds a live item. Items are numbered from 0.
  void add();
  // The item must live.
  void remove(size_t item);
  // Returns how many items behind this one live.
  size_t younger(size_t item) const;
  // Returns the live item that has so many live ones behind it; `younger` is less than count().
  size_t find(size_t younger) const;
  size_t count() const { return count_; }

 private:
  static constexpr size_t kWord = 64;   // items of a word
  static constexpr size_t kGroup = 16;  // words of a group
  size_t size_ = 0;
  size_t count_ = 0;
  std::vector<uint64_t> words_;
  std::vector<uint8_t> in_word_;  // how many live; so is the next
  std::vector<uint16_t> in_group_;
};

// The blocks of a chunk.
class BlockHistory {
 public:
  // Numbers of an allocation. From kReused on: how many blocks of the size the thread freed later.
  static constexpr uint64_t kElsewhere = 0;
  static constexpr uint64_t kLastFreed = 1;  // by the thread, of whatever size: realloc in place
  static constexpr uint64_t kBehind = 2;     // behind a new block of the thread, the latest first
  static constexpr uint64_t kNewBlocks = 8;
  static constexpr uint64_t kReused = kBehind + kNewBlocks;
  static constexpr uint64_t kMostReused = 32;
  // The number of a free. Others: 1 + how many younger blocks live.
  static constexpr uint64_t kNoBlock = 0;

  // Threads have numbers without large gaps. Returns the number for an allocation at `address`, and
  // takes that out of what the thread freed of the size.
  uint64_t take_number(uint64_t address, uint32_t thread, uint64_t requested);
  // The same for the address; the number is not kElsewhere. Throws DamagedChunk: no such block.
  uint64_t take_address(uint64_t number, uint32_t thread, uint64_t requested);
  // A block was allocated, after one of the above. Returns its index.
  uint32_t allocate(uint64_t number, uint64_t address, uint32_t thread, uint64_t requested);

  // The number for a free of the block with that index, which lives.
  uint64_t number_of_free(uint32_t index) const { return 1 + live_.younger(index); }
  // Returns the index of the block; the number is not kNoBlock. Throws DamagedChunk.
  uint32_t freed_block(uint64_t number) const;
  // Returns the address that the thread freed last; 0: none.
  uint64_t last_freed(uint32_t thread) const;
  // The thread freed the block. Returns its address.
  uint64_t free(uint32_t index, uint32_t thread);
  // It freed a block that is not of this chunk.
  void free_elsewhere(uint64_t address, uint32_t thread);

 private:
  struct Block {
    uint64_t address;
    uint64_t size_class;
  };
  struct Thread {
    uint64_t last_freed = 0;
    uint64_t last_class = 0;           // of that block; 0: not known
    uint64_t behind[kNewBlocks] = {};  // addresses
  };
  using Freed = std::vector<uint64_t>;  // addresses, the last one freed last

  static uint64_t size_class(uint64_t requested);
  static uint64_t list_of(uint32_t thread, uint64_t size_class) {
    return uint64_t{thread} << 8 | size_class;
  }
  static size_t take_from(Freed& freed, uint64_t address);
  Thread& state_of(uint32_t thread);
  static void remember_end(Thread& thread, uint64_t number, uint64_t end);

  std::vector<Block> blocks_;
  LiveOrder live_;
  std::vector<Thread> threads_;
  absl::flat_hash_map<uint64_t, Freed> freed_;  // by list_of()
};

// The history with which a writer finds blocks by their addresses.
class BlockNames {
 public:
  // A block was allocated. Returns its number; kElsewhere: the address is to be written.
  uint64_t allocate(uint64_t address, uint32_t thread, uint64_t requested);
  // It was freed. The same, with kNoBlock.
  uint64_t free(uint64_t address, uint32_t thread);
  bool freed_last(uint64_t address, uint32_t thread) const {
    return history_.last_freed(thread) == address;
  }

 private:
  BlockHistory history_;
  absl::flat_hash_map<uint64_t, uint32_t> indexes_;  // of live blocks, by address
};

}  // namespace mtrace::events
