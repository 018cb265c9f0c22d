#include "view/text/log_malloc2_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "format/calls.h"
#include "util/text.h"

namespace mtrace::text {
namespace {

using events::Event;
using events::Kind;

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
