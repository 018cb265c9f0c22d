#include "text/frame_text.h"

#include <fmt/format.h>

#include "analyze/short_name.h"
#include "format/memlog.h"
#include "profile/path.h"
#include "profile/writer.h"

namespace mtrace::text {
namespace {

using analyze::Table;
using profile::Frame;
using profile::Place;

// The place with the module's name alone: its directory says nothing while reading.
std::string short_place(const Table& table, const Frame& frame, bool with_offset) {
  if (frame.place != Place::kModule) return profile::place(table.names(), frame);
  const profile::Module& module = table.modules()[frame.module];
  const std::string path = plain(module.path);
  const std::string name = profile::base_name(path);
  return with_offset ? fmt::format("({}+0x{:x})", name, frame.offset) : fmt::format("({})", name);
}

}  // namespace

std::string function_text(const Table& table, const Frame& frame, const Style& style) {
  if (!frame.function.empty()) {
    return plain(style.full_names ? frame.function : analyze::short_name(frame.function));
  }
  return frame.source.empty() ? short_place(table, frame, true) : format::kUnknownFunction;
}

std::string frame_text(const Table& table, const Frame& frame, const Style& style) {
  std::string text = function_text(table, frame, style);
  if (!frame.source.empty()) {
    text += "  " + coloured(plain(frame.source), kFaint, style);
  } else if (!frame.function.empty()) {
    text += "  " + coloured(short_place(table, frame, false), kFaint, style);
  }
  return text;
}

}  // namespace mtrace::text
