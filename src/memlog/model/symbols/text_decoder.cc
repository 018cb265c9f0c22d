#include "model/symbols/text_decoder.h"

#include <re2/re2.h>

#include "format/memlog.h"
#include "model/profile/line.h"
#include "model/profile/writer.h"
#include "model/symbols/elf_file.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::symbols {
namespace {

using profile::Frame;
using profile::Place;
using re2::RE2;

// Paths are absolute, or relative with a directory: "(a+0x1)" may be arithmetic.
#define TEXT_PATH R"(((?:/|\[|\.{1,2}/))"
#define TEXT_HEX "0x([1-9a-f][0-9a-f]{0,15})"

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// "PATH[#G]" as in a memlog. Returns false for what no memlog has.
bool read_module(const std::string& text, TextPlace& place) {
  try {
    profile::ModuleTable table;
    const profile::Module& module = table[table.index(text)];
    place.module = module.path;
    place.generation = module.generation;
    return true;
  } catch (const profile::LineError&) {
    return false;
  }
}

std::optional<TextPlace> frame_alone(std::string_view text) {
  static const RE2 kFrame(R"(\()" TEXT_PATH R"(.*)\+)" TEXT_HEX R"(\))");
  TextPlace place = {.alone = true};
  std::string module;
  uint64_t offset = 0;
  if (!RE2::FullMatch(piece(text), kFrame, &module, RE2::Hex(&offset)) ||
      !read_module(module, place)) {
    return std::nullopt;
  }
  place.offset = offset;
  return place;
}

// glibc leaves out the offset, or with it the brackets, in a program that is loaded where it was
// linked to.
std::optional<TextPlace> glibc_place(std::string_view text) {
  static const RE2 kBacktrace(R"((?:^|\s))" TEXT_PATH R"(.*?[^\s\]])(?:\((?:\+)" TEXT_HEX
                              R"()?\) ?)?\[)" TEXT_HEX R"(\]$)");
  TextPlace place;
  std::string digits;
  if (!RE2::PartialMatch(piece(text), kBacktrace, &place.module, &digits,
                         RE2::Hex(&place.address))) {
    return std::nullopt;
  }
  place.offset = util::read_hex(digits).value_or(place.address) - 1;
  return place;
}

std::vector<TextPlace> embedded_places(std::string_view text) {
  static const RE2 kInText(R"(\()" TEXT_PATH R"([^()\t]*)\+)" TEXT_HEX R"(\))");
  std::vector<TextPlace> found;
  re2::StringPiece rest = piece(text);
  std::string module;
  uint64_t offset = 0;
  while (RE2::FindAndConsume(&rest, kInText, &module, RE2::Hex(&offset))) {
    TextPlace place;
    if (!read_module(module, place)) continue;
    place.offset = offset;
    found.push_back(std::move(place));
  }
  return found;
}

std::vector<TextPlace> raw_addresses(std::string_view text) {
  // Programs that print with %016lx put zeros in front.
  static const RE2 kAddress(R"((^|[\s,:\[])0x0*([1-9a-f][0-9a-f]{0,15})\b)");
  std::vector<TextPlace> found;
  re2::StringPiece rest = piece(text);
  std::string before;
  uint64_t address = 0;
  while (RE2::FindAndConsume(&rest, kAddress, &before, RE2::Hex(&address))) {
    const char behind = rest.empty() ? ' ' : rest[0];
    const std::string_view allowed = before == "[" ? "]" : " \t\r,:;";
    if (allowed.find(behind) == allowed.npos) continue;
    found.emplace_back().address = address;
  }
  return found;
}

// The lines of a frame: those inlined into it, and itself.
void append_frame(std::string& out, std::string_view line, const std::vector<Frame>& names) {
  const std::string_view place = util::trimmed(line);
  const size_t begin = static_cast<size_t>(place.data() - line.data());
  for (const Frame& frame : names) {
    const bool last = &frame == &names.back();
    out += line.substr(0, begin);
    out += profile::frame_names(frame);
    out += last ? place : format::kInlined;
    out += line.substr(begin + place.size());
    if (!last) out += '\n';
  }
}

// The line, and behind it "inner  a.c:1 < outer  a.c:7" of each place.
void append_text(std::string& out, std::string_view line,
                 const std::vector<const std::vector<Frame>*>& places) {
  const size_t end = line.ends_with('\r') ? line.size() - 1 : line.size();
  out += line.substr(0, end);
  const char* between = "  ";
  for (const std::vector<Frame>* names : places) {
    if (names == nullptr) {
      out += between;
      out += format::kUnknownFunction;
      between = "; ";
      continue;
    }
    for (const Frame& frame : *names) {
      out += between;
      out += frame.function.empty() ? format::kUnknownFunction : util::escaped(frame.function, "");
      if (!frame.source.empty()) out += "  " + util::escaped(frame.source, "");
      between = " < ";
    }
    between = "; ";
  }
  out += line.substr(end);
}

}  // namespace

