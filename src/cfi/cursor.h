// Reads DWARF-encoded values one after the other from memory that is known to be readable.
// A read past the end yields 0 and clears ok(), so that a parser checks once at its end.
// Encodings: DWARF 5, section 7; pointer encodings (DW_EH_PE): Linux Standard Base, "DWARF
// Extensions".
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mtrace::cfi {

// The memory that a parser may look at: the readable segments of one loaded object. Whatever
// the bytes in it say, nothing outside is read.
class Bounds {
 public:
  static constexpr unsigned kMaxRanges = 8;

  // Adds [start, end); empty ranges and those past the eighth are left out.
  void add(uintptr_t start, uintptr_t end) {
    if (start < end && count_ < kMaxRanges) ranges_[count_++] = {start, end};
  }

  // End of the range that holds [address, address + size), 0 when none does.
  uintptr_t end_of(uintptr_t address, size_t size) const {
    for (unsigned i = 0; i < count_; ++i) {
      const Range& range = ranges_[i];
      if (address >= range.start && address <= range.end && size <= range.end - address) {
        return range.end;
      }
    }
    return 0;
  }
  bool contains(uintptr_t address, size_t size) const { return end_of(address, size) != 0; }

 private:
  struct Range {
    uintptr_t start;
    uintptr_t end;
  };
  Range ranges_[kMaxRanges] = {};
  unsigned count_ = 0;
};

inline constexpr uint8_t kPointerOmit = 0xff;
inline constexpr uint8_t kPointerIndirect = 0x80;

class Cursor {
 public:
  Cursor(uintptr_t position, uintptr_t end) : position_(position), end_(end) {}

  uintptr_t position() const { return position_; }
  uintptr_t end() const { return end_; }
  uintptr_t left() const { return end_ - position_; }
  bool ok() const { return ok_; }
  bool more() const { return ok_ && position_ < end_; }
  void fail() { ok_ = false; }

  void skip(uint64_t bytes) {
    if (bytes > left()) {
      ok_ = false;
      position_ = end_;
    } else {
      position_ += bytes;
    }
  }

  template <typename T>
  T fixed() {
    T value{};
    if (left() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    memcpy(&value, reinterpret_cast<const void*>(position_), sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return fixed<uint8_t>(); }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0 || !ok_) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0 || !ok_) {
        if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
        return static_cast<int64_t>(value);
      }
    }
  }

  // A pointer in encoding `encoding`; `data_base` and `function_base` are what data-relative and
  // function-relative values add to, 0 where there is no such base. Fails on encodings that have
  // no meaning here, and on an indirect one whose target is outside `bounds`.
  uintptr_t pointer(uint8_t encoding, const Bounds& bounds, uintptr_t data_base,
                    uintptr_t function_base) {
    if (encoding == kPointerOmit) return 0;
    if ((encoding & 0x70) == 0x50) {  // aligned: an absolute word on its natural boundary
      skip((8 - position_ % 8) % 8);
      return fixed<uintptr_t>();
    }
    const uintptr_t place = position_;
    uintptr_t value = number(encoding);
    if (value == 0) return 0;  // a null pointer in every encoding
    switch (encoding & 0x70) {
      case 0x00:
        break;
      case 0x10:
        value += place;
        break;
      case 0x30:
        value = based(value, data_base);
        break;
      case 0x40:
        value = based(value, function_base);
        break;
      default:
        ok_ = false;
        return 0;  // text-relative does not occur on x86_64
    }
    if ((encoding & kPointerIndirect) == 0) return value;
    if (!bounds.contains(value, sizeof value)) {
      ok_ = false;
      return 0;
    }
    memcpy(&value, reinterpret_cast<const void*>(value), sizeof value);
    return value;
  }

  // The number alone, without its base: the length of a range has the format of a pointer.
  uintptr_t number(uint8_t encoding) {
    switch (encoding & 0x0f) {
      case 0x00:
        return fixed<uint64_t>();
      case 0x01:
        return uleb();
      case 0x02:
        return fixed<uint16_t>();
      case 0x03:
        return fixed<uint32_t>();
      case 0x04:
        return fixed<uint64_t>();
      case 0x09:
        return static_cast<uintptr_t>(sleb());
      case 0x0a:
        return static_cast<uintptr_t>(static_cast<intptr_t>(fixed<int16_t>()));
      case 0x0b:
        return static_cast<uintptr_t>(static_cast<intptr_t>(fixed<int32_t>()));
      case 0x0c:
        return fixed<uint64_t>();
      default:
        ok_ = false;
        return 0;
    }
  }

 private:
  uintptr_t based(uintptr_t value, uintptr_t base) {
    if (base == 0) ok_ = false;
    return value + base;
  }

  uintptr_t position_;
  uintptr_t end_;
  bool ok_ = true;
};

}  // namespace mtrace::cfi
