#include "model/profile/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "format/memlog.h"
#include "util/text.h"

namespace mtrace::profile {
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
