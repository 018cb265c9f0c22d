#include "view/text/event_names.h"

#include <fmt/format.h>

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

}  // namespace mtrace::text
