#include "surface/fleet/report_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "format/event_log.h"
#include "format/memlog.h"
#include "model/profile/line.h"
#include "util/error.h"
#include "util/file.h"
#include "util/input.h"
#include "util/text.h"
#include "util/time.h"

namespace mtrace::fleet {
namespace {

constexpr std::string_view kSuffix = ".memlog.zst";
constexpr size_t kMostPart = 80;       // characters of a host or program in a name
constexpr size_t kBootDigits = 8;      // of the boot id
constexpr size_t kMostLine = 1 << 20;  // bytes of a meta line; a longer one is no memlog

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '+' || c == '.';
}

// A part of a file name: other bytes are "~" and two hex digits, as is a point at the beginning.
std::string name_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_plain(c) && (c != '.' || !out.empty())) {
      out += c;
    } else {
      out += fmt::format("~{:02x}", static_cast<unsigned char>(c));
    }
    if (out.size() >= kMostPart) break;
  }
  return out.empty() ? "unknown" : out;
}

bool is_name_part(std::string_view text) {
  return !text.empty() && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_plain(c) || c == '~'; });
}

// "2026-11-20T20:15:00.123456Z" as "20261120T201500.123456Z".
std::string compact(std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return time;
}

std::string boot_digits(std::string_view boot_id) {
  std::string out;
  for (const char c : boot_id) {
    if (out.size() < kBootDigits && util::read_hex(std::string(1, c))) out += c;
  }
  return out.empty() ? "0" : out;
}

// ReportKey::process. `program`: a path; `started`: as in a memlog.
std::string process_key(const std::string& host, const std::string& boot_id,
                        const std::string& program, int64_t pid, const std::string& started) {
  return fmt::format("{}/{}-{}-{}-{}", name_part(host), name_part(util::base_name(program)), pid,
                     compact(started), boot_digits(boot_id));
}

// "HOST/NAME" of the path of a file in a store.
std::string last_two_parts(const std::string& path) {
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  return file.parent_path().filename() / file.filename();
}

uint64_t nanoseconds_of(const std::string& time) {
  const auto instant = util::read_instant(time.substr(0, 10), time.substr(11, time.size() - 12));
  return instant && *instant > 0 ? static_cast<uint64_t>(*instant) : 0;
}

// Takes the part behind the last `separator` off `text`; nothing: there is no separator.
std::optional<std::string_view> take_last(std::string_view& text, char separator) {
  const size_t at = text.rfind(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view part = text.substr(at + 1);
  text = text.substr(0, at);
  return part;
}

// Calls `each` with every line, and with whether it ended with a newline. A line longer than
// kMostLine comes cut.
void each_line(util::Input& input, const std::function<void(std::string_view, bool)>& each) {
  std::string buffer(65536, '\0');
  std::string line;
  for (;;) {
    const size_t got = input.read(buffer.data(), buffer.size());
    if (got == 0) break;
    std::string_view rest(buffer.data(), got);
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      if (line.empty()) {
        each(rest.substr(0, end), true);
      } else {
        line.append(rest.substr(0, end));
        each(line, true);
        line.clear();
      }
      rest.remove_prefix(end + 1);
    }
    if (line.size() < kMostLine) line.append(rest);
  }
  if (!line.empty()) each(line, false);
}

// Gathers the meta lines.
class Facts {
 public:
  explicit Facts(const std::string& title) : title_(title) {}

  void take(std::string_view line, bool whole) {
    ++line_;
    if (ended_) fail("lines after # end");
    if (line_ == 1) {
      if (!profile::is_first_line(line)) fail("not a memlog");
    } else if (line == format::kEndLine && whole) {
      ended_ = true;
    } else if (line.starts_with("# ")) {
      try {
        take_meta(profile::read_meta(line));
      } catch (const profile::LineError& error) {
        fail(error.what);
      }
    }
  }

  ReportFacts finish() {
    if (!ended_) fail("the memlog was cut short");
    if (started_.empty() || taken_.empty() || pid_ == 0 || facts_.key.seq == 0) {
      fail("no start, time, pid or number");
    }
    ReportKey& key = facts_.key;
    key.process = process_key(host_, boot_id_, program_, pid_, started_);
    if (key.first == 0) key.first = key.seq;
    if (key.first > key.seq) fail("merged from a later report");
    facts_.taken = nanoseconds_of(taken_);
    return facts_;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw util::FormatError(title_, line_, why);
  }
  size_t line() const { return line_; }

 private:
  void take_meta(const profile::Field& line) {
    const auto number = [](std::string_view text) {
      return static_cast<int64_t>(util::read_unsigned(text, INT64_MAX).value_or(0));
    };
    const auto first_word = [&] { return util::split(line.value, ' ').front(); };
    if (line.key == format::kKeyProgram) {
      program_ = profile::unescape_or_throw(line.value);
    } else if (line.key == format::kKeyPid) {
      pid_ = number(line.value);
    } else if (line.key == format::kKeySeq) {
      facts_.key.seq = number(line.value);
    } else if (line.key == format::kKeyMerged) {
      facts_.key.first = number(first_word());
    } else if (line.key == format::kKeyTrigger) {
      facts_.series = line.value != "snapshot";
    } else if (line.key == format::kKeyStarted && util::is_time(line.value)) {
      started_ = line.value;
    } else if (line.key == format::kKeyTaken && util::is_time(line.value)) {
      taken_ = line.value;
    } else if (line.key == format::kKeyResolved) {
      facts_.named = line.value == "yes";
    } else if (line.key == format::kKeyHost) {
      host_ = profile::unescape_or_throw(first_word());
      constexpr std::string_view kBoot = "boot-id=";
      for (const std::string_view word : util::split(line.value, ' ')) {
        if (word.starts_with(kBoot)) boot_id_ = word.substr(kBoot.size());
      }
    }
  }

