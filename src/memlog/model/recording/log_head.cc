#include "model/recording/log_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "format/event_log.h"
#include "format/memlog.h"
#include "model/events/columns.h"
#include "model/recording/ring_reader.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

using format::EventRingHeader;

std::string threads_at_fork(const EventRingHeader& header) {
  std::string text;
  const size_t count = std::min<size_t>(header.threads_at_fork, std::size(header.at_fork));
  for (size_t i = 0; i < count; ++i) {
    const format::EventThreadAtFork& thread = header.at_fork[i];
    text += fmt::format("{}{}:{}", i == 0 ? "" : " ", thread.tid, thread.events);
  }
  return text;
}

}  // namespace

std::string log_head(const EventRingHeader& rings, const ledger::LedgerFile& ledger) {
  const format::LedgerHeader& header = ledger.header();
  Column head;
  head.put_raw({format::kEventHeaderMark, format::kEventMark});
  const auto put = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    head.put_text(key);
    head.put_text(value);
  };
  put(format::kEventsProgram, util::array_text(header.program));
  put(format::kEventsCommand, ledger.command());
  put(format::kEventsPid, std::to_string(header.pid));
  if (header.parent != 0) {
    put(format::kEventsParent, std::to_string(header.parent));
    const std::string path = util::array_text(rings.parent_log);
    put(format::kEventsParentLog, path.substr(path.rfind('/') + 1));
    put(format::kEventsParentTime, std::to_string(rings.parent_time));
    if (rings.parent_fork != 0) {
      put(format::kEventsParentFork, std::to_string(rings.parent_fork));
    }
    put(format::kEventsParentEvents, threads_at_fork(rings));
  }
  put(format::kEventsStarted, std::to_string(start_of(rings)));
  put(format::kEventsProcessStarted, std::to_string(header.started));
  put(format::kEventsLibrary, util::array_text(header.library));
  put(format::kEventsHost, util::array_text(header.node));
  put(format::kEventsBootId, util::array_text(header.boot_id));
  put(format::kEventsProcessor, format::processor_name(util::machine::kElfMachine));
  if (rings.compact != 0) put(format::kEventsForm, format::kEventsCompact);
  put(format::kEventsClock, rings.counter != 0 ? "tsc" : "monotonic");
  return std::string(head.bytes());
}

}  // namespace mtrace::events
