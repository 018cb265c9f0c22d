#include "surface/fleet/report_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/event_log.h"
#include "util/file.h"
#include "util/text.h"
#include "util/time.h"

namespace mtrace::fleet {
namespace {

constexpr std::string_view kSuffix = ".memlog.zst";
constexpr size_t kMostPart = 80;   // characters of a host or program in a name
constexpr size_t kBootDigits = 8;  // of the boot id

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

// Whether `name` is HOST/REST, of the characters of name_part().
bool is_file_name(std::string_view name) {
  const size_t slash = name.find('/');
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '.' &&
           std::all_of(part.begin(), part.end(), [](char c) { return is_plain(c) || c == '~'; });
  };
  return slash != std::string_view::npos && is_part(name.substr(0, slash)) &&
         is_part(name.substr(slash + 1));
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

std::string key_text(const std::string& host, const std::string& boot_id,
                     const std::string& program, int64_t pid, const std::string& started) {
  return fmt::format("{}/{}-{}-{}-{}", name_part(host), name_part(util::base_name(program)), pid,
                     compact(started), boot_digits(boot_id));
}

}  // namespace

std::string process_key(const profile::Header& header) {
  return key_text(header.host, header.boot_id, header.program, header.pid, header.started);
}

std::string ReportKey::name() const { return fmt::format("{}-{}{}", process, seq, kSuffix); }

std::optional<ReportKey> read_name(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || !is_file_name(name.substr(0, dash))) return std::nullopt;
  const std::string_view number = name.substr(dash + 1);
  const auto seq = util::read_unsigned(number.substr(0, number.find('.')), INT64_MAX);
  const ReportKey key = {std::string(name.substr(0, dash)), static_cast<int64_t>(seq.value_or(0))};
  if (key.seq == 0 || key.name() != name) return std::nullopt;
  return key;
}

std::string event_log_name(const std::string& host, const std::string& boot_id,
                           const std::string& program, int64_t pid, uint64_t started) {
  return key_text(host, boot_id, program, pid, util::time_text(started)) + format::kEventsSuffix;
}

bool is_event_log_name(std::string_view name) {
  constexpr size_t kMostName = 255;
  return name.ends_with(format::kEventsSuffix) && name.size() <= kMostName && is_file_name(name);
}

}  // namespace mtrace::fleet
