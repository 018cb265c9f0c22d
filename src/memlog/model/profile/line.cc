#include "model/profile/line.h"

#include <absl/container/node_hash_set.h>
#include <pthread.h>

#include "format/escape.h"
#include "format/memlog.h"
#include "model/profile/model.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

// Held across fork: children make names, too.
constinit std::mutex g_lock;
[[maybe_unused]] const int g_held_across_fork =
    ::pthread_atfork([] { g_lock.lock(); }, [] { g_lock.unlock(); }, [] { g_lock.unlock(); });

}  // namespace

const std::string Name::kNone;

Name::Name(std::string_view text) {
  if (text.empty()) return;
  // Never destroyed: names may be used until the very end.
  static auto& names = *new absl::node_hash_set<std::string, NameHash, std::equal_to<>>;
  const std::lock_guard<std::mutex> lock(g_lock);
  auto known = names.find(text);
  if (known == names.end()) known = names.emplace(text).first;
  text_ = &*known;
}

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

ModuleIndex ModuleTable::add(const Module& module) {
  const ModuleIndex found = index(module.path, module.generation);
  if (!modules_[found].described) modules_[found] = module;
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

namespace {

using namespace format;

// PATH[#G] [build-id=HEX] base=0xHEX [key=value]*. A path may hold spaces and even "a=b", so the
// fields are taken from the right, and build-id or base is the leftmost one.
void module(const Field& line, ModuleTable& modules) {
  std::string_view rest = line.value;
  std::optional<std::string> build_id;
  std::optional<uint64_t> base;
  bool python = false;
  while (!build_id) {
    const size_t space = rest.rfind(' ');
    if (space == std::string_view::npos) break;
    const std::string_view word = rest.substr(space + 1);
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || !util::is_key(word.substr(0, equals))) break;
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "build-id") {
      build_id = util::read_bytes(value);
      if (!build_id) {
        throw LineError{fmt::format("module: {} is not a build-id", message_quoted(value))};
      }
    } else if (base) {
      break;
    } else if (key == "base") {
      if (value.starts_with("0x")) base = util::read_hex(value.substr(2));
      if (!base) throw LineError{fmt::format("module: {} is not 0xHEX", message_quoted(value))};
    } else {
      python |= word == kModulePython;
    }
    rest = rest.substr(0, space);
  }
  if (!base) throw LineError{"module: has no base=0xHEX"};
  Module& known = modules[modules.index(rest)];
  if (known.described)
    throw LineError{fmt::format("module: {} stands there twice", message_quoted(rest))};
  known.described = true;
  known.base = *base;
  known.python = python;
  if (build_id) known.build_id = *build_id;
}

void host(const Field& line, Header& header) {
  const auto words = util::split(line.value, ' ');
  header.host = unescape_or_throw(words[0]);
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string_view::npos || !util::is_key(words[i].substr(0, equals))) {
      bad_value(line, "\"NAME boot-id=UUID arch=NAME\"");
    }
    if (words[i].starts_with("boot-id=")) header.boot_id = words[i].substr(equals + 1);
  }
}

void kind(const Field& line, Header& header) {
  KindTotal total = kind_value(line);
  for (const KindTotal& known : header.kinds) {
    if (known.kind == total.kind) {
      throw LineError{fmt::format("kind: {} stands there twice", total.kind)};
    }
  }
  header.kinds.push_back(std::move(total));
}

std::vector<Field> reports(const Field& line) {
  std::vector<Field> counts = counts_value(line, false);
  if (counts.size() != 2 || counts[0].key != "written" || counts[1].key != "failed") {
    bad_value(line, "\"written=N failed=N\"");
  }
  return counts;
}

void merged(const Field& line, Header& header) {
  const size_t space = line.value.find(' ');
  const auto first = util::read_unsigned(line.value.substr(0, space), UINT32_MAX);
  const bool good = first && *first != 0 && space != std::string::npos &&
                    line.value.substr(space).starts_with(" to ") &&
                    util::read_unsigned(line.value.substr(space + 4), UINT32_MAX);
  if (!good) {
    bad_value(line, "\"FIRST to LAST\", numbers of reports");
  }
  header.merged = static_cast<int64_t>(*first);
}

