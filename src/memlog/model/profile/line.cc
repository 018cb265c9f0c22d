#include "model/profile/line.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/escape.h"
#include "format/memlog.h"
#include "model/profile/model.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

constexpr uint32_t kMaxGeneration = 1u << 30;
constexpr uint64_t kMaxLine = UINT32_MAX;

// The fields that Entry has a member for: those with a sign or an id, then plain numbers.
enum KnownField : size_t { kBlocks, kLive, kStack, kCall, kFirstNumber };
constexpr std::string_view kKnownFields[] = {
    format::kFieldBlocks,      format::kFieldLive,        format::kFieldStack,
    format::kFieldCall,        format::kFieldAllocations, format::kFieldAllocated,
    format::kFieldFrees,       format::kFieldFreed,       format::kFieldTemporary,
    format::kFieldShortLived,  format::kFieldLifetimeMin, format::kFieldLifetimeMean,
    format::kFieldLifetimeMax, format::kFieldAge,         format::kFieldSlack,
    format::kFieldPeak};

size_t known_field(std::string_view key) {
  return static_cast<size_t>(std::find(std::begin(kKnownFields), std::end(kKnownFields), key) -
                             std::begin(kKnownFields));
}

// `Any`: Entry or const Entry.
template <typename Any>
auto& number_field(Any& entry, size_t field) {
  auto& activity = entry.activity;
  decltype(&entry.age) const members[] = {&activity.allocations,
                                          &activity.allocated_bytes,
                                          &activity.frees,
                                          &activity.freed_bytes,
                                          &activity.temporary,
                                          &activity.short_lived,
                                          &activity.lifetime.least,
                                          &activity.lifetime.mean,
                                          &activity.lifetime.most,
                                          &entry.age,
                                          &entry.slack,
                                          &entry.peak};
  static_assert(std::size(members) + kFirstNumber == std::size(kKnownFields));
  return *members[field - kFirstNumber];
}

void set_field(Entry& entry, size_t field, std::string_view text) {
  const auto take = [&](auto& member, const auto& value, const char* expected) {
    if (!value) {
      throw LineError{
          fmt::format("{}={} is not {}", kKnownFields[field], message_quoted(text), expected)};
    }
    member = *value;
  };
  switch (field) {
    case kBlocks:
      return take(entry.blocks, util::read_signed(text), "a signed number of 64 bits");
    case kLive:
      return take(entry.live, util::read_unsigned(text, INT64_MAX), "a number of bytes");
    case kStack:
      return take(entry.stack, util::read_stack_id(text), "16 hex digits");
    case kCall:
      entry.call = Name(unescape_or_throw(text));
      return;
    default:
      return take(number_field(entry, field), util::read_unsigned(text, INT64_MAX), "a number");
  }
}

// What an entry has been told so far.
class Fields {
 public:
  explicit Fields(Entry& entry) : entry_(entry) {}

  void add(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !util::is_key(text.substr(0, equals))) {
      throw LineError{fmt::format("{} is not key=value", message_quoted(text))};
    }
    const std::string_view key = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1);
    if (value.find('\\') != std::string_view::npos) unescape_or_throw(value);
    const size_t field = known_field(key);
    const bool known = field < std::size(kKnownFields);
    if (known ? has(field) : std::find(others_.begin(), others_.end(), key) != others_.end()) {
      throw LineError{fmt::format("{}= stands there twice", key)};
    }
    if (known) {
      set_field(entry_, field, value);
      seen_ |= 1u << field;
    } else {
      others_.push_back(key);
    }
  }

  void check() const {
    if (entry_.heap()) {
      for (const size_t field : {kBlocks, kLive, kStack}) {
        if (!has(field)) throw LineError{fmt::format("the entry has no {}=", kKnownFields[field])};
      }
    }
    if (seen_ == 0 && others_.empty()) throw LineError{"the entry has no field"};
    entry_.tells_live = has(kLive);
    entry_.further = !others_.empty();
  }

 private:
  bool has(size_t field) const { return (seen_ >> field & 1) != 0; }

  Entry& entry_;
  uint32_t seen_ = 0;
  std::vector<std::string_view> others_;
};

