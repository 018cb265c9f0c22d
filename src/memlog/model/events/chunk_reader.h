// What chunks of an event log are made of (doc/events-format.md, "Events"): columns of numbers and
// texts, codes of events, entries, and what stands for blocks and their addresses.
#pragma once

#include "format/event_log.h"
#include "model/events/event_log.h"
#include "util/prelude.h"

namespace mtrace::events {

// Numbers are LEB128, signed ones zigzag.

constexpr uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t from_zigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Symbols below the first have one byte, so many others two.
inline constexpr uint64_t kOneByte = 192;
inline constexpr uint64_t kTwoBytes = (255 - kOneByte) << 8;

class Column {
 public:
  void put_byte(uint8_t byte) {
    make_room(1);
    data_[used_++] = byte;
  }
  void put(uint64_t value) {
    make_room(kLongest);
    while (value >= 0x80) {
      data_[used_++] = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    data_[used_++] = static_cast<uint8_t>(value);
  }
  // Short for numbers below 16,320.
  void put_symbol(uint64_t value) {
    if (value < kOneByte) return put_byte(static_cast<uint8_t>(value));
    value -= kOneByte;
    if (value >= kTwoBytes) {
      put_byte(0xff);
      return put(value - kTwoBytes);
    }
    put_byte(static_cast<uint8_t>(kOneByte + (value >> 8)));
    put_byte(static_cast<uint8_t>(value));
  }
  void put_signed(int64_t value) { put(zigzag(value)); }
  void put_text(std::string_view text) {
    put(text.size());
    put_raw(text);
  }
  void put_raw(std::string_view text) {
    make_room(text.size());
    std::copy(text.begin(), text.end(), data_.begin() + static_cast<ptrdiff_t>(used_));
    used_ += text.size();
  }
  void clear() { used_ = 0; }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(data_.data()), used_}; }

 private:
  static constexpr size_t kLongest = 10;

  void make_room(size_t bytes) {
    if (used_ + bytes > data_.size()) [[unlikely]]
      data_.resize(2 * data_.size() + bytes + 256);
  }

  std::vector<uint8_t> data_;
  size_t used_ = 0;
};

// The chunk is damaged: a number or text in it ends behind its column, or makes no sense.
struct DamagedChunk {};