std::vector<TextPlace> find_places(std::string_view line) {
  // Every form has it, and few lines of a log do.
  if (line.find("0x") == line.npos) return {};
  const std::string_view text = util::trimmed(line);
  const bool named = line.starts_with('\t') && text.find('\t') != text.npos;
  if (named) return {};
  if (auto place = frame_alone(text)) return {std::move(*place)};
  if (auto place = glibc_place(text)) return {std::move(*place)};
  auto places = embedded_places(text);
  return places.empty() ? raw_addresses(text) : places;
}

// A line of /proc/PID/maps, which may stand behind a log's prefix, or a `# module:` line.
std::optional<TextDecoder::Part> TextDecoder::read_part(std::string_view line) {
  // begin-end access offset device inode path
  static const RE2 kMapping(
      R"((?:^|\s)([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-]x[ps] ([0-9a-f]{1,16}) )"
      R"([0-9a-f]+:[0-9a-f]+ [0-9]+ +(/.*?)( \(deleted\))?\s*$)");
  Part part;
  const std::string_view text = util::trimmed(line);
  if (text.starts_with("# module: ")) {
    try {
      profile::Header header;
      profile::ModuleTable modules;
      std::vector<std::string> seen;
      profile::read_header_line(profile::read_meta(text), header, modules, seen);
      part.module = modules.take().front();
      part.described = true;
      part.has_base = text.find(" base=") != text.npos;
      return part;
    } catch (const profile::LineError&) {
      return std::nullopt;  // somebody else's line
    }
  }
  const bool may_be = line.find("-x") != line.npos || line.find("wx") != line.npos;
  if (!may_be || !RE2::PartialMatch(piece(line), kMapping, RE2::Hex(&part.mapping.begin),
                                    RE2::Hex(&part.mapping.end), RE2::Hex(&part.map_offset),
                                    &part.module.path)) {
    return std::nullopt;
  }
  return part;
}

// Completes a place of the process that `description` describes. Returns false for another's.
bool TextDecoder::locate(Description& description, Found& item) {
  TextPlace& place = item.place;
  const auto within = [&](const Extent& extent) {
    return extent.begin <= place.address && place.address < extent.end;
  };
  bool located = false;
  for (Part& part : description.parts) {
    const bool told =
        part.described ? part.has_base && place.address > part.module.base : within(part.mapping);
    if (place.address == 0 || !told) continue;
    if (!std::exchange(part.read, true)) {
      const util::Descriptor file(ElfFile::open(where_.sysroot + part.module.path).release());
      auto loaded = part.described ? loaded_file_at(file.get(), part.module.base)
                                   : loaded_file(file.get(), part.mapping.begin, part.map_offset);
      if (loaded) {
        part.module.base = loaded->bias;
        part.code = std::move(loaded->code);
      }
    }
    // Only code counts.
    if (!std::any_of(part.code.begin(), part.code.end(), within)) continue;
    place.module = part.module.path;
    place.generation = part.module.generation;
    place.offset = place.address - part.module.base - 1;
    located = true;
    break;
  }
  for (const Part& part : description.parts) {
    if (!part.described || part.module.path != place.module ||
        part.module.generation != place.generation) {
      continue;
    }
    item.described = &part.module;
    return true;
  }
  return located;
}

