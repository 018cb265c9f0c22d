// Numbers and texts as an event log has them: LEB128, zigzag for signed ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

}  // namespace mtrace::events
