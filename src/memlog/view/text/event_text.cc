#include "view/text/event_text.h"

#include <fmt/format.h>

#include <iterator>

#include "format/event_log.h"
#include "model/events/event_header.h"
#include "util/text.h"
#include "util/time.h"

namespace mtrace::text {

using events::Event;
using events::Kind;

namespace {

// By Kind; of calls the log knows the names.
constexpr const char* kEventNames[] = {"unknown",
                                       nullptr,
                                       nullptr,
                                       nullptr,
                                       "realloc-begin",
                                       nullptr,
                                       "realloc-failed",
                                       "mmap",
                                       "munmap",
                                       "mremap",
                                       "thread-begin",
                                       "thread-end",
                                       "note",
                                       "report",
                                       "start",
                                       "stop",
                                       "resident",
                                       "lost",
                                       "end",
                                       "left-out",
                                       "fork",
                                       "inherited",
                                       "allocated-left-out"};

constexpr const char* kEndings[] = {"exit", "killed", "exec", "detached", "continued"};

// Hands each value of the event to place(key, before, address), number(key, before, number) or
// text(key, text). `key`: in JSON, of a place without "address"; `before`: in the line.
template <typename Place, typename Number, typename Text>
void each_value(const Event& event, const Place& place, const Number& number, const Text& text) {
  const Kind kind = event.kind;
  const bool allocates =
      kind == Kind::kAllocation || kind == Kind::kRealloc || kind == Kind::kInherited;
  const bool maps = kind >= Kind::kMap && kind <= Kind::kRemap;
  if (allocates || (kind >= Kind::kFree && kind <= Kind::kRemap)) place("", "", event.address);
  if (allocates || maps) number("size", "", event.requested);
  if (allocates) number("usable", "usable=", event.usable);
  if (kind == Kind::kRealloc || kind == Kind::kRemap) place("old_", "old=", event.old_address);
  if (kind == Kind::kRemap) number("old_size", "old-size=", event.old_size);
  if (kind == Kind::kReport || kind == Kind::kMemory || kind == Kind::kLost ||
      kind == Kind::kFork) {
    number("number", "", event.number);
  }
  if (kind == Kind::kEnd) {
    text("reason", kEndings[event.number < std::size(kEndings) ? event.number : 0]);
  }
  if (kind == Kind::kLeftOut) {
    number("allocations", "", event.left_out->allocations);
    number("allocated_bytes", "", event.left_out->allocated);
    number("frees", "freed=", event.left_out->frees);
    number("freed_bytes", "", event.left_out->freed);
  }
  if (!event.text.empty()) text("text", std::string(event.text));
}

}  // namespace

const char* event_name(const Event& event, const events::EventLog& log) {
  if (event.kind == Kind::kAllocation || event.kind == Kind::kRealloc) {
    return log.call(event.stack, event.call);
  }
  const bool frees = event.kind == Kind::kFree || event.kind == Kind::kUnknownFree;
  return frees ? format::kCallNames[event.call] : kEventNames[static_cast<size_t>(event.kind)];
}

std::string event_line(const Event& event, const events::EventLog& log, const EventNames& names) {
  const uint32_t tid = log.thread(event.thread).tid;
  std::string line = fmt::format("{} {:>7} {}", util::time_text(event.time, 7),
                                 tid != 0 ? std::to_string(tid) : "-", event_name(event, log));
  auto append = std::back_inserter(line);
  each_value(
      event,
      [&](const char*, const char* before, uint64_t address) {
        fmt::format_to(append, " {}{}", before, events::address_text(address));
      },
      [&](const char*, const char* before, uint64_t number) {
        fmt::format_to(append, " {}{}", before, number);
      },
      [&](const char*, const std::string& text) { line += ' ' + util::escaped(text, ""); });
  if (event.kind == Kind::kUnknownFree) line += " unknown";
  if (event.kind == Kind::kThreadBegin) {
    line += ' ' + util::escaped(log.thread(event.thread).name, "");
  }
  if (event.stack != 0) {
    line += fmt::format(" stack={:016x} {}", log.stack(event.stack).id, names.line(event.stack));
  }
  return line;
}

json::Value event_json(const Event& event, const events::EventLog& log, const EventNames& names) {
  json::Value out;
  out["time"] = event.time;
  out["event"] = event_name(event, log);
  if (event.kind == Kind::kUnknownFree) out["unknown"] = true;
  if (event.thread != 0) out["thread"] = log.thread(event.thread).tid;
  each_value(
      event,
      [&](const std::string& key, const char*, uint64_t address) {
        const bool numbered = events::is_numbered(address);
        out[key + (numbered ? "block" : "address")] =
            numbered ? events::block_number(address) : address;
      },
      [&](const char* key, const char*, uint64_t number) { out[key] = number; },
      [&](const char* key, const std::string& text) { out[key] = text; });
  if (event.kind == Kind::kInherited) out["allocated_at"] = event.number;
  if (event.stack != 0) {
    out["stack"] = fmt::format("{:016x}", log.stack(event.stack).id);
    out["frames"] = names.line(event.stack);
  }
  return out;
}

}  // namespace mtrace::text
