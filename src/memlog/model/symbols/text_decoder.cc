#include "model/symbols/text_decoder.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "format/memlog.h"
#include "model/profile/header.h"
#include "model/profile/writer.h"
#include "model/symbols/symbol_table.h"
#include "util/text.h"

namespace mtrace::symbols {
namespace {

using profile::Frame;
using profile::Place;
using Form = TextPlace::Form;

// glibc calls the program what it was started as, which may be relative. Empty: no such file here.
std::string absolute_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  std::string result = real == nullptr ? "" : real;
  std::free(real);
  return result;
}

// Load addresses are multiples of this: it tells functions of one name apart.
constexpr uint64_t kPage = 4096;

std::string build_id_of(const profile::Module* module) {
  return module == nullptr ? "" : module->build_id;
}

// The lines of a frame: those inlined into it, and itself.
void append_frame(std::string& out, std::string_view line, const std::vector<Frame>& names) {
  const std::string_view place = util::trimmed(line);
  const size_t begin = static_cast<size_t>(place.data() - line.data());
  const std::string_view indent = line.substr(0, begin);
  const std::string_view end = line.substr(begin + place.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    if (i != 0) out += '\n';
    out += indent;
    out += profile::frame_names(names[i]);
    out += last ? place : format::kInlined;
    out += end;
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

void TextDecoder::describe(size_t line, std::string_view text) {
  constexpr std::string_view kStart = "# module: ";
  if (!text.starts_with(kStart)) return;
  try {
    profile::Header header;
    profile::ModuleTable modules;
    std::vector<std::string> seen;
    const profile::Field field = profile::read_meta(text);
    profile::read_header_line(field, header, modules, seen);
    profile::Module module = modules.take().front();
    if (text.find(" base=") != std::string_view::npos) map_.add_module(line, module);
    std::vector<Described>& known = described_[{module.path, module.generation}];
    known.push_back({line, std::move(module)});
  } catch (const profile::LineError&) {
    // Somebody else's line.
  }
}

const TextDecoder::Described* TextDecoder::description_of(const TextPlace& place,
                                                          size_t line) const {
  const auto known = described_.find({place.module, place.generation});
  if (known == described_.end()) return nullptr;
  const std::vector<Described>& all = known->second;
  const auto next = std::upper_bound(
      all.begin(), all.end(), line,
      [](size_t number, const Described& described) { return number < described.line; });
  return next == all.end() ? &all.back() : &*next;
}

void TextDecoder::find_module(Found& item) {
  TextPlace& place = item.place;
  const size_t line = item.line + 1;
  const bool relative =
      !place.module.empty() && !place.module.starts_with('/') && !place.module.starts_with('[');
  if (relative) {
    const auto [known, added] = full_paths_.try_emplace(place.module);
    if (added) {
      known->second = map_.full_path(place.module);
      if (known->second.empty()) known->second = absolute_path(place.module);
      if (known->second.empty()) known->second = place.module;
    }
    place.module = known->second;
  }
  item.described = description_of(place, line);
  if (place.address == 0 || item.described != nullptr) return;
  const auto at = map_.find(place.address, line);
  if (!at) return;
  place.module = at->module->path;
  place.generation = at->module->generation;
  item.described = description_of(place, line);
  item.offset = at->offset - 1;
}

void TextDecoder::find_offsets(std::vector<Found>& found) {
  // Symbols of one module are looked up together.
  std::map<std::pair<std::string, std::string>, std::vector<Found*>> by_symbol;
  for (Found& item : found) {
    const TextPlace& place = item.place;
    if (item.offset || place.form == Form::kAddress) continue;
    if (place.form != Form::kBacktrace) {
      item.offset = place.offset;
    } else if (item.described != nullptr) {
      item.offset = place.address - item.described->module.base - 1;
    } else if (place.symbol.empty()) {
      item.offset = place.offset - 1;
    } else if (place.module.starts_with('/')) {
      by_symbol[{place.module, ""}].push_back(&item);
    }
  }
  for (const auto& [module, items] : by_symbol) {
    std::vector<std::string> names;
    for (const Found* item : items) names.push_back(item->place.symbol);
    const auto addresses = symbol_addresses(where_, module.first, module.second, names);
    for (size_t i = 0; i < items.size(); ++i) {
      const TextPlace& place = items[i]->place;
      for (const uint64_t address : addresses[i]) {
        if ((address + place.offset) % kPage != place.address % kPage) continue;
        items[i]->offset = address + place.offset - 1;
        break;
      }
    }
  }
}

std::vector<TextDecoder::Names> TextDecoder::find_names(std::vector<Found>& found) {
  profile::Memlog memlog;
  memlog.entries.emplace_back();
  std::vector<Frame> frames;
  std::map<std::tuple<std::string, uint32_t, std::string>, profile::ModuleIndex> modules;
  std::map<std::pair<profile::ModuleIndex, uint64_t>, size_t> places;
  std::vector<size_t> place_of(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Found& item = found[i];
    if (!item.offset) continue;
    const profile::Module* described =
        item.described == nullptr ? nullptr : &item.described->module;
    const auto [module, is_new] =
        modules.try_emplace({item.place.module, item.place.generation, build_id_of(described)},
                            static_cast<profile::ModuleIndex>(memlog.modules.size()));
    if (is_new) {
      memlog.modules.emplace_back();
      if (described != nullptr) memlog.modules.back() = *described;
      memlog.modules.back().path = item.place.module;
      memlog.modules.back().generation = item.place.generation;
    }
    const auto [place, added] = places.try_emplace({module->second, *item.offset}, frames.size());
    if (added) frames.push_back({Place::kModule, module->second, *item.offset, "", ""});
    place_of[i] = place->second;
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
    if (!found[i].offset) continue;
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
  // Those of the text before hold where this one has none.
  for (auto& [path, descriptions] : described_) {
    for (Described& described : descriptions) described.line = 0;
  }
  map_.begin_text();
  full_paths_.clear();
  std::vector<Found> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    describe(i + 1, util::trimmed(lines[i]));
    map_.add_mapping(i + 1, lines[i]);
    for (TextPlace& place : find_places(lines[i])) {
      map_.end_description();
      found.push_back({i, std::move(place), nullptr, std::nullopt, nullptr});
    }
  }
  for (Found& item : found) find_module(item);
  find_offsets(found);
  const std::vector<Names> named = find_names(found);

  std::string out;
  out.reserve(text.size() + text.size() / 2);
  auto next = found.begin();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out += '\n';
    const bool is_frame = next != found.end() && next->place.form == Form::kFrame;
    std::vector<const Names*> names;
    bool any = false;
    for (; next != found.end() && next->line == i; ++next) {
      names.push_back(next->names);
      any |= next->names != nullptr;
    }
    if (!any) {
      out += lines[i];
    } else if (is_frame) {
      append_frame(out, lines[i], *names[0]);
    } else {
      append_text(out, lines[i], names);
    }
  }
  return out;
}

}  // namespace mtrace::symbols
