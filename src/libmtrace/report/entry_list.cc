#include "report/entry_list.h"

#include "base/syscall.h"

namespace mtrace::report {
namespace {

constexpr uint32_t size_code(uint64_t number) {
  return (number != 0) + (number > UINT16_MAX) + (number > UINT32_MAX);
}
constexpr uint32_t bytes_of(uint32_t code) { return (1u << code) & ~1u; }
constexpr uint64_t kMasks[] = {0, UINT16_MAX, UINT32_MAX, UINT64_MAX};  // by code

// The numbers in the order in which they are packed.
template <typename AnEntry, typename Visit>
inline void each_number(AnEntry& entry, Visit visit) {
  visit(entry.change.allocated_bytes);
  visit(entry.change.allocated_blocks);
  visit(entry.change.freed_bytes);
  visit(entry.change.freed_blocks);
  visit(entry.change.temporary);
  visit(entry.change.short_lived);
  visit(entry.change.lifetime);
  visit(entry.live);
  visit(entry.slack);
  visit(entry.share);
  visit(entry.lifetimes.shortest);
  visit(entry.lifetimes.longest);
}

}  // namespace

EntryList::~EntryList() {
  if (bytes_ != nullptr) sys::unmap_memory(bytes_, mapped_);
}

bool EntryList::reserve(uint32_t most) {
  // The last number is read and written as 8 bytes, whatever it takes.
  mapped_ = size_t{most} * kMostBytes + sizeof(uint64_t);
  bytes_ = static_cast<char*>(sys::map_memory(mapped_));
  return bytes_ != nullptr;
}

uint32_t EntryList::append(const Entry& entry) {
  const uint32_t place = size_;
  Head head = {entry.id, entry.stack, entry.ordinal, 0, entry.kind};
  char* at = bytes_ + place + kHead;
  unsigned shift = 0;
  each_number(entry, [&](uint64_t number) {
    const uint32_t code = size_code(number);
    head.sizes |= code << shift;
    shift += 2;
    __builtin_memcpy(at, &number, sizeof number);
    at += bytes_of(code);
  });
  __builtin_memcpy(bytes_ + place, &head, kHead);
  size_ = static_cast<uint32_t>(at - bytes_);
  return place;
}

uint32_t EntryList::decode(uint32_t place, Entry& entry) const {
  Head head = this->head(place);
  const char* at = bytes_ + place + kHead;
  each_number(entry, [&]<typename Number>(Number& number) {
    const uint32_t code = head.sizes & 3;
    head.sizes >>= 2;
    uint64_t packed;
    __builtin_memcpy(&packed, at, sizeof packed);
    at += bytes_of(code);
    number = static_cast<Number>(packed & kMasks[code]);
  });
  entry.id = head.id;
  entry.stack = head.stack;
  entry.ordinal = head.ordinal;
  entry.kind = head.kind;
  return static_cast<uint32_t>(at - bytes_);
}

}  // namespace mtrace::report
