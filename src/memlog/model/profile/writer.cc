#include "model/profile/writer.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "format/escape.h"
#include "format/memlog.h"
#include "util/text.h"

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

void append_names(std::string& out, const Frame& frame) {
  if (!frame.function.empty() || !frame.source.empty()) {
    if (frame.function.empty()) {
      out += format::kUnknownFunction;
    } else {
      util::append_escaped(out, frame.function, format::kReservedNone);
    }
    out += '\t';
  }
  if (!frame.source.empty()) {
    util::append_escaped(out, frame.source, format::kReservedNone);
    out += '\t';
  }
}

// As frames have it.
std::string name(const Module& module) {
  std::string text = util::escaped(module.path, format::kReservedModule);
  if (module.generation > 1) text += fmt::format("#{}", module.generation);
  return text;
}

void append_hex(std::string& out, uint64_t number) {
  char text[16];
  const auto end = std::to_chars(std::begin(text), std::end(text), number, 16).ptr;
  out.append(text, end);
}

// About how long the text of the entries will be, rather more than less.
size_t length_of_entries(const Memlog& memlog, const std::vector<std::string>& names) {
  constexpr size_t kNumber = 24;  // with what stands around it
  size_t length = 0;
  for (const Entry& entry : memlog.entries) {
    length += kNumber + entry.kind.size();
    length += entry.fields.size() + 2;
    for (const Frame& frame : entry.frames.own()) {
      length += frame.function.size() + frame.source.size() + kNumber;
      if (frame.place == Place::kModule) length += names[frame.module].size();
    }
  }
  return length;
}

// `module`: the name of the frame's.
void append_place(std::string& out, const Frame& frame, const std::string& module) {
  switch (frame.place) {
    case Place::kInlined:
      out += format::kInlined;
      return;
    case Place::kAddress:
      out += "(0x";
      break;
    case Place::kModule:
      out += '(';
      out += module;
      out += "+0x";
      break;
  }
  append_hex(out, frame.offset);
  out += ')';
  if (frame.guessed) out += format::kGuessedMark;
}

struct TailsToWrite {
  std::vector<const Frames*> list;
  absl::flat_hash_set<uint64_t> seen;
};

// The frames up to a tail, which is added to `tails`; a rest that is no tail is part of them.
void append_frames(std::string& out, const Frames& frames, const std::vector<std::string>& names,
                   TailsToWrite& tails) {
  static const std::string none;
  const Frames* part = &frames;
  do {
    for (const Frame& frame : part->own()) {
      out += '\t';
      append_names(out, frame);
      append_place(out, frame, frame.place == Place::kModule ? names[frame.module] : none);
      out += '\n';
    }
    part = part->rest().get();
  } while (part != nullptr && part->tail() == 0);
  if (part == nullptr) return;
  fmt::format_to(std::back_inserter(out), "\t{}{:016x}\n", format::kTailMark, part->tail());
  if (tails.seen.insert(part->tail()).second) tails.list.push_back(part);
}

}  // namespace

std::string module_text(const Module& module) {
  std::string out = util::escaped(module.path, format::kReservedModule);
  if (module.generation > 1) out += fmt::format("#{}", module.generation);
  if (!module.build_id.empty()) {
    out += fmt::format(" build-id={}", util::hex_bytes(module.build_id));
  }
  out += fmt::format(" base=0x{:x}", module.base);
  if (module.python) out += fmt::format(" {}", format::kModulePython);
  return out;
}

std::string frame_names(const Frame& frame) {
  std::string out;
  append_names(out, frame);
  return out;
}

std::string place(const Memlog& memlog, const Frame& frame) {
  std::string out;
  append_place(out, frame, frame.place == Place::kModule ? name(memlog.modules[frame.module]) : "");
  return out;
}

std::string write(const Memlog& memlog) {
  std::vector<std::string> names;
  names.reserve(memlog.modules.size());
  for (const Module& module : memlog.modules) names.push_back(name(module));
  TailsToWrite tails;
  std::string out;
  // Growing by and by would need twice the room for a large one.
  out.reserve(length_of_entries(memlog, names));
  out += format::kMagicLine;
  out += '\n';
  write_meta(out, memlog.before);
  for (const Entry& entry : memlog.entries) {
    if (!entry.heap()) {
      out += '@';
      out += entry.kind;
      out += '\t';
    }
    fmt::format_to(std::back_inserter(out), "{:+}\t{}\n", entry.bytes, entry.fields);
    append_frames(out, entry.frames, names, tails);
    if (entry.cut) fmt::format_to(std::back_inserter(out), "\t{}\n", format::kCutLine);
  }
  // Those that a tail ends with are added meanwhile.
  for (size_t i = 0; i < tails.list.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "# {}: {:016x}\n", format::kKeyTail,
                   tails.list[i]->tail());
    append_frames(out, *tails.list[i], names, tails);
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
                      {format::kKeyNote, util::escaped(text, format::kReservedNone)});
}

}  // namespace mtrace::profile