void recording(const Field& line, Header& header) {
  if (line.value != "stopped") bad_value(line, "stopped");
  header.stopped = true;
}

Resolved resolved(const Field& line) {
  if (line.value == "no") return Resolved::kNo;
  if (line.value == "partly") return Resolved::kPartly;
  if (line.value == "yes") return Resolved::kYes;
  bad_value(line, "no, partly or yes");
}

// A key that stands once at most: where, and what is to be done with its value.
struct Key {
  const char* name;
  Section section;
  bool required;
  void (*take)(const Field& line, Header& header);
};

constexpr Section kBefore = Section::kBefore;
constexpr Section kAfter = Section::kAfter;

constexpr Key kKeys[] = {
    {kKeyProgram, kBefore, true,
     [](const Field& line, Header& header) {
       header.program = unescape_or_throw(line.value);
       if (header.program.empty()) bad_value(line, "a path");
     }},
    {kKeyCommand, kBefore, false,
     [](const Field& line, Header& header) { header.command = line.value; }},
    {kKeyPid, kBefore, true,
     [](const Field& line, Header& header) { header.pid = number_value(line, 1, INT_MAX); }},
    // 0: the parent is outside of the pid namespace.
    {kKeyParent, kBefore, false,
     [](const Field& line, Header& header) { header.parent = number_value(line, 0, INT_MAX); }},
    {kKeySeq, kBefore, true,
     [](const Field& line, Header& header) { header.seq = number_value(line, 1, UINT32_MAX); }},
    {kKeyMerged, kBefore, false, merged},
    {kKeyTrigger, kBefore, true,
     [](const Field& line, Header& header) {
       header.trigger = unescape_or_throw(line.value);
       if (!util::is_key(header.trigger)) bad_value(line, "a trigger like signal, exit or api");
     }},
    {kKeyLabel, kBefore, false,
     [](const Field& line, Header& header) { header.label = unescape_or_throw(line.value); }},
    {kKeyStarted, kBefore, true,
     [](const Field& line, Header& header) { header.started = time_value(line); }},
    {kKeyTaken, kBefore, true,
     [](const Field& line, Header& header) { header.taken = time_value(line); }},
    {kKeyInherited, kBefore, false,
     [](const Field& line, Header& header) { header.inherited = total_value(line, false); }},
    {kKeyDelta, kBefore, true,
     [](const Field& line, Header& header) { header.delta = total_value(line, true); }},
    {kKeySampled, kBefore, false,
     [](const Field& line, Header& header) { header.sampled = bytes_value(line); }},
    {kKeyLive, kBefore, true,
     [](const Field& line, Header& header) { header.live = total_value(line, false); }},
    {kKeyUsable, kBefore, false,
     [](const Field& line, Header& header) { header.usable = bytes_value(line); }},
    {kKeyPeak, kBefore, false,
     [](const Field& line, Header& header) { header.peak = peak_value(line); }},
    {kKeyPeakError, kBefore, false,
     [](const Field& line, Header& header) { header.peak_error = bytes_value(line); }},
    {kKeyAllocated, kBefore, false,
     [](const Field& line, Header& header) { header.allocated = total_value(line, false); }},
    {kKeyFreed, kBefore, false,
     [](const Field& line, Header& header) { header.freed = total_value(line, false); }},
    {kKeyLost, kBefore, true,
     [](const Field& line, Header& header) { header.lost = counts_value(line, false); }},
    {kKeyRecording, kBefore, false, recording},
    {kKeyHost, kAfter, false, host},
    {kKeyCalls, kAfter, false,
     [](const Field& line, Header& header) { header.calls = counts_value(line, true); }},
    {kKeyFailed, kAfter, false,
     [](const Field& line, Header& header) {
       header.failed_allocations = number_value(line, 0, INT64_MAX);
     }},
    {kKeyUnknownFrees, kAfter, false,
     [](const Field& line, Header& header) {
       header.unknown_frees = number_value(line, 0, INT64_MAX);
     }},
    {kKeyMisuse, kAfter, false,
     [](const Field& line, Header& header) { header.misuse = counts_value(line, true); }},
    {kKeyReports, kAfter, false,
     [](const Field& line, Header& header) { header.reports = reports(line); }},
    {kKeyHeap, kAfter, false,
     [](const Field& line, Header& header) { header.heap = counts_value(line, false); }},
    {kKeyHeapStacks, kAfter, false,
     [](const Field& line, Header& header) { header.heap_stacks = counts_value(line, true); }},
    {kKeyRss, kAfter, false,
     [](const Field& line, Header& header) { header.rss = bytes_value(line); }},
    {kKeyRssMax, kAfter, false,
     [](const Field& line, Header& header) { header.rss_max = bytes_value(line); }},
    {kKeyVirtual, kAfter, false,
     [](const Field& line, Header& header) { header.virtual_size = bytes_value(line); }},
    {kKeyResolution, kAfter, false,
     [](const Field& line, Header& header) {
       header.resolution = decimal_value(line, " ms", "\"N.NNN ms\"");
     }},
    {kKeyUptime, kAfter, false,
     [](const Field& line, Header& header) {
       header.uptime = decimal_value(line, " seconds", "\"N.NNN seconds\"");
     }},
    {kKeyResolved, kAfter, false,
     [](const Field& line, Header& header) { header.resolved = resolved(line); }},
    {kKeyLibrary, kAfter, false,
     [](const Field& line, Header& header) { header.library = line.value; }},
};

