// A log that is being written, without the blocks that live shorter than a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "events/culler.h"
#include "events/event_log.h"
#include "events/log_writer.h"

namespace mtrace::events {

class CulledLog {
 public:
  // `lifetime` in milliseconds. `append` gets the contents of the frames that are left.
  CulledLog(uint64_t lifetime, LogWriter::Append append)
      : lifetime_(lifetime), append_(std::move(append)) {}

  // Takes the content of the next frame of the whole log; the first is the header.
  void take(std::string content);
  // After the last frame.
  void finish();

 private:
  uint64_t lifetime_;
  LogWriter::Append append_;
  MadeContents* contents_ = nullptr;  // of log_
  std::unique_ptr<EventLog> log_;
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<Culler> culler_;
};

}  // namespace mtrace::events
