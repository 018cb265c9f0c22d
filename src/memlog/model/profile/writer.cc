#include "model/profile/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/escape.h"
#include "format/memlog.h"
#include "model/profile/line.h"
#include "model/profile/reader.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
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

void Builder::add_meta(Field line) {
  after_ |= !memlog_.entries.empty() || section_of(line.key) == Section::kAfter;
  (after_ ? memlog_.after : memlog_.before).push_back(std::move(line));
}

void Builder::describe_modules() {
  for (ModuleIndex i = 0; i < modules_.size(); ++i) {
    if (modules_[i].described) add_meta({format::kKeyModule, module_text(modules_[i])});
  }
}

void Builder::expect(const Rests& rests) {
  for (size_t i = 0; i < rests.size(); ++i) {
    const uint64_t next = i + 1 < rests.size() ? rests[i + 1] : 0;
    const auto [at, fresh] = rests_.try_emplace(rests[i], Rest{next});
    at->second.shared |= !fresh && (next == 0 || at->second.next != next);
  }
}

// Returns the number of the longest rest that others have, too, of the first `most`; 0: none.
size_t Builder::shared_rest(const Rests& rests, size_t most) const {
  size_t rest = std::min(most, rests.size());
  while (rest > 0 && !rests_.at(rests[rest - 1]).shared) --rest;
  return rest;
}

// Takes the longest shared rest of the first `most` from the end of `frames`.
Frames::Rest Builder::take_rest(Frames::List& frames, const Rests& rests, size_t most) {
  const size_t rest = shared_rest(rests, most);
  if (rest == 0) return nullptr;
  const auto begin = frames.end() - static_cast<ptrdiff_t>(rest * StackIds::kStep);
  Frames::List own(begin, frames.end());
  frames.erase(begin, frames.end());
  Rest& known = rests_.at(rests[rest - 1]);
  if (known.frames == nullptr) {
    const Frames::Rest further = take_rest(own, rests, rest - 1);
    Frames tail(std::move(own), further);
    tail.set_tail(rests[rest - 1]);
    known.frames = std::make_shared<const Frames>(std::move(tail));
  }
  return known.frames;
}

void Builder::add(Entry entry, Frames::List frames, const Rests& rests,
                  const std::string& further) {
  entry.tells_live = true;
  entry.further = !further.empty();
  entry.fields = fields_of(entry, further);
  size_t least = format::kUntailedFrames;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].guessed) least = std::max(least, i + 1);
    if (frames[i].function.text() == format::kUnknownFunction) frames[i].function = {};
  }
  const size_t most = frames.size() > least ? (frames.size() - least) / StackIds::kStep : 0;
  Frames::Rest rest = take_rest(frames, rests, most);
  entry.frames = Frames(std::move(frames), std::move(rest));
  memlog_.entries.push_back(std::move(entry));
}

Memlog Builder::finish() {
  try {
    std::vector<std::string> seen;
    EntryChecks checks;
    const auto read = [&](const std::vector<Field>& lines) {
      for (const Field& line : lines) {
        if (line.key != format::kKeyModule) {
          read_header_line(line, memlog_.header, modules_, seen);
        }
      }
    };
    read(memlog_.before);
    for (Entry& entry : memlog_.entries) {
      check_numbers(entry);
      checks.add(entry, memlog_.header);
    }
    read(memlog_.after);
    checks.check_delta(memlog_.header);
    checks.check_live(memlog_.header);
    checks.conclude(memlog_.header);
  } catch (const LineError& error) {
    throw util::FormatError(memlog_.name, 1, error.what);
  }
  memlog_.modules = modules_.take();
  return std::move(memlog_);
}

namespace {

// Renames a file, never over another. Returns 0 or an errno.
int move_file(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Not every file system can.
  if (::link(from.c_str(), to.c_str()) != 0 || ::unlink(from.c_str()) != 0) return errno;
  return 0;
}

}  // namespace

bool is_compressed_name(std::string_view path) { return path.ends_with(format::kCompressedSuffix); }

void write_report(const std::string& path, std::string_view text, bool compressed) {
  const util::HeldSignals held;  // where every file has a name, it has one while it is written
  if (!compressed) return util::replace_file(path, text);
  util::Replacement file(path);
  util::compress(text, [&](std::string_view piece) { file.write(piece); });
  file.finish();
}

std::string compress_report(const std::string& path, std::string_view text) {
  if (is_compressed_name(path)) {
    write_report(path, text, true);
    return path;
  }
  struct stat state = {};
  if (::lstat(path.c_str(), &state) != 0) throw util::FileError("cannot read " + path, errno);
  if (!S_ISREG(state.st_mode)) {
    throw std::runtime_error("cannot compress " + path + ": it is not a regular file");
  }
  const std::string compressed = path + format::kCompressedSuffix;
  int error_number = EEXIST;
  if (::lstat(compressed.c_str(), &state) != 0) {
    const util::HeldSignals held;  // what is compressed has the name that says so
    write_report(path, text, true);
    error_number = move_file(path, compressed);
    if (error_number == 0) return compressed;
  }
  write_report(path, text, false);
  if (error_number != EEXIST) throw util::FileError("cannot rename " + path, error_number);
  return path;
}

void replace_report(const util::Text& before, std::string_view after, bool compress) {
  const std::string& path = before.path;
  if (compress && !is_compressed_name(path)) {
    if (compress_report(path, std::string(after)) != path) return;
    throw std::runtime_error(fmt::format("{0} is not compressed: there is a {0}{1} already", path,
                                         format::kCompressedSuffix));
  }
  if (after != before.text || (compress && !before.compressed)) {
    write_report(path, after, compress || before.compressed);
  }
}

}  // namespace mtrace::profile
