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

constexpr const char* kEndings[] = {"exit", "killed", "exec", "detached", "continued"};

const char* ending(const Event& event) {
  return kEndings[event.number < std::size(kEndings) ? event.number : 0];
}

bool has_address(const Event& event) {
  return (event.kind >= Kind::kAllocation && event.kind <= Kind::kRemap) ||
         event.kind == Kind::kInherited;
}

void put_place(json::Value& out, const char* prefix, uint64_t address) {
  const bool numbered = events::is_numbered(address);
  out[fmt::format("{}{}", prefix, numbered ? "block" : "address")] =
      numbered ? events::block_number(address) : address;
}

// "0x55d0 -> 0x55e0 72 usable=88".
std::string values(const Event& event) {
  switch (event.kind) {
    case Kind::kAllocation:
    case Kind::kInherited:
      return fmt::format("{} {} usable={}", events::address_text(event.address), event.requested,
                         event.usable);
    case Kind::kRealloc:
      return fmt::format("{} {} usable={} old={}", events::address_text(event.address),
                         event.requested, event.usable, events::address_text(event.old_address));
    case Kind::kUnknownFree:
      return fmt::format("{} unknown", events::address_text(event.address));
    case Kind::kFree:
    case Kind::kReallocBegin:
    case Kind::kReallocFailed:
      return events::address_text(event.address);
    case Kind::kMap:
    case Kind::kUnmap:
      return fmt::format("0x{:x} {}", event.address, event.requested);
    case Kind::kRemap:
      return fmt::format("0x{:x} {} old=0x{:x} old-size={}", event.address, event.requested,
                         event.old_address, event.old_size);
    case Kind::kNote:
      return util::escaped(event.text, "");
    case Kind::kReport:
      return fmt::format("{}{}{}", event.number, event.text.empty() ? "" : " ",
                         util::escaped(event.text, ""));
    case Kind::kMemory:
    case Kind::kLost:
    case Kind::kFork:
      return std::to_string(event.number);
    case Kind::kEnd:
      return ending(event);
    case Kind::kLeftOut:
      return fmt::format("{} {} freed={} {}", event.left_out->allocations,
                         event.left_out->allocated, event.left_out->frees, event.left_out->freed);
    default:
      return {};
  }
}

}  // namespace

const char* event_name(const Event& event, const events::EventLog& log) {
  switch (event.kind) {
    case Kind::kAllocation:
    case Kind::kRealloc:
      return log.call(event.stack, event.call);
    case Kind::kFree:
    case Kind::kUnknownFree:
      return format::kCallNames[event.call];
    case Kind::kReallocBegin:
      return "realloc-begin";
    case Kind::kReallocFailed:
      return "realloc-failed";
    case Kind::kMap:
      return "mmap";
    case Kind::kUnmap:
      return "munmap";
    case Kind::kRemap:
      return "mremap";
    case Kind::kThreadBegin:
      return "thread-begin";
    case Kind::kThreadEnd:
      return "thread-end";
    case Kind::kNote:
      return "note";
    case Kind::kReport:
      return "report";
    case Kind::kStart:
      return "start";
    case Kind::kStop:
      return "stop";
    case Kind::kMemory:
      return "resident";
    case Kind::kLost:
      return "lost";
    case Kind::kFork:
      return "fork";
    case Kind::kInherited:
      return "inherited";
    case Kind::kEnd:
      return "end";
    case Kind::kLeftOut:
      return "left-out";
    case Kind::kAllocatedLeftOut:
      return "allocated-left-out";
    case Kind::kUnknown:
      break;
  }
  return "unknown";
}

std::string event_line(const Event& event, const events::EventLog& log, const EventNames& names) {
  const uint32_t tid = log.thread(event.thread).tid;
  const std::string what = values(event);
  std::string line = fmt::format("{} {:>7} {}{}{}", util::time_text(event.time, 7),
                                 tid != 0 ? std::to_string(tid) : "-", event_name(event, log),
                                 what.empty() ? "" : " ", what);
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
  if (has_address(event)) put_place(out, "", event.address);
  if (event.kind == Kind::kRealloc || event.kind == Kind::kRemap) {
    put_place(out, "old_", event.old_address);
  }
  if (event.kind == Kind::kRemap) out["old_size"] = event.old_size;
  const bool allocates = event.kind == Kind::kAllocation || event.kind == Kind::kRealloc ||
                         event.kind == Kind::kInherited;
  if (allocates || (event.kind >= Kind::kMap && event.kind <= Kind::kRemap)) {
    out["size"] = event.requested;
  }
  if (allocates) out["usable"] = event.usable;
  if (event.kind == Kind::kInherited) out["allocated_at"] = event.number;
  if (event.kind == Kind::kEnd) out["reason"] = ending(event);
  if (event.kind == Kind::kReport || event.kind == Kind::kMemory || event.kind == Kind::kLost ||
      event.kind == Kind::kFork) {
    out["number"] = event.number;
  }
  if (event.kind == Kind::kLeftOut) {
    out["allocations"] = event.left_out->allocations;
    out["allocated_bytes"] = event.left_out->allocated;
    out["frees"] = event.left_out->frees;
    out["freed_bytes"] = event.left_out->freed;
  }
  json::put_text(out, "text", std::string(event.text));
  if (event.stack != 0) {
    out["stack"] = fmt::format("{:016x}", log.stack(event.stack).id);
    out["frames"] = names.line(event.stack);
  }
  return out;
}

}  // namespace mtrace::text
