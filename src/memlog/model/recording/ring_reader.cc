#include "model/recording/ring_reader.h"

namespace mtrace::events {

using format::EventRecord;
using format::EventUnit;

namespace {

constexpr double kPatience = 1;       // seconds
constexpr uint64_t kMostText = 8192;  // bytes

unsigned record_units(uint64_t bytes) {
  return static_cast<unsigned>((std::min(bytes, kMostText) + sizeof(EventUnit) - 1) /
                               sizeof(EventUnit));
}

}  // namespace

unsigned RingReader::complete_units(uint64_t position, uint64_t end, RingRecord* record) const {
  const EventUnit& first = at(position);
  const uint64_t word = __atomic_load_n(&first.b, __ATOMIC_ACQUIRE);
  record->kind = EventRecord::kSkipped;
  if (word >> format::kEventLapShift != format::event_lap(position)) return 0;
  *record = {format::event_kind(word), static_cast<uint8_t>(word >> format::kEventCallShift & 0xf),
             first.a, word & format::kEventLowBits, position};
  uint64_t units = 1;
  switch (record->kind) {
    case EventRecord::kReserved:
      return 0;
    case EventRecord::kSkipped:
      units = record->low;
      break;
    case EventRecord::kAllocation:
    case EventRecord::kFreeWithStack:
    case EventRecord::kUnknownFreeWithStack:
    case EventRecord::kMap:
    case EventRecord::kUnmap:
      units = 2;
      break;
    case EventRecord::kRealloc:
    case EventRecord::kRemap:
      units = 3;
      break;
    case EventRecord::kReport:
    case EventRecord::kNote:
      units = 2 + record_units(at(position + 1).a);
      break;
    default:
      break;
  }
  return units == 0 || units > end - position ? 0 : static_cast<unsigned>(units);
}

std::string RingReader::text(unsigned first_unit, size_t size) const {
  std::string text(std::min<size_t>(size, kMostText), '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t number = first_unit + i / sizeof(EventUnit);
    const auto* bytes = reinterpret_cast<const char*>(&at(next_.position + number));
    text[i] = bytes[i % sizeof(EventUnit)];
  }
  return text;
}

bool RingReader::look(uint64_t settled, double waited) {
  const uint64_t reserved = __atomic_load_n(&ring_->reserved, __ATOMIC_ACQUIRE);
  // Written over: nothing of that is known any more.
  if (reserved < looked_ || reserved - cursor_ > format::kEventUnits) {
    ++given_up_;
    cursor_ = looked_ = reserved;
  }
  const uint64_t before = looked_;
  RingRecord record;
  while (looked_ != reserved) {
    const unsigned units = complete_units(looked_, reserved, &record);
    if (units == 0) break;
    if (record.kind != EventRecord::kSkipped) last_stamp_ = record.stamp;
    looked_ += units;
  }
  blocked_ = looked_ != reserved && !ended_;
  if (!blocked_) clear_ = settled;
  blocked_for_ = blocked_ && looked_ == before ? blocked_for_ + waited : 0;
  if (blocked_ && give_up(blocked_for_, reserved)) blocked_for_ = 0;
  if (next_stamp_ == UINT64_MAX) find_next();
  return looked_ != before;
}

void RingReader::find_next() {
  next_stamp_ = UINT64_MAX;
  while (cursor_ != looked_) {
    next_units_ = complete_units(cursor_, looked_, &next_);
    if (next_units_ == 0 && next_.kind == EventRecord::kReserved && next_.low != 0 &&
        next_.low <= looked_ - cursor_) {
      cursor_ += next_.low;  // it was given up
      continue;
    }
    if (next_units_ == 0) {  // written over meanwhile
      ++given_up_;
      cursor_ = looked_;
      return;
    }
    if (next_.kind != EventRecord::kSkipped) {
      next_stamp_ = std::min(next_.stamp, UINT64_MAX - 1);
      return;
    }
    cursor_ += next_units_;
  }
}

void RingReader::take() {
  cursor_ += next_units_;
  find_next();
}

bool RingReader::release() {
  if (cursor_ == released_) return false;
  released_ = cursor_;
  __atomic_store_n(&ring_->taken, cursor_, __ATOMIC_RELEASE);
  return true;
}

// The thread has left the record by a longjmp out of a signal handler, or is gone; or it does not
// come to run. In the last case it limits the others no longer.
bool RingReader::give_up(double waited, uint64_t reserved) {
  if (waited < kPatience) return false;
  const EventUnit& first = at(looked_);
  const uint64_t word = __atomic_load_n(&first.b, __ATOMIC_ACQUIRE);
  const bool known = word >> format::kEventLapShift == format::event_lap(looked_) &&
                     format::event_kind(word) == EventRecord::kReserved;
  const uint64_t units = word & format::kEventLowBits;
  blocked_ = false;
  if (!known || units == 0 || units >= reserved - looked_) return false;
  ++given_up_;
  looked_ += units;
  return true;
}

}  // namespace mtrace::events