// Most names have nothing to unescape, and are not copied.
Name read_name(std::string_view text) {
  return text.find('\\') == std::string_view::npos ? Name(text) : Name(unescape_or_throw(text));
}

Name read_source(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto line = colon == std::string_view::npos || colon == 0
                        ? std::nullopt
                        : util::read_unsigned(text.substr(colon + 1), kMaxLine);
  if (!line || *line == 0) {
    throw LineError{fmt::format("{} is not FILE:LINE", message_quoted(text))};
  }
  return read_name(text);
}

void read_place(std::string_view text, ModuleTable& modules, Frame& frame) {
  const auto bad = [&] {
    throw LineError{
        fmt::format("{} is not (MODULE+0xHEX), (0xHEX) or (inlined)", message_quoted(text))};
  };
  if (text == format::kInlined) {
    frame.place = Place::kInlined;
    return;
  }
  frame.guessed = text.ends_with(format::kGuessedMark);
  if (frame.guessed) text.remove_suffix(1);
  if (text.size() < 5 || text.front() != '(' || text.back() != ')') bad();
  const std::string_view inner = text.substr(1, text.size() - 2);
  const size_t plus = inner.rfind("+0x");
  const bool address = plus == std::string_view::npos;
  if (address ? !inner.starts_with("0x") : plus == 0) bad();
  const auto offset = util::read_hex(inner.substr(address ? 2 : plus + 3));
  if (!offset) bad();
  frame.offset = *offset;
  frame.place = address ? Place::kAddress : Place::kModule;
  if (!address) frame.module = modules.index(inner.substr(0, plus));
}

}  // namespace

bool knows_field(std::string_view key) { return known_field(key) < std::size(kKnownFields); }

std::string fields_of(const Entry& entry, const std::string& further) {
  std::string out;
  const auto add = [&](std::string_view key, uint64_t number) {
    fmt::format_to(std::back_inserter(out), "\t{}={}", key, number);
  };
  fmt::format_to(std::back_inserter(out), "{}={:+}", format::kFieldBlocks, entry.blocks);
  if (entry.tells_live) add(format::kFieldLive, entry.live);
  for (size_t field = kFirstNumber; field < std::size(kKnownFields); ++field) {
    const uint64_t number = number_field(entry, field);
    if (number != 0) add(kKnownFields[field], number);
  }
  out += further;
  if (!entry.call.empty()) {
    fmt::format_to(std::back_inserter(out), "\t{}={}", format::kFieldCall,
                   util::escaped(entry.call.text(), ""));
  }
  if (entry.stack != 0) {
    fmt::format_to(std::back_inserter(out), "\t{}={:016x}", format::kFieldStack, entry.stack);
  }
  return out;
}

void check_numbers(const Entry& entry) {
  for (size_t field = kFirstNumber; field < std::size(kKnownFields); ++field) {
    const uint64_t number = number_field(entry, field);
    if (number > INT64_MAX) {
      throw LineError{fmt::format("{}={} is too large", kKnownFields[field], number)};
    }
  }
  if (entry.live > INT64_MAX) throw LineError{fmt::format("live={} is too large", entry.live)};
}

std::string message_quoted(std::string_view text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return '"' + util::escaped(text, "\"") + '"';
  return '"' + util::escaped(text.substr(0, kLongest), "\"") + "...\"";
}

std::string unescape_or_throw(std::string_view text) {
  auto plain = util::unescaped(text);
  if (!plain)
    throw LineError{"a backslash that begins neither \\\\ nor \\xHH in " + message_quoted(text)};
  return std::move(*plain);
}

bool is_first_line(std::string_view line) {
  return line == format::kMagicLine || line == format::kFirstMagicLine;
}