  const std::string& title_;
  ReportFacts facts_;
  std::string host_;
  std::string boot_id_;
  std::string program_;
  std::string started_;
  std::string taken_;
  int64_t pid_ = 0;
  size_t line_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string ReportKey::name() const {
  const std::string range = first == seq ? "" : fmt::format("{}to", first);
  return fmt::format("{}-{}{}{}", process, range, seq, kSuffix);
}

std::optional<ReportKey> read_name(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  std::string_view rest = name.substr(0, name.size() - kSuffix.size());
  const auto range = take_last(rest, '-');
  if (!range) return std::nullopt;
  const size_t to = range->find("to");
  const auto seq =
      util::read_unsigned(to == std::string_view::npos ? *range : range->substr(to + 2), INT64_MAX);
  const auto first =
      to == std::string_view::npos ? seq : util::read_unsigned(range->substr(0, to), INT64_MAX);
  if (!seq || !first || *first == 0 || *first > *seq) return std::nullopt;
  const ReportKey key = {std::string(rest), static_cast<int64_t>(*first),
                         static_cast<int64_t>(*seq)};
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos || !is_name_part(rest.substr(0, slash)) ||
      !is_name_part(rest.substr(slash + 1)) || key.name() != name) {
    return std::nullopt;
  }
  return key;
}

ReportFacts read_facts(const std::string& path, const std::string& title) {
  util::Input input(path);
  Facts facts(title);
  try {
    each_line(input, [&](std::string_view line, bool whole) { facts.take(line, whole); });
  } catch (const util::DamagedCompression& damage) {
    throw util::damage_in(title, facts.line(), damage);
  }
  return facts.finish();
}

std::string event_log_name(const std::string& host, const std::string& boot_id,
                           const std::string& program, int64_t pid, uint64_t started) {
  return process_key(host, boot_id, program, pid, util::time_text(started)) + format::kEventsSuffix;
}

bool is_event_log_name(std::string_view name) {
  constexpr size_t kMostName = 255;
  const size_t slash = name.find('/');
  return slash != std::string_view::npos && name.ends_with(format::kEventsSuffix) &&
         name.size() <= kMostName && is_name_part(name.substr(0, slash)) &&
         is_name_part(name.substr(slash + 1));
}

ReportKey key_of(const profile::Header& header) {
  return {process_key(header.host, header.boot_id, header.program, header.pid, header.started),
          header.merged.value_or(header.seq), header.seq};
}

ReportKey key_of_file(const std::string& path, const profile::Header& beginning) {
  const auto named = read_name(last_two_parts(path));
  if (named) {
    profile::Header header = beginning;
    header.host = named->host();
    header.boot_id = named->process.substr(named->process.rfind('-') + 1);
    const ReportKey key = key_of(header);
    if (key == *named) return key;
  }
  return read_facts(path, path).key;
}

std::vector<ReportKey> HeldReports::add(const ReportKey& key) {
  Numbers& numbers = processes_[key.process];
  std::vector<ReportKey> contained;
  for (auto one = numbers.lower_bound(key.first); one != numbers.end() && one->first <= key.seq;) {
    const ReportKey other = {key.process, one->second, one->first};
    if (other.first < key.first || other == key) {
      ++one;
      continue;
    }
    contained.push_back(other);
    one = numbers.erase(one);
  }
  numbers.emplace(key.seq, key.first);
  return contained;
}

void HeldReports::remove(const ReportKey& key) {
  const auto process = processes_.find(key.process);
  if (process == processes_.end()) return;
  const auto number = process->second.find(key.seq);
  if (number == process->second.end() || number->second != key.first) return;
  process->second.erase(number);
  if (process->second.empty()) processes_.erase(process);
}

bool HeldReports::touches(const ReportKey& key) const {
  const auto process = processes_.find(key.process);
  if (process == processes_.end()) return false;
  const auto next = process->second.lower_bound(key.first);
  return next != process->second.end() && next->second <= key.seq;
}

bool HeldReports::holds(const ReportKey& key) const {
  const auto process = processes_.find(key.process);
  if (process == processes_.end()) return false;
  const Numbers& numbers = process->second;
  // From the last number down, each report by the one that contains it.
  for (int64_t wanted = key.seq; wanted >= key.first;) {
    const auto holder = numbers.lower_bound(wanted);
    if (holder == numbers.end() || holder->second > wanted) return false;
    wanted = holder->second - 1;
  }
  return true;
}

}  // namespace mtrace::fleet
