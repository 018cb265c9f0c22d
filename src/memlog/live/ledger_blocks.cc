#include <algorithm>

#include "live/ledger_chunks.h"
#include "live/ledger_state.h"

namespace mtrace::live {
namespace {

LedgerBlock unpack(const format::LedgerSlot& slot) {
  constexpr unsigned kBirthLow = 64 - format::kSlotAddressBits;
  const uint64_t size =
      slot.value >> format::kSlotStackBits & ((uint64_t{1} << format::kSlotSizeBits) - 1);
  const auto birth = static_cast<uint32_t>(
      slot.key >> format::kSlotAddressBits |
      slot.value >> (format::kSlotStackBits + format::kSlotSizeBits) << kBirthLow);
  return {(slot.key & ((uint64_t{1} << format::kSlotAddressBits) - 1)) << 3, size,
          static_cast<uint32_t>(slot.value & ((1u << format::kSlotStackBits) - 1)),
          unpack_ticks(birth)};
}

}  // namespace

uint64_t unpack_ticks(uint32_t packed) {
  constexpr unsigned kMantissaBits = 25;
  constexpr unsigned kExponentStep = 4;
  const uint64_t mantissa = packed & ((1u << kMantissaBits) - 1);
  return mantissa << (packed >> kMantissaBits & 3) * kExponentStep;
}

bool each_block(const LedgerFile& file, const std::function<void(const LedgerBlock&)>& visit) {
  constexpr uint64_t kFirstLinesLog2 = 8;
  constexpr size_t kAtATime = 1u << 14;  // slots
  const format::LedgerRoots& roots = file.header().roots;
  ChunkedCopy<uint64_t, format::kLargeChunk> large(file, roots.large_sizes);
  uint32_t newest = 0;
  bool whole = file.read(roots.newest_level, newest);
  std::vector<format::LedgerSlot> slots(kAtATime);
  for (uint32_t number = 0; number <= newest && number < format::kLedgerLevels; ++number) {
    format::LedgerLevel level;
    const uint64_t count = (uint64_t{1} << (kFirstLinesLog2 + number)) * format::kSlotsALine;
    const bool there = file.read(roots.levels + number * sizeof level, level);
    for (uint64_t at = 0; at < count; at += slots.size()) {
      const size_t part = std::min<uint64_t>(slots.size(), count - at);
      if (!there ||
          !file.read(level.slots + at * sizeof slots[0], slots.data(), part * sizeof slots[0])) {
        whole = false;
        break;
      }
      for (size_t i = 0; i < part; ++i) {
        if (slots[i].key <= 1 || slots[i].value == 0) continue;
        LedgerBlock block = unpack(slots[i]);
        if (block.size >= format::kLargeSize) {
          block.size = large.get(static_cast<uint32_t>(block.size - format::kLargeSize));
        }
        visit(block);
      }
    }
  }
  return whole;
}

}  // namespace mtrace::live
