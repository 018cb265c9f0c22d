#include "profile/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "format/memlog.h"
#include "profile/text.h"

namespace mtrace::profile {
namespace {

using namespace format;

constexpr const char* kBeforeKeys[] = {kKeyProgram,   kKeyCommand, kKeyPid,       kKeyParent,
                                       kKeySeq,       kKeyTrigger, kKeyLabel,     kKeyStarted,
                                       kKeyTaken,     kKeyDelta,   kKeyInherited, kKeyLive,
                                       kKeyAllocated, kKeyFreed,   kKeyLost};
constexpr const char* kAfterKeys[] = {kKeyModule, kKeyHost,     kKeyRss,
                                      kKeyUptime, kKeyResolved, kKeyLibrary};
constexpr const char* kRequiredKeys[] = {kKeyProgram, kKeyPid,   kKeySeq,  kKeyTrigger, kKeyStarted,
                                         kKeyTaken,   kKeyDelta, kKeyLive, kKeyLost};

[[noreturn]] void bad(const Field& line, const char* expected) {
  throw LineError{fmt::format("{}: {} is not {}", line.key, quoted(line.value), expected)};
}

template <typename Keys>
bool among(const Keys& keys, const std::string& key) {
  return std::any_of(std::begin(keys), std::end(keys), [&](const auto& k) { return key == k; });
}

int64_t number(const Field& line, int64_t minimum, int64_t maximum) {
  const auto value = read_unsigned(line.value, static_cast<uint64_t>(maximum));
  if (!value || *value < static_cast<uint64_t>(minimum)) {
    bad(line, minimum == 1 ? "a number from 1" : "a number");
  }
  return static_cast<int64_t>(*value);
}

std::string time(const Field& line) {
  if (!is_time(line.value)) bad(line, "a time like 2026-11-20T20:15:31.123456Z");
  return line.value;
}

// "N bytes M blocks", signed or not.
Total total(const Field& line, bool with_sign) {
  const auto words = split(line.value, ' ');
  const auto count = [&](std::string_view word) -> std::optional<int64_t> {
    if (with_sign) return read_signed(word);
    const auto value = read_unsigned(word, INT64_MAX);
    if (!value) return std::nullopt;
    return static_cast<int64_t>(*value);
  };
  const bool shape = words.size() == 4 && words[1] == "bytes" && words[3] == "blocks";
  const auto bytes = shape ? count(words[0]) : std::nullopt;
  const auto blocks = shape ? count(words[2]) : std::nullopt;
  if (!bytes || !blocks) bad(line, with_sign ? "\"+N bytes +M blocks\"" : "\"N bytes M blocks\"");
  return {*bytes, *blocks};
}

std::vector<Field> lost(const Field& line) {
  std::vector<Field> counts;
  for (const std::string_view word : split(line.value, ' ')) {
    const size_t equals = word.find('=');
    const bool good = equals != std::string_view::npos && is_key(word.substr(0, equals)) &&
                      read_unsigned(word.substr(equals + 1));
    if (!good) bad(line, "a list of name=number");
    Field count{std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))};
    if (find_field(counts, count.key.c_str()) != nullptr) {
      throw LineError{fmt::format("lost: {}= stands there twice", count.key)};
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

// PATH[#G] [build-id=HEX] base=0xHEX [key=value]*. A path may hold spaces and even "a=b", so the
// fields are taken from the right, and build-id or base is the leftmost one.
void module(const Field& line, ModuleTable& modules) {
  std::string_view rest = line.value;
  std::optional<std::string> build_id;
  std::optional<uint64_t> base;
  while (!build_id) {
    const size_t space = rest.rfind(' ');
    if (space == std::string_view::npos) break;
    const std::string_view word = rest.substr(space + 1);
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || !is_key(word.substr(0, equals))) break;
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "build-id") {
      build_id = read_bytes(value);
      if (!build_id) {
        throw LineError{fmt::format("module: {} is not a build-id", quoted(value))};
      }
    } else if (base) {
      break;
    } else if (key == "base") {
      if (value.starts_with("0x")) base = read_hex(value.substr(2));
      if (!base) throw LineError{fmt::format("module: {} is not 0xHEX", quoted(value))};
    }
    rest = rest.substr(0, space);
  }
  if (!base) throw LineError{"module: has no base=0xHEX"};
  Module& known = modules[modules.index(rest)];
  if (known.described) throw LineError{fmt::format("module: {} stands there twice", quoted(rest))};
  known.described = true;
  known.base = *base;
  if (build_id) known.build_id = *build_id;
}

void host(const Field& line, Header& header) {
  const auto words = split(line.value, ' ');
  header.host = unescape_or_throw(words[0]);
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string_view::npos || !is_key(words[i].substr(0, equals))) {
      bad(line, "\"NAME boot-id=UUID arch=NAME\"");
    }
    if (words[i].starts_with("boot-id=")) header.boot_id = words[i].substr(equals + 1);
  }
}

