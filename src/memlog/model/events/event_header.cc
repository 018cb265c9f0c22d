#include "model/events/event_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <climits>
#include <utility>
#include <vector>

#include "format/event_log.h"
#include "model/events/columns.h"
#include "util/text.h"
#include "util/time.h"

namespace mtrace::events {
namespace {

// Throws DamagedChunk for what is no number, or more than `most`.
uint64_t number_of(std::string_view text, uint64_t most = UINT64_MAX) {
  const auto number = util::read_unsigned(text, most);
  if (!number) throw DamagedChunk();
  return *number;
}

// "TID:EVENTS TID:EVENTS ..."
void read_parent_events(EventHeader& header, std::string_view text) {
  if (text.empty()) return;
  for (const std::string_view word : util::split(text, ' ')) {
    const size_t colon = word.find(':');
    if (colon == word.npos) throw DamagedChunk();
    header.parent_events.push_back({static_cast<uint32_t>(number_of(word.substr(0, colon))),
                                    number_of(word.substr(colon + 1))});
  }
}

void read_library(EventHeader& header, std::string_view text) {
  constexpr uint64_t kMillisecond = 1'000'000;
  header.library = text;
  for (const std::string_view word : util::split(text, ' ')) {
    constexpr std::string_view kOption = "MTRACE_TEMPORARY_MS=";
    if (!word.starts_with(kOption)) continue;
    const auto value = util::read_unsigned(word.substr(kOption.size()), UINT32_MAX);
    if (value) header.short_lived = *value * kMillisecond;
  }
}

void add_left_out(EventHeader& header, std::string_view text) {
  header.left_out += (header.left_out.empty() ? "" : "; ") + std::string(text);
}

void read_before(EventHeader& header, std::string_view text) {
  BeforeFile& before = header.before;
  std::vector<uint64_t*> values = {&before.began,         &before.peak_bytes, &before.peak_blocks,
                                   &before.peak_time,     &before.reports,    &before.lost,
                                   &before.unknown_frees, &before.resident};
  for (uint64_t& calls : before.calls) values.push_back(&calls);
  size_t i = 0;
  for (const std::string_view one : util::split(text, ' ')) {
    if (i < values.size()) *values[i++] = number_of(one);
  }
}

constexpr struct {
  std::string_view name;
  void (*read)(EventHeader& header, std::string_view value);
} kKeys[] = {
    {format::kEventsProgram, [](EventHeader& to, std::string_view text) { to.program = text; }},
    {format::kEventsCommand, [](EventHeader& to, std::string_view text) { to.command = text; }},
    {format::kEventsParentLog,
     [](EventHeader& to, std::string_view text) { to.parent_log = text; }},
    {format::kEventsLibrary, read_library},
    {format::kEventsHost, [](EventHeader& to, std::string_view text) { to.host = text; }},
    {format::kEventsProcessor, [](EventHeader& to, std::string_view text) { to.processor = text; }},
    {format::kEventsBootId, [](EventHeader& to, std::string_view text) { to.boot_id = text; }},
    {format::kEventsLeftOut, add_left_out},
    {format::kEventsBefore, read_before},
    {format::kEventsForm,
     [](EventHeader& to, std::string_view text) { to.compact = text == format::kEventsCompact; }},
    {format::kEventsPid,
     [](EventHeader& to, std::string_view text) { to.pid = number_of(text, INT_MAX); }},
    {format::kEventsParent,
     [](EventHeader& to, std::string_view text) { to.parent = number_of(text, INT_MAX); }},
    {format::kEventsParentTime,
     [](EventHeader& to, std::string_view text) { to.parent_time = number_of(text); }},
    {format::kEventsParentFork,
     [](EventHeader& to, std::string_view text) { to.parent_fork = number_of(text, UINT32_MAX); }},
    {format::kEventsParentEvents, read_parent_events},
    {format::kEventsStarted,
     [](EventHeader& to, std::string_view text) { to.started = number_of(text); }},
    {format::kEventsProcessStarted,
     [](EventHeader& to, std::string_view text) { to.process_started = number_of(text); }},
};

}  // namespace

EventHeader read_header(std::string_view content) {
  EventHeader header;
  for (ColumnReader in(content); !in.empty();) {
    const std::string_view key = in.text();
    const std::string_view value = in.text();
    for (const auto& one : kKeys) {
      if (one.name == key) one.read(header, value);
    }
  }
  return header;
}

std::string before_text(const BeforeFile& before) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", before.began, before.peak_bytes,
                     before.peak_blocks, before.peak_time, before.reports, before.lost,
                     before.unknown_frees, before.resident, fmt::join(before.calls, " "));
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
  // "12:04:31" of a log that began at 12:04:31.02 is that second, not one of the next day.
  constexpr uint64_t kHour = kDay / 24;
  const uint64_t time = started / kDay * kDay + *clock;
  return time + kHour < started ? time + kDay : time;
}

}  // namespace mtrace::events