void TextDecoder::find_module(Found& item) {
  std::string& module = item.place.module;
  if (module.starts_with('.')) {  // glibc calls the program what it was started as
    std::error_code missing;
    const std::string full = std::filesystem::canonical(module, missing);
    if (!missing) module = full;
  }
  const auto next = std::upper_bound(
      descriptions_.begin(), descriptions_.end(), item.line,
      [](size_t line, const Description& description) { return line < description.line; });
  if (next != descriptions_.end() && locate(*next, item)) return;
  if (next != descriptions_.begin()) locate(*std::prev(next), item);
}

// Looks up the names that the pointers in `found` refer to.
std::vector<TextDecoder::Names> TextDecoder::find_names(std::vector<Found>& found) {
  profile::Memlog memlog;
  memlog.entries.emplace_back();
  std::vector<Frame> frames;
  std::map<std::tuple<std::string, uint32_t, std::string>, profile::ModuleIndex> modules;
  std::map<std::pair<profile::ModuleIndex, uint64_t>, size_t> places;
  std::vector<size_t> place_of(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& [line, place, described, names] = found[i];
    if (!place.offset) continue;
    const auto [module, is_new] = modules.try_emplace(
        {place.module, place.generation, described == nullptr ? "" : described->build_id},
        static_cast<profile::ModuleIndex>(memlog.modules.size()));
    if (is_new) {
      profile::Module& added = memlog.modules.emplace_back();
      if (described != nullptr) added = *described;
      added.path = place.module;
      added.generation = place.generation;
    }
    const auto [known, added] = places.try_emplace({module->second, *place.offset}, frames.size());
    if (added) frames.push_back({Place::kModule, module->second, *place.offset, "", ""});
    place_of[i] = known->second;
  }
  memlog.entries[0].frames = std::move(frames);
  resolver_.resolve(memlog);
  // Each frame is now one or, with those inlined into it, several.
  std::vector<Names> named(1);
  for (const Frame& frame : memlog.entries[0].frames) {
    named.back().push_back(frame);
    if (frame.place != Place::kInlined) named.emplace_back();
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].place.offset) continue;
    const Names& names = named[place_of[i]];
    const Frame& own = names.back();
    if (!own.function.empty() || !own.source.empty()) found[i].names = &names;
  }
  for (const std::string& note : memlog.header.notes) {
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  }
  return named;
}

std::string TextDecoder::decode(std::string_view text) {
  const std::vector<std::string_view> lines = util::split(text, '\n');
  // Of the text before, the last description holds where this one has none.
  if (descriptions_.size() > 1) descriptions_.erase(descriptions_.begin(), descriptions_.end() - 1);
  if (!descriptions_.empty()) descriptions_[0].line = 0;
  bool open = false;  // the last description may go on
  std::vector<Found> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (auto part = read_part(lines[i])) {
      if (!open) descriptions_.emplace_back();
      open = true;
      descriptions_.back().line = i + 1;
      descriptions_.back().parts.push_back(std::move(*part));
    }
    for (TextPlace& place : find_places(lines[i])) {
      open = false;
      found.push_back({i + 1, std::move(place)});
    }
  }
  for (Found& item : found) find_module(item);
  const std::vector<Names> named = find_names(found);

  std::string out;
  out.reserve(text.size() + text.size() / 2);
  auto next = found.begin();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out += '\n';
    const bool alone = next != found.end() && next->place.alone;
    std::vector<const Names*> names;
    bool any = false;
    for (; next != found.end() && next->line == i + 1; ++next) {
      names.push_back(next->names);
      any |= next->names != nullptr;
    }
    if (!any) {
      out += lines[i];
    } else if (alone) {
      append_frame(out, lines[i], *names[0]);
    } else {
      append_text(out, lines[i], names);
    }
  }
  return out;
}

}  // namespace mtrace::symbols
