#include "model/symbols/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace {

constexpr uint32_t kMagic = 0x4a695444;  // "JiTD" on a machine of the same byte order
constexpr uint32_t kVersion = 1;
enum RecordId : uint32_t { kLoad = 0, kMove = 1 };

// The layouts of the specification.
struct FileHeader {
  uint32_t magic;
  uint32_t version;
  uint32_t size;  // of this header
  uint32_t machine;
  uint32_t unused;
  uint32_t pid;
  uint64_t time;
  uint64_t flags;
};
struct RecordHeader {
  uint32_t id;
  uint32_t size;  // of the record, this header included
  uint64_t time;
};
struct Load {  // the name, ended by a zero, and the code follow
  uint32_t pid;
  uint32_t tid;
  uint64_t virtual_address;
  uint64_t address;
  uint64_t size;
  uint64_t index;
};
struct Move {
  uint32_t pid;
  uint32_t tid;
  uint64_t virtual_address;
  uint64_t old_address;
  uint64_t address;
  uint64_t size;
  uint64_t index;
};
static_assert(sizeof(FileHeader) == 40 && sizeof(RecordHeader) == 16 && sizeof(Load) == 40 &&
              sizeof(Move) == 48);

// Takes a T from the beginning of `bytes`. False: there are too few.
template <typename T>
bool take(std::string_view& bytes, T& to) {
  if (bytes.size() < sizeof to) return false;
  std::memcpy(&to, bytes.data(), sizeof to);
  bytes.remove_prefix(sizeof to);
  return true;
}

class Records {
 public:
  // The content of one record, behind its header.
  void add(uint32_t id, std::string_view content) {
    if (id == kLoad) add_load(content);
    if (id == kMove) add_move(content);
  }
  std::string& text() { return text_; }

 private:
  void add_load(std::string_view content) {
    Load load;
    if (!take(content, load)) return;
    std::string name(content.substr(0, content.find('\0')));
    std::replace(name.begin(), name.end(), '\n', ' ');
    line(load.address, load.size, name);
    names_[load.index] = std::move(name);
  }
  void add_move(std::string_view content) {
    Move move;
    if (!take(content, move)) return;
    const auto name = names_.find(move.index);
    if (name != names_.end()) line(move.address, move.size, name->second);
  }
  void line(uint64_t address, uint64_t size, const std::string& name) {
    fmt::format_to(std::back_inserter(text_), "{:x} {:x} {}\n", address, size, name);
  }

  std::string text_;
  absl::flat_hash_map<uint64_t, std::string> names_;  // by index of the code
};

}  // namespace

JitDumpLines jit_dump_lines(std::string_view file, uint64_t then) {
  JitDumpLines lines;
  std::string_view rest = file;
  FileHeader header;
  if (!take(rest, header) || header.magic != kMagic || header.version != kVersion ||
      header.size < sizeof header || header.size > file.size()) {
    return lines;
  }
  rest = file.substr(header.size);
  Records records;
  for (;;) {
    std::string_view record = rest;
    RecordHeader about;
    if (!take(record, about) || about.size < sizeof about || about.size > rest.size()) break;
    records.add(about.id, record.substr(0, about.size - sizeof about));
    rest.remove_prefix(about.size);
    if (file.size() - rest.size() <= then) lines.then = records.text().size();
  }
  lines.text = std::move(records.text());
  return lines;
}

}  // namespace mtrace::symbols
