// Sends an event log to memlog serve --receive while it is written.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "format/event_ring.h"
#include "format/ledger.h"
#include "model/recording/frame_sink.h"
#include "surface/fleet/http_client.h"

namespace mtrace::fleet {

struct LogSending {
  std::string token;          // empty: none is sent
  std::string ca_file;        // as of HttpServerAddress
  uint64_t buffer = 0;        // bytes of frames that are kept for the receiver
  std::chrono::seconds wait;  // once the log has ended, until the receiver takes something
  std::string status;         // a pipe with a name, see process/run/sent_logs.h; empty: none
};

// Starts a process that keeps and sends the frames, in memory only. It goes on after this process
// has ended, until all has arrived. Frames with events fill the buffer; for frames without there is
// more room (kMoreRoom). The process of the caller must have one thread. Throws util::FileError,
// and std::runtime_error when the place is no URL.
std::unique_ptr<events::FrameSink> open_log_sender(const format::EventRingHeader& rings,
                                                   const format::LedgerHeader& ledger,
                                                   const LogSending& sending);

}  // namespace mtrace::fleet
