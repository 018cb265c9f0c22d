#include "model/symbols/perf_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "model/symbols/jit_dump.h"
#include "util/text.h"

namespace mtrace::symbols {
namespace {

std::string_view next_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// Runtimes write hex with or without 0x, leading zeros and capitals.
std::optional<uint64_t> loose_hex(std::string_view word) {
  if (word.starts_with("0x")) word.remove_prefix(2);
  while (word.size() > 1 && word[0] == '0') word.remove_prefix(1);
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return util::read_hex(lower);
}

// The content of a file that belongs to this user or root and was written since `started`; empty:
// it is none.
std::string read_trusted(const std::string& path, const std::string& started) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return {};
  struct stat state = {};
  const bool good = ::fstat(file, &state) == 0 && S_ISREG(state.st_mode) &&
                    (state.st_uid == 0 || state.st_uid == ::geteuid() || ::geteuid() == 0) &&
                    state.st_mtime >= static_cast<time_t>(util::seconds_of(started));
  std::string text;
  char buffer[65536];
  for (ssize_t got = 1; good && got > 0;) {
    got = ::read(file, buffer, sizeof buffer);
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  ::close(file);
  return text;
}

}  // namespace

PerfMap::PerfMap(std::string_view text, uint64_t then) {
  size_t order = 0;
  for (std::string_view line : util::split(text, '\n')) {
    const bool later = static_cast<uint64_t>(line.data() + line.size() - text.data()) > then;
    const auto begin = loose_hex(next_word(line));
    const auto size = loose_hex(next_word(line));
    uint64_t end = 0;
    if (!begin || !size || line.empty() || __builtin_add_overflow(*begin, *size, &end)) continue;
    ranges_.push_back({*begin, end, order++, later, std::string(line)});
    longest_ = std::max(longest_, *size);
  }
  std::stable_sort(ranges_.begin(), ranges_.end(),
                   [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

const std::string* PerfMap::find(uint64_t address) const {
  auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](uint64_t value, const Range& range) { return value < range.begin; });
  const Range* best = nullptr;
  const auto is_better = [&best](const Range& range) {
    if (best == nullptr) return true;
    return range.later == best->later ? range.order > best->order : best->later;
  };
  while (after != ranges_.begin()) {
    --after;
    if (address - after->begin >= longest_) break;
    if (address < after->end && is_better(*after)) best = &*after;
  }
  return best == nullptr ? nullptr : &best->name;
}

PerfMap load_perf_map(int64_t pid, const std::string& started, uint64_t then) {
  return PerfMap(read_trusted(fmt::format("/tmp/perf-{}.map", pid), started), then);
}

PerfMap load_jit_dump(const std::string& path, const std::string& started, uint64_t then) {
  const JitDumpLines lines = jit_dump_lines(read_trusted(path, started), then);
  return PerfMap(lines.text, lines.then);
}

}  // namespace mtrace::symbols
