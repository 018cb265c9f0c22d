#include "model/symbols/jit_dump.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace mtrace::symbols {
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
