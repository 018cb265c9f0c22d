#include "model/events/event_header.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "format/event_log.h"
#include "model/events/column.h"
#include "util/text.h"
#include "util/time.h"

namespace mtrace::events {
namespace {

uint64_t number_of(std::string_view text) {
  return util::read_unsigned(text, UINT64_MAX).value_or(0);
}

// "TID:EVENTS TID:EVENTS ..."
void read_parent_events(EventHeader& header, std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const size_t colon = std::min(word.find(':'), word.size());
    const uint64_t events = number_of(word.substr(std::min(colon + 1, word.size())));
    header.parent_events.push_back(
        {static_cast<uint32_t>(number_of(word.substr(0, colon))), events});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void set_key(EventHeader& header, std::string_view key, std::string_view value) {
  const std::pair<const char*, std::string*> texts[] = {
      {format::kEventsProgram, &header.program},
      {format::kEventsCommand, &header.command},
      {format::kEventsParentLog, &header.parent_log},
      {format::kEventsLibrary, &header.library},
      {format::kEventsHost, &header.host},
      {format::kEventsBootId, &header.boot_id}};
  for (const auto& [name, text] : texts) {
    if (key == name) *text = value;
  }
  if (key == format::kEventsLeftOut) {
    header.left_out += (header.left_out.empty() ? "" : "; ") + std::string(value);
  }
  if (key == format::kEventsPid) header.pid = static_cast<int64_t>(number_of(value) & INT_MAX);
  if (key == format::kEventsParent) {
    header.parent = static_cast<int64_t>(number_of(value) & INT_MAX);
  }
  if (key == format::kEventsParentTime) header.parent_time = number_of(value);
  if (key == format::kEventsParentFork) {
    header.parent_fork = static_cast<uint32_t>(number_of(value));
  }
  if (key == format::kEventsParentEvents) read_parent_events(header, value);
  if (key == format::kEventsInherited) {
    const size_t blank = std::min(value.find(' '), value.size());
    header.knows_inherited = true;
    header.inherited_bytes = number_of(value.substr(0, blank));
    header.inherited_blocks = number_of(value.substr(std::min(blank + 1, value.size())));
  }
  if (key == format::kEventsStarted) header.started = number_of(value);
  if (key == format::kEventsProcessStarted) header.process_started = number_of(value);
}

}  // namespace

EventHeader read_header(std::string_view content) {
  EventHeader header;
  for (ColumnReader in(content); !in.empty();) {
    const std::string_view key = in.text();
    set_key(header, key, in.text());
  }
  return header;
}

std::optional<uint64_t> read_time(std::string_view text, uint64_t started) {
  constexpr uint64_t kDay = 86400 * uint64_t{1'000'000'000};
  constexpr size_t kDate = 10;  // "2026-11-22"
  if (text.size() > kDate && text[kDate] == 'T' && text.ends_with('Z')) {
    const auto time =
        util::read_instant(text.substr(0, kDate), text.substr(kDate + 1, text.size() - kDate - 2));
    if (!time) return std::nullopt;
    return static_cast<uint64_t>(*time);
  }
  const auto clock = util::read_time_of_day(text);
  if (!clock) return std::nullopt;
  const uint64_t time = started / kDay * kDay + *clock;
  return time < started ? time + kDay : time;
}

}  // namespace mtrace::events
