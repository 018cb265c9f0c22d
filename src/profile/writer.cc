#include "profile/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "format/escape.h"
#include "format/memlog.h"
#include "profile/text.h"

namespace mtrace::profile {
namespace {

void write_meta(std::string& out, const std::vector<Field>& lines) {
  for (const Field& line : lines) {
    fmt::format_to(std::back_inserter(out), "# {}: {}\n", line.key, line.value);
  }
}

// Where a line with `key` belongs: behind its like, else before the first of `later`.
std::vector<Field>::iterator position(std::vector<Field>& lines, const char* key,
                                      std::initializer_list<const char*> later) {
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [&](const Field& line) { return line.key == key; });
  if (last != lines.rend()) return last.base();
  return std::find_if(lines.begin(), lines.end(), [&](const Field& line) {
    return std::any_of(later.begin(), later.end(), [&](const char* k) { return line.key == k; });
  });
}

}  // namespace

std::string frame_names(const Frame& frame) {
  std::string out;
  if (!frame.function.empty() || !frame.source.empty()) {
    out += frame.function.empty() ? format::kUnknownFunction
                                  : escaped(frame.function, format::kReservedNone);
    out += '\t';
  }
  if (!frame.source.empty()) out += escaped(frame.source, format::kReservedNone) + '\t';
  return out;
}

std::string place(const Memlog& memlog, const Frame& frame) {
  switch (frame.place) {
    case Place::kInlined:
      return format::kInlined;
    case Place::kAddress:
      return fmt::format("(0x{:x})", frame.offset);
    case Place::kModule:
      break;
  }
  const Module& module = memlog.modules[frame.module];
  const std::string path = escaped(module.path, format::kReservedModule);
  if (module.generation > 1) {
    return fmt::format("({}#{}+0x{:x})", path, module.generation, frame.offset);
  }
  return fmt::format("({}+0x{:x})", path, frame.offset);
}

std::string write(const Memlog& memlog) {
  std::string out = std::string(format::kMagicLine) + '\n';
  write_meta(out, memlog.before);
  for (const Entry& entry : memlog.entries) {
    if (!entry.heap()) out += '@' + entry.kind + '\t';
    fmt::format_to(std::back_inserter(out), "{:+}", entry.bytes);
    for (const Field& field : entry.fields) {
      fmt::format_to(std::back_inserter(out), "\t{}={}", field.key, field.value);
    }
    out += '\n';
    for (const Frame& frame : entry.frames) {
      out += '\t' + frame_names(frame) + place(memlog, frame) + '\n';
    }
    if (entry.cut) fmt::format_to(std::back_inserter(out), "\t{}\n", format::kCutLine);
  }
  write_meta(out, memlog.after);
  out += format::kEndLine;
  out += '\n';
  return out;
}

const char* resolved_text(Resolved resolved) {
  switch (resolved) {
    case Resolved::kNo:
      return "no";
    case Resolved::kPartly:
      return "partly";
    case Resolved::kYes:
      return "yes";
  }
  return "no";
}

void set_resolved(Memlog& memlog, Resolved resolved) {
  memlog.header.resolved = resolved;
  for (auto* lines : {&memlog.before, &memlog.after}) {
    for (Field& line : *lines) {
      if (line.key == format::kKeyResolved) {
        line.value = resolved_text(resolved);
        return;
      }
    }
  }
  memlog.after.insert(position(memlog.after, format::kKeyResolved, {format::kKeyLibrary}),
                      {format::kKeyResolved, resolved_text(resolved)});
}

void add_note(Memlog& memlog, const std::string& text) {
  std::vector<std::string>& notes = memlog.header.notes;
  if (std::find(notes.begin(), notes.end(), text) != notes.end()) return;
  notes.push_back(text);
  memlog.after.insert(position(memlog.after, format::kKeyNote,
                               {format::kKeyKind, format::kKeyModule, format::kKeyHost,
                                format::kKeyCalls, format::kKeyFailed, format::kKeyUnknownFrees,
                                format::kKeyMisuse, format::kKeyReports, format::kKeyRss,
                                format::kKeyRssMax, format::kKeyVirtual, format::kKeyResolution,
                                format::kKeyUptime, format::kKeyResolved, format::kKeyLibrary}),
                      {format::kKeyNote, escaped(text, format::kReservedNone)});
}

}  // namespace mtrace::profile
