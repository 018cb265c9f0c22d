// Numbers and texts as an event log has them: LEB128, zigzag for signed ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mtrace::events {

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
// looked for among those that the thread used last. Moving each to the front (Bentley, Sleator,
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

}  // namespace mtrace::events