const Key* find_key(const std::string& name) {
  const auto* found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const Key& key) { return name == key.name; });
  return found == std::end(kKeys) ? nullptr : found;
}

}  // namespace

Section section_of(const std::string& key) {
  if (key == kKeyModule || key == kKeyKind || key == kKeyRegion) return Section::kAfter;
  const Key* known = find_key(key);
  return known == nullptr ? Section::kAnywhere : known->section;
}

void read_header_line(const Field& line, Header& header, ModuleTable& modules,
                      std::vector<std::string>& seen) {
  if (line.key == kKeyNote) {
    header.notes.push_back(unescape_or_throw(line.value));
  } else if (line.key == kKeyModule) {
    module(line, modules);
  } else if (line.key == kKeyKind) {
    kind(line, header);
  } else if (line.key == kKeyRegion) {
    header.regions.push_back(region_value(line));
  } else if (const Key* key = find_key(line.key)) {
    if (std::find(seen.begin(), seen.end(), line.key) != seen.end()) {
      throw LineError{fmt::format("a second \"# {}:\"", line.key)};
    }
    seen.push_back(line.key);
    key->take(line, header);
  }
}

const char* missing_key(const std::vector<std::string>& seen) {
  for (const Key& key : kKeys) {
    if (key.required && std::find(seen.begin(), seen.end(), key.name) == seen.end()) {
      return key.name;
    }
  }
  return nullptr;
}
namespace {

// "N bytes M blocks" in words.
std::optional<Total> total_of(const std::string_view* words, size_t count, bool with_sign) {
  if (count != 4 || words[1] != "bytes" || words[3] != "blocks") return std::nullopt;
  const auto number = [&](std::string_view word) -> std::optional<int64_t> {
    if (with_sign) return util::read_signed(word);
    const auto value = util::read_unsigned(word, INT64_MAX);
    if (!value) return std::nullopt;
    return static_cast<int64_t>(*value);
  };
  const auto bytes = number(words[0]);
  const auto blocks = number(words[2]);
  if (!bytes || !blocks) return std::nullopt;
  return Total{*bytes, *blocks};
}

}  // namespace

void bad_value(const Field& line, const char* expected) {
  throw LineError{fmt::format("{}: {} is not {}", line.key, message_quoted(line.value), expected)};
}

