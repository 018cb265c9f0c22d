// How the events of a chunk are written and read. Two ways: FullColumns has addresses and times in
// steps of 100 ns, CompactColumns neither (doc/events.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "model/events/column.h"
#include "model/events/event_log.h"
#include "model/events/file_numbers.h"

namespace mtrace::events {

// A time beyond this is a damaged one.
inline constexpr uint64_t kMostSteps = uint64_t{1} << 56;

class EventColumns {
 public:
  virtual ~EventColumns() = default;
  // Adds an event; `steps` of the format since the start, not before the last one's.
  virtual void put(const Event& event, uint64_t steps) = 0;
  // Appends what was put to a chunk. The next chunk begins.
  virtual void finish(Column& out) = 0;
};

class EventColumnsReader {
 public:
  virtual ~EventColumnsReader() = default;
  // The columns of a chunk that begins at that time. Throws DamagedChunk; so does the next.
  virtual void begin(ColumnReader& in, uint64_t steps) = 0;
  // Reads the next event, and its time in steps.
  virtual void next(Event& event, uint64_t& steps) = 0;
};

std::unique_ptr<EventColumns> make_full_columns();
// `version` of the format: 1 has no names of blocks.
std::unique_ptr<EventColumnsReader> make_full_reader(FileNumbers& numbers, unsigned version);

// `address_of` returns the address of a block that has a number (is_numbered()); 0: not known.
std::unique_ptr<EventColumns> make_compact_columns(std::function<uint64_t(uint64_t)> address_of);

class CompactReader : public EventColumnsReader {
 public:
  // The address of a numbered block, if the log has told it (of blocks that lived at a fork); else
  // 0.
  virtual uint64_t address_of(uint64_t numbered) const = 0;
};
std::unique_ptr<CompactReader> make_compact_reader(FileNumbers& numbers);

}  // namespace mtrace::events