void check_bytes(std::string_view line, bool tabs) {
  if (util::is_printable(line, tabs)) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(line.data());
  for (size_t i = 0; i < line.size();) {
    const size_t length = format::utf8_length(bytes + i, line.size() - i);
    const bool control = bytes[i] == 0x7f || (bytes[i] < 0x20 && !(tabs && bytes[i] == '\t'));
    if (length == 0 || control) {
      throw LineError{fmt::format("byte {} is 0x{:02x}, which must be escaped", i + 1, bytes[i])};
    }
    i += length;
  }
}

Field read_meta(std::string_view line) {
  const size_t colon = line.find(": ");
  if (!line.starts_with("# ") || colon == std::string_view::npos ||
      !util::is_key(line.substr(2, colon - 2))) {
    throw LineError{"not a line of the form \"# key: value\""};
  }
  const std::string_view value = line.substr(colon + 2);
  unescape_or_throw(value);
  return {std::string(line.substr(2, colon - 2)), std::string(value)};
}

Entry read_entry(std::string_view line) {
  Entry entry;
  const auto next = [&line] {
    const std::string_view part = line.substr(0, line.find('\t'));
    line.remove_prefix(std::min(part.size() + 1, line.size()));
    return part;
  };
  bool more = line.find('\t') != std::string_view::npos;
  std::string_view number = next();
  if (number.starts_with('@')) {
    entry.kind = number.substr(1);
    if (!util::is_kind(entry.kind)) {
      throw LineError{fmt::format("{} is not a kind of entry", message_quoted(number))};
    }
    if (!more) throw LineError{"the kind is not followed by a number of bytes"};
    more = line.find('\t') != std::string_view::npos;
    number = next();
  }
  const auto bytes = util::read_signed(number);
  if (!bytes) {
    throw LineError{
        fmt::format("{} is not a signed number of bytes of 64 bits", message_quoted(number))};
  }
  entry.bytes = *bytes;
  entry.fields = line;
  Fields fields(entry);
  while (more) {
    more = line.find('\t') != std::string_view::npos;
    fields.add(next());
  }
  fields.check();
  return entry;
}

Frame read_frame(std::string_view line, ModuleTable& modules) {
  Frame frame;
  const size_t last = line.rfind('\t');
  if (last == std::string_view::npos) {
    read_place(line, modules, frame);
    return frame;
  }
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  if (tabs > 2) {
    throw LineError{
        fmt::format("a frame of {} fields: at most function, source and place", tabs + 1)};
  }
  read_place(line.substr(last + 1), modules, frame);
  const size_t first = line.find('\t');
  const std::string_view function = line.substr(0, first);
  if (function.empty()) throw LineError{"the name of the function is empty"};
  if (function != format::kUnknownFunction) frame.function = read_name(function);
  if (first != last) frame.source = read_source(line.substr(first + 1, last - first - 1));
  return frame;
}

ModuleIndex ModuleTable::index(std::string_view escaped_name) {
  if (!last_name_.empty() && escaped_name == last_name_) return last_;
  const auto known = by_name_.find(escaped_name);
  if (known != by_name_.end()) {
    last_name_ = escaped_name;
    return last_ = known->second;
  }

  const size_t hash = escaped_name.find('#');
  uint32_t generation = 1;
  if (hash != std::string_view::npos) {
    const auto number = util::read_unsigned(escaped_name.substr(hash + 1), kMaxGeneration);
    if (!number || *number < 2) {
      throw LineError{fmt::format("{} is not a module's generation (from 2)",
                                  message_quoted(escaped_name.substr(hash)))};
    }
    generation = static_cast<uint32_t>(*number);
  }
  const std::string path = unescape_or_throw(escaped_name.substr(0, hash));
  if (path.empty()) throw LineError{"the module's path is empty"};
  const ModuleIndex found = index(path, generation);
  by_name_.emplace(escaped_name, found);
  return found;
}

ModuleIndex ModuleTable::index(const std::string& path, uint32_t generation) {
  const auto [place, added] =
      by_path_.try_emplace(std::pair(path, generation), static_cast<ModuleIndex>(modules_.size()));
  if (added) {
    modules_.emplace_back();
    modules_.back().path = path;
    modules_.back().generation = generation;
  }
  return place->second;
}

}  // namespace mtrace::profile
