#include "view/text/frame_text.h"

#include <fmt/format.h>

#include "format/memlog.h"
#include "model/profile/writer.h"
#include "util/file.h"
#include "view/analyze/function_name.h"
#include "view/analyze/responsible.h"

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
  const std::string name = util::base_name(path);
  const char* mark = frame.guessed ? "?" : "";
  return with_offset ? fmt::format("({}+0x{:x}){}", name, frame.offset, mark)
                     : fmt::format("({}){}", name, mark);
}

constexpr char kCaller[] = " < ";

std::string line_name(const Table& table, const analyze::Row& row, const analyze::FoldedFrame& line,
                      const Style& style) {
  return line.missing() ? analyze::cut_text(row.depth)
                        : function_text(table, row.frames[line.frame], style);
}

// The functions of a stack; folded, without what the first one calls.
std::vector<std::string> names_of(const Table& table, const analyze::Row& row, const Style& style) {
  std::vector<std::string> out;
  if (style.responsible == nullptr) {
    for (const Frame& frame : row.frames) out.push_back(function_text(table, frame, style));
  } else {
    for (const analyze::FoldedFrame& line :
         style.responsible->folded(row.frames, table.modules(), row.depth)) {
      if (line.inside) continue;
      out.push_back(line_name(table, row, line, style));
    }
  }
  if (row.cut) out.emplace_back(format::kCutLine);
  return out;
}

}  // namespace

std::string function_text(const Table& table, const Frame& frame, const Style& style) {
  if (!frame.function.empty()) {
    return plain(style.full_names               ? frame.function.text()
                 : style.responsible != nullptr ? analyze::brief_name(frame.function)
                                                : analyze::short_name(frame.function));
  }
  return frame.source.empty() ? short_place(table, frame, true) : format::kUnknownFunction;
}

std::string run_text(const Table& table, const Frame& frame, size_t frames, const Style& style) {
  return fmt::format("{} ... {}", function_text(table, frame, style),
                     coloured(count_text(frames, "frame"), kFaint, style));
}

std::string frame_text(const Table& table, const Frame& frame, const Style& style) {
  std::string text = function_text(table, frame, style);
  if (!frame.source.empty()) {
    text += "  " + coloured(plain(frame.source) + (frame.guessed ? " ?" : ""), kFaint, style);
  } else if (!frame.function.empty()) {
    text += "  " + coloured(short_place(table, frame, false), kFaint, style);
  }
  return text;
}

std::vector<std::string> stack_lines(const Table& table, const analyze::Row& row,
                                     const Style& style) {
  std::vector<std::string> out;
  if (style.responsible == nullptr) {
    for (const Frame& frame : row.frames) out.push_back(frame_text(table, frame, style));
  } else {
    for (const analyze::FoldedFrame& line :
         style.responsible->folded(row.frames, table.modules(), row.depth)) {
      if (line.missing()) {
        out.push_back(analyze::cut_text(row.depth));
        continue;
      }
      const Frame& frame = row.frames[line.frame];
      const std::string text = line.frames == 1 ? frame_text(table, frame, style)
                                                : run_text(table, frame, line.frames, style);
      out.push_back(line.inside ? "  by " + text : text);
    }
  }
  if (row.cut) out.emplace_back(format::kCutLine);
  return out;
}

std::string stack_line(const Table& table, const analyze::Row& row, const Style& style) {
  std::string out;
  for (const std::string& name : names_of(table, row, style)) {
    out += (out.empty() ? "" : kCaller) + name;
  }
  return out;
}

std::vector<std::string> caller_names(const Table& table, const analyze::Row& row, size_t most,
                                      const Style& style) {
  std::vector<std::string> out;
  for (const analyze::FoldedFrame& line :
       style.responsible->folded(row.frames, table.modules(), row.depth)) {
    if (out.size() == most) break;
    if (line.inside) continue;
    if (!out.empty() && !style.responsible->tells(row.frames, line.frame, table.modules()))
      continue;
    std::string name = line_name(table, row, line, style);
    // It may call itself.
    if (out.empty() || out.back() != name) out.push_back(std::move(name));
  }
  if (out.empty()) out.emplace_back("...");
  return out;
}

std::string group_text(const analyze::Group& group, const Style& style) {
  const std::string source = plain(group.source);
  return plain(group.name) + (source.empty() ? "" : "  " + coloured(source, kFaint, style));
}

}  // namespace mtrace::text
