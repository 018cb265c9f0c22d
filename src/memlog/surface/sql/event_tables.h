// The events of an event log, as the tables read them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "model/events/event_log.h"
#include "surface/sql/tables.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::sql {

class LoggedEvents {
 public:
  // `data` must outlive this. Throws FileError, FormatError.
  LoggedEvents(const std::string& path, const Data& data) : data_(data), log_(path) {}

  const events::EventLog& log() const { return log_; }

  // Stores the next event; false: there are no more. Throws Interrupted, and FormatError at the end
  // of a damaged log: what was counted without its lost events is wrong.
  bool next(events::Event& event) {
    // Not at each event: a signal handler writes what check() reads.
    if ((++count_ & 0xfff) == 0) data_.check();
    const bool any = log_.next(event);
    if (count_ == 1 && !log_.missing_inheritance().empty()) {
      data_.sources.remark(
          fmt::format("{}: {}", util::escaped(log_.path(), ""), log_.missing_inheritance()));
    }
    if (any) return true;
    if (log_.damaged_chunks() != 0) {
      throw util::FormatError(
          log_.path(), 1,
          fmt::format("the event log is damaged (chunks: {}); memlog events prints the rest",
                      log_.damaged_chunks()));
    }
    if (!log_.missing().empty()) {
      data_.sources.remark(fmt::format("{}: {}", util::escaped(log_.path(), ""), log_.missing()));
    }
    return false;
  }

 private:
  const Data& data_;
  events::EventLog log_;
  uint64_t count_ = 0;
};

}  // namespace mtrace::sql