int64_t number_value(const Field& line, int64_t minimum, int64_t maximum) {
  const auto value = util::read_unsigned(line.value, static_cast<uint64_t>(maximum));
  if (!value || *value < static_cast<uint64_t>(minimum)) {
    bad_value(line, minimum == 1 ? "a number from 1" : "a number");
  }
  return static_cast<int64_t>(*value);
}

std::string time_value(const Field& line) {
  if (!util::is_time(line.value)) bad_value(line, "a time like 2026-11-20T20:15:31.123456Z");
  return line.value;
}

Total total_value(const Field& line, bool with_sign) {
  const auto words = util::split(line.value, ' ');
  const auto total = total_of(words.data(), words.size(), with_sign);
  if (!total) bad_value(line, with_sign ? "\"+N bytes +M blocks\"" : "\"N bytes M blocks\"");
  return *total;
}

uint64_t bytes_value(const Field& line) {
  const std::string_view value = line.value;
  const auto bytes = value.ends_with(" bytes")
                         ? util::read_unsigned(value.substr(0, value.size() - 6), INT64_MAX)
                         : std::nullopt;
  if (!bytes) bad_value(line, "\"N bytes\"");
  return *bytes;
}

Peak peak_value(const Field& line) {
  const auto words = util::split(line.value, ' ');
  const bool shape = words.size() == 3 && words[1] == "bytes" && util::is_time(words[2]);
  const auto bytes = shape ? util::read_unsigned(words[0], INT64_MAX) : std::nullopt;
  if (!bytes) bad_value(line, "\"N bytes TIME\"");
  return {*bytes, std::string(words[2])};
}

KindTotal kind_value(const Field& line) {
  const auto words = util::split(line.value, ' ');
  const auto live =
      util::is_kind(words[0]) ? total_of(&words[0] + 1, words.size() - 1, false) : std::nullopt;
  if (!live) bad_value(line, "\"NAME N bytes M blocks\"");
  return {std::string(words[0]), *live};
}

RegionUse region_value(const Field& line) {
  constexpr std::string_view kNumbers[] = {"resident=", "size="};
  std::string_view rest = line.value;
  std::optional<uint64_t> numbers[2];
  for (size_t i = 0; i < 2; ++i) {
    const size_t space = rest.find(' ');
    if (space != std::string_view::npos && rest.starts_with(kNumbers[i])) {
      const size_t begin = kNumbers[i].size();
      numbers[i] = util::read_unsigned(rest.substr(begin, space - begin), INT64_MAX);
    }
    if (!numbers[i]) bad_value(line, "\"resident=N size=N NAME\"");
    rest.remove_prefix(space + 1);
  }
  if (rest.empty()) bad_value(line, "\"resident=N size=N NAME\"");
  return {unescape_or_throw(rest), *numbers[0], *numbers[1]};
}

std::vector<Field> counts_value(const Field& line, bool any_name) {
  std::vector<Field> counts;
  for (const std::string_view word : util::split(line.value, ' ')) {
    const size_t equals = word.find('=');
    const bool good = equals != std::string_view::npos && equals != 0 &&
                      (any_name || util::is_key(word.substr(0, equals))) &&
                      util::read_unsigned(word.substr(equals + 1));
    if (!good) bad_value(line, "a list of name=number");
    Field count{std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))};
    if (find_field(counts, count.key.c_str()) != nullptr) {
      throw LineError{fmt::format("{}: {}= stands there twice", line.key, count.key)};
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

std::string decimal_value(const Field& line, std::string_view unit, const char* expected) {
  const std::string_view value = line.value;
  const size_t point = value.find('.');
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (point == std::string_view::npos || !value.ends_with(unit) ||
      value.size() < point + 1 + unit.size() || !util::read_unsigned(value.substr(0, point)) ||
      !digits(value.substr(point + 1, value.size() - unit.size() - point - 1))) {
    bad_value(line, expected);
  }
  return std::string(value.substr(0, value.size() - unit.size()));
}

}  // namespace mtrace::profile