class ColumnReader {
 public:
  ColumnReader() = default;
  explicit ColumnReader(std::string_view bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool empty() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  uint8_t byte() {
    if (at_ == end_) throw DamagedChunk();
    return *at_++;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      value |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return value;
    }
    throw DamagedChunk();
  }
  uint64_t symbol() {
    const uint64_t first = byte();
    if (first < kOneByte) return first;
    if (first == 0xff) return kOneByte + kTwoBytes + number();
    return kOneByte + ((first - kOneByte) << 8) + byte();
  }
  int64_t signed_number() { return from_zigzag(number()); }
  // At most `most`.
  uint64_t number_up_to(uint64_t most) {
    const uint64_t value = number();
    if (value > most) throw DamagedChunk();
    return value;
  }
  std::string_view text() { return raw(number_up_to(left())); }
  std::string_view raw(size_t size) {
    if (size > left()) throw DamagedChunk();
    const std::string_view found(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return found;
  }

 private:
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

// Addresses as an event log has them: allocators give the same ones again and again, so each is
// looked for among those that were used last. Moving each to the front (Bentley, Sleator,
// Tarjan, Wei: A Locally Adaptive Data Compression Scheme, CACM 1986) makes the numbers small.
class RecentAddresses {
 public:
  // Returns the number that stands for a multiple of 8.
  uint64_t encode(uint64_t address) {
    for (size_t i = 0; i < kCount; ++i) {
      if (recent_[i] == address) return move_to_front(i), i;
    }
    const auto distance = static_cast<int64_t>(address - recent_[0]) / 8;
    put_first(address);
    return kCount + zigzag(distance);
  }
  uint64_t decode(uint64_t number) {
    if (number < kCount) {
      move_to_front(number);
    } else {
      put_first(recent_[0] + static_cast<uint64_t>(from_zigzag(number - kCount)) * 8);
    }
    return recent_[0];
  }

 private:
  static constexpr size_t kCount = 32;

  void move_to_front(size_t index) {
    const uint64_t address = recent_[index];
    std::memmove(recent_ + 1, recent_, index * sizeof *recent_);
    recent_[0] = address;
  }
  void put_first(uint64_t address) {
    recent_[kCount - 1] = address;
    move_to_front(kCount - 1);
  }

  uint64_t recent_[kCount] = {};
};

// A time beyond this is a damaged one.
inline constexpr uint64_t kMostSteps = uint64_t{1} << 56;
// Of the forms of chunks: whether blocks have addresses, and the steps of a tick.
inline bool has_addresses(format::EventForm form) { return form == format::EventForm::kFull; }
inline uint64_t steps_of_tick(format::EventForm form) {
  return has_addresses(form) ? 1 : format::kEventTick / format::kEventTimeStep;
}

// The code of an event, with its call in the low four bits. 0: the kind has none.
uint8_t code_of(const Event& event);

// Sets kind and call. The kind of a code that is not known is kUnknown.
void set_code(Event& event, uint8_t code);

// Of the code: its kind, and whether its events have a stack.
Kind kind_of(uint8_t code);
bool has_stack(uint8_t code);

// Whether the call asks for an alignment. That of the event's block, as an exponent of two: at most
// kMostAlignment, at least what malloc gives anyway.
bool aligns(uint8_t call);
inline constexpr uint8_t kLeastAlignment = 4;
inline constexpr uint8_t kMostAlignment = 21;  // a huge page
uint8_t alignment_of(const Event& event);

// Whether a free of that call is the end of realloc(block, 0).
bool reallocates(uint8_t call);

// The usable size of a block, as the difference from what glibc would give.
void put_usable(Column& out, uint64_t requested, uint64_t usable);
uint64_t read_usable(ColumnReader& in, uint64_t requested);

// What reports, notes, memory, losses, forks and ends have; nothing of other kinds.
void put_more(Column& out, const Event& event);
void read_more(ColumnReader& in, Event& event);

// What an event of a block does. A program's loop makes the same few again and again, which zstd
// writes as one reference.
struct EventEntry {
  uint8_t code = 0;
  uint8_t order = 0;
  uint8_t place = 0;
  uint32_t stack = 0;
  uint64_t requested = 0;
  uint64_t usable = 0;

  bool operator==(const EventEntry&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const EventEntry& one) {
    return H::combine(std::move(hash), one.code, one.order, one.place, one.stack, one.requested,
                      one.usable);
  }
};

// Marks have their time in steps; what follows is a step later at least. So "before the report" and
// "after the note" are exact.
inline bool is_mark(Kind kind) {
  return kind == Kind::kReport || kind == Kind::kNote || kind == Kind::kStart ||
         kind == Kind::kStop || kind == Kind::kFork;
}
inline bool begins_block(Kind kind) {
  return kind == Kind::kAllocation || kind == Kind::kRealloc || kind == Kind::kInherited;
}
inline bool ends_block(Kind kind) { return kind == Kind::kFree || kind == Kind::kReallocBegin; }

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

// The blocks of a chunk in the order of allocation. A free is a distance there: twice the number of
// younger blocks that live, or twice the distance from the block behind the one that the thread
// freed last, plus 1; the smaller of the two. Stacks and queues, and whole containers, are freed at
// small distances.
class BlockOrder {
 public:
  void add() { order_.add(); }
  uint64_t remove(size_t item, uint32_t thread) {
    const size_t younger = order_.younger(item);
    const uint64_t distance = std::min<uint64_t>(
        2 * younger, 2 * zigzag(expected(thread) - static_cast<int64_t>(younger)) + 1);
    take(item, thread);
    return distance;
  }
  size_t remove_at(uint64_t distance, uint32_t thread) {
    const auto half = static_cast<int64_t>(distance >> 1);
    const int64_t younger =
        (distance & 1) == 0 ? half : expected(thread) - from_zigzag(static_cast<uint64_t>(half));
    if (younger < 0 || static_cast<uint64_t>(younger) >= order_.count()) throw DamagedChunk();
    const size_t item = order_.find(static_cast<size_t>(younger));
    take(item, thread);
    return item;
  }

 private:
  static constexpr size_t kNoItem = std::numeric_limits<size_t>::max();

  // How many are younger than the block that follows what the thread freed last.
  int64_t expected(uint32_t thread) const {
    const size_t last = thread < last_.size() ? last_[thread] : kNoItem;
    return static_cast<int64_t>(last == kNoItem ? order_.count() : order_.younger(last)) - 1;
  }
  void take(size_t item, uint32_t thread) {
    order_.remove(item);
    if (thread >= last_.size()) last_.resize(thread + size_t{1}, kNoItem);
    last_[thread] = item;
  }

  LiveOrder order_;
  std::vector<size_t> last_;  // by thread
};

// Numbers of blocks that are written out: the difference from the one before.
class Births {
 public:
  int64_t encode(uint64_t birth) {
    return static_cast<int64_t>(birth - std::exchange(last_, birth));
  }
  uint64_t decode(int64_t difference) { return last_ += static_cast<uint64_t>(difference); }

 private:
  uint64_t last_ = 0;
};

// Where allocators put blocks: a thread gets what it freed last of that size, or memory behind one
// of its last new blocks. Writer and reader of a log that has addresses keep the same history of a
// chunk, so a number below 50 stands for most addresses.
class BlockHistory {
 public:
  // Numbers of addresses. From kReused on: how many blocks of the size the thread freed later.
  static constexpr uint64_t kElsewhere = 0;
  static constexpr uint64_t kLastFreed = 1;  // by the thread, of whatever size: realloc in place
  static constexpr uint64_t kBehind = 2;     // behind a new block of the thread, the latest first
  static constexpr uint64_t kNewBlocks = 8;
  static constexpr uint64_t kReused = kBehind + kNewBlocks;
  static constexpr uint64_t kMostReused = 32;

  // A thread allocates `requested` bytes at `address`. Returns the number that stands for the
  // address. Threads have numbers without large gaps.
  uint64_t encode(uint64_t address, uint32_t thread, uint64_t requested);
  // The same for the number. Returns the address: `elsewhere`, if the number is kElsewhere. Throws
  // DamagedChunk: the number stands for none.
  uint64_t decode(uint64_t number, uint64_t elsewhere, uint32_t thread, uint64_t requested);
  // The thread freed a block, numbered from 0 in the order of allocation. Returns its address.
  uint64_t free(size_t block, uint32_t thread);
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
  uint64_t number_of(uint64_t address, uint32_t thread, uint64_t requested);
  uint64_t address_of(uint64_t number, uint32_t thread, uint64_t requested);
  void allocate(uint64_t number, uint64_t address, uint32_t thread, uint64_t requested);
  static void remember_end(Thread& thread, uint64_t number, uint64_t end);

  std::vector<Block> blocks_;
  std::vector<Thread> threads_;
  absl::flat_hash_map<uint64_t, Freed> freed_;  // by list_of()
};

// Reads the events of the chunks of an event log.

// Stacks and threads by their numbers in the file. A damaged file may make its numbers as large as
// it likes; those that this returns have no gaps.
struct FileNumbers {
  static constexpr uint32_t kMost = UINT32_MAX;

  // 0 if the definition was lost.
  uint32_t stack(uint32_t in_file) const {
    const auto found = stacks.find(in_file);
    return found != stacks.end() ? found->second : 0;
  }
  // A thread may be met before it is defined.
  uint32_t thread(uint32_t in_file) {
    if (in_file == 0) return 0;
    const auto [at, fresh] =
        thread_numbers.try_emplace(in_file, static_cast<uint32_t>(threads.size()));
    if (fresh) threads.emplace_back();
    return at->second;
  }

  absl::flat_hash_map<uint32_t, uint32_t> stacks;
  absl::flat_hash_map<uint32_t, uint32_t> thread_numbers;
  std::vector<EventThread> threads = {EventThread()};
};

class ChunkReader {
 public:
  explicit ChunkReader(FileNumbers& numbers) : numbers_(numbers) {}

  // The events of a chunk that begins at that time. Throws DamagedChunk; so does the next.
  void begin(ColumnReader& in, format::EventForm form, uint64_t steps);
  // Reads the next event, and its time in steps.
  void next(Event& event, uint64_t& steps);
  // The address of a numbered block, if the log has told it (of blocks that lived at a fork); else
  // 0.
  uint64_t address_of(uint64_t numbered) const {
    const auto found = told_.find(block_number(numbered));
    return found != told_.end() ? found->second : 0;
  }

 private:
  // Events until something happens, from a column.
  struct Until {
    uint64_t left = 0;
    bool any = false;

    void read(ColumnReader& column) {
      any = !column.empty();
      left = any ? column.number() : 0;
    }
    bool is_now() { return any && left == 0; }
    void pass() { left -= left != 0 ? 1 : 0; }
  };

  ColumnReader& column(format::EventColumn which) { return columns_[which]; }
  uint64_t address() { return addresses_.decode(column(format::kSingleAddresses).number()); }
  uint64_t birth();
  void read_entry();
  uint64_t moved(uint8_t order);
  uint64_t forget_moving(uint64_t address);
  uint64_t read_place(uint8_t place, uint64_t requested);
  void read_begin(Event& event, const EventEntry& entry);
  void read_end(Event& event, const EventEntry& entry);
  void read_single(Event& event, uint64_t& steps);
  void read_told();

  FileNumbers& numbers_;
  bool has_addresses_ = false;  // the form of the chunk; so is the next
  uint64_t steps_of_tick_ = 1;
  ColumnReader columns_[format::kEventColumns];
  std::vector<ColumnReader> symbols_;  // by thread
  std::vector<EventEntry> entries_;
  BlockOrder order_;
  BlockHistory history_;
  Births births_;
  RecentAddresses addresses_;
  uint64_t first_birth_ = 1;
  uint64_t births_of_chunk_ = 0;
  std::vector<std::vector<uint64_t>> moving_;     // addresses, by thread
  absl::flat_hash_map<uint64_t, uint64_t> told_;  // addresses, by the numbers of blocks
  uint64_t tick_ = 0;
  uint64_t steps_ = 0;  // of the next event
  Until next_tick_, next_switch_;
  std::vector<uint32_t> threads_;  // of the log, by their numbers in the chunk
  uint32_t slot_ = 0;              // of the present one
  uint32_t newest_stack_ = 0;
};

}  // namespace mtrace::events