Resolved resolved(const Field& line) {
  if (line.value == "no") return Resolved::kNo;
  if (line.value == "partly") return Resolved::kPartly;
  if (line.value == "yes") return Resolved::kYes;
  bad(line, "no, partly or yes");
}

std::string seconds(const Field& line) {
  const size_t point = line.value.find('.');
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::string_view value = line.value;
  const std::string_view suffix = " seconds";
  if (point == std::string::npos || !value.ends_with(suffix) ||
      !read_unsigned(value.substr(0, point)) ||
      !digits(value.substr(point + 1, value.size() - suffix.size() - point - 1))) {
    bad(line, "\"N.NNN seconds\"");
  }
  return std::string(value.substr(0, value.size() - suffix.size()));
}

uint64_t rss(const Field& line) {
  const std::string_view value = line.value;
  const auto bytes = value.ends_with(" bytes")
                         ? read_unsigned(value.substr(0, value.size() - 6), INT64_MAX)
                         : std::nullopt;
  if (!bytes) bad(line, "\"N bytes\"");
  return *bytes;
}

}  // namespace

Section section_of(const std::string& key) {
  if (among(kBeforeKeys, key)) return Section::kBefore;
  if (among(kAfterKeys, key)) return Section::kAfter;
  return Section::kAnywhere;
}

void read_header_line(const Field& line, Header& header, ModuleTable& modules,
                      std::vector<std::string>& seen) {
  const std::string& key = line.key;
  if (key == kKeyNote) {
    header.notes.push_back(unescape_or_throw(line.value));
    return;
  }
  if (section_of(key) == Section::kAnywhere) return;
  if (key == kKeyModule) {
    module(line, modules);
    return;
  }
  if (among(seen, key)) throw LineError{fmt::format("a second \"# {}:\"", key)};
  seen.push_back(key);
  if (key == kKeyProgram) {
    header.program = unescape_or_throw(line.value);
    if (header.program.empty()) bad(line, "a path");
  } else if (key == kKeyCommand) {
    header.command = line.value;
  } else if (key == kKeyPid) {
    header.pid = number(line, 1, INT_MAX);
  } else if (key == kKeyParent) {
    number(line, 0, INT_MAX);  // 0: the parent is outside of the pid namespace
  } else if (key == kKeySeq) {
    header.seq = number(line, 1, UINT32_MAX);
  } else if (key == kKeyTrigger) {
    header.trigger = unescape_or_throw(line.value);
    if (!is_key(header.trigger)) bad(line, "a trigger like signal, exit or api");
  } else if (key == kKeyLabel) {
    header.label = unescape_or_throw(line.value);
  } else if (key == kKeyStarted) {
    header.started = time(line);
  } else if (key == kKeyTaken) {
    header.taken = time(line);
  } else if (key == kKeyInherited) {
    header.inherited = total(line, false);
  } else if (key == kKeyDelta) {
    header.delta = total(line, true);
  } else if (key == kKeyLive) {
    header.live = total(line, false);
  } else if (key == kKeyAllocated) {
    header.allocated = total(line, false);
  } else if (key == kKeyFreed) {
    header.freed = total(line, false);
  } else if (key == kKeyLost) {
    header.lost = lost(line);
  } else if (key == kKeyHost) {
    host(line, header);
  } else if (key == kKeyRss) {
    header.rss = rss(line);
  } else if (key == kKeyUptime) {
    header.uptime = seconds(line);
  } else if (key == kKeyResolved) {
    header.resolved = resolved(line);
  } else {
    header.library = line.value;
  }
}

const char* missing_key(const std::vector<std::string>& seen) {
  for (const char* key : kRequiredKeys) {
    if (!among(seen, key)) return key;
  }
  return nullptr;
}

}  // namespace mtrace::profile
