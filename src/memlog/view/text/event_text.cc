#include "view/text/event_text.h"

#include "format/calls.h"
#include "format/event_log.h"
#include "model/events/event_log.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::text {
namespace {

std::string frame_name(const profile::Frame& frame, const std::vector<profile::Module>& modules) {
  if (!frame.function.empty()) return util::escaped(frame.function.text(), "");
  if (frame.place != profile::Place::kModule) return fmt::format("0x{:x}", frame.offset);
  return fmt::format("{}+0x{:x}", util::escaped(util::base_name(modules[frame.module].path), ""),
                     frame.offset);
}

std::string line_of(const profile::Entry& entry, const std::vector<profile::Module>& modules) {
  std::string line;
  for (const profile::Frame& frame : entry.frames) {
    if (!line.empty()) line += " < ";
    line += frame_name(frame, modules);
  }
  if (entry.cut) line += line.empty() ? "..." : " < ...";
  return line;
}

}  // namespace

void EventNames::learn(const events::EventLog& log) {
  const uint32_t first = static_cast<uint32_t>(known_.size());
  if (first > log.stack_count()) return;
  memlog_.modules = log.modules();
  memlog_.entries.clear();
  for (uint32_t i = first; i <= log.stack_count(); ++i) {
    const events::EventStack& stack = log.stack(i);
    profile::Entry entry;
    entry.frames = profile::Frames(stack.frames);
    entry.cut = stack.cut;
    memlog_.entries.push_back(std::move(entry));
  }
  if (resolve_) {
    memlog_.header.pid = log.header().pid;
    memlog_.header.boot_id = log.header().boot_id;
    symbolizer_.resolve(memlog_);
  }
  for (const profile::Entry& entry : memlog_.entries) {
    known_.push_back({entry.frames, line_of(entry, memlog_.modules)});
  }
}

const std::string& EventNames::line(uint32_t stack) const {
  return known_[stack < known_.size() ? stack : 0].line;
}

const profile::Frames& EventNames::frames(uint32_t stack) const {
  return known_[stack < known_.size() ? stack : 0].frames;
}

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

namespace {

constexpr uint64_t kPage = 4096;
// Those that have a count, in this order; others count as the first.
constexpr std::string_view kCounted[] = {"malloc",         "calloc", "realloc", "memalign",
                                         "posix_memalign", "valloc", "free"};
constexpr size_t kFree = std::size(kCounted) - 1;

// Return addresses as backtrace_symbols() writes them: "PATH(+0xOFFSET)[0xADDRESS]". Frames of the
// log have the address before the one to which the function returns.
std::string frames_of(const events::EventStack& stack, const events::EventLog& log) {
  std::string lines;
  for (const profile::Frame& frame : stack.frames) {
    if (frame.place != profile::Place::kModule) {
      lines += fmt::format("[0x{:x}]\n", frame.offset + 1);
      continue;
    }
    const profile::Module& module = log.modules()[frame.module];
    lines += fmt::format("{}(+0x{:x})[0x{:x}]\n", util::escaped(module.path, ""), frame.offset + 1,
                         module.base + frame.offset + 1);
  }
  return lines;
}

std::string pointer(uint64_t address) {
  return address == 0 ? "(nil)" : fmt::format("0x{:x}", address);
}

}  // namespace

std::string LogMalloc2Text::head(const events::EventLog& log) {
  return fmt::format("# PID {}\n# EXE {}\n", log.header().pid,
                     util::escaped(log.header().program, "")) +
         LogMalloc2Text().counts("INIT");
}

std::string LogMalloc2Text::sizes() const { return fmt::format("[{}:{}]", live_, usable_); }

std::string LogMalloc2Text::counts(const char* name) const {
  return fmt::format("+ {} {} malloc={} calloc={} realloc={} memalign={}/{} valloc={} free={}\n",
                     name, sizes(), calls_[0], calls_[1], calls_[2], calls_[3], calls_[4],
                     calls_[5], calls_[kFree]);
}

std::string LogMalloc2Text::take(const Event& event, const events::EventLog& log) {
  const events::BlockChange done = blocks_.apply(event);
  if (done.ended) {
    live_ -= done.old.requested;
    usable_ -= done.old.usable;
  }
  if (done.begun || done.inherited) {
    live_ += done.fresh.requested;
    usable_ += done.fresh.usable;
  }
  if (event.kind == Kind::kMemory) resident_ = event.number / kPage;
  if (event.kind == Kind::kEnd) return counts("FINI");
  const std::string what = change(event, done);
  if (what.empty()) return {};
  return fmt::format("+ {} #0 {} 0 0 0 0 0\n{}", what, resident_,
                     frames_of(log.stack(event.stack), log));
}

std::string LogMalloc2Text::change(const Event& event, const events::BlockChange& done) {
  const uint64_t old = done.ended ? done.old.requested : 0;
  switch (event.kind) {
    case Kind::kFree:
    case Kind::kUnknownFree:
      ++calls_[kFree];
      if (event.kind == Kind::kUnknownFree && !done.ended) {
        return fmt::format("free -0 {} {} !f", pointer(event.address), sizes());
      }
      return fmt::format("free -{} {} {}", old, pointer(event.address), sizes());
    case Kind::kAllocation:
    case Kind::kRealloc:
      break;
    default:
      return {};
  }
  const std::string_view name = format::kCallNames[event.call];
  const auto counted = std::find(std::begin(kCounted), std::end(kCounted), name);
  ++calls_[counted != std::end(kCounted) ? counted - std::begin(kCounted) : 0];
  if (event.kind == Kind::kRealloc || name == "realloc") {
    return fmt::format("realloc {} {} {} ({} {}) {}", static_cast<int64_t>(event.requested - old),
                       pointer(event.old_address), pointer(event.address), old, event.requested,
                       sizes());
  }
  return fmt::format("{} {} {} {}{}", name, event.requested, pointer(event.address), sizes(),
                     name == "calloc" ? fmt::format(" (1 {})", event.requested) : "");
}

}  // namespace mtrace::text
