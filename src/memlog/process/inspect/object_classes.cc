#include "process/inspect/object_classes.h"

#include "model/symbols/data_symbol.h"
#include "model/symbols/elf_file.h"
#include "process/inspect/process.h"

namespace mtrace::process {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

// Reads no further than the string, which may be the last of its mapping.
std::string read_string(pid_t pid, uint64_t address) {
  constexpr uint64_t kPiece = 64;
  constexpr size_t kMost = 4096;
  std::string text;
  while (text.size() < kMost) {
    char piece[kPiece];
    const size_t size = kPiece - address % kPiece;
    if (!read_memory(pid, address, piece, size)) return {};
    const size_t length = ::strnlen(piece, size);
    text.append(piece, length);
    if (length != size) return text;
    address += size;
  }
  return {};
}

// Returns what `symbol` demangles to behind `prefix`; empty: something else.
std::string named(const std::string& symbol, const std::string& prefix) {
  return symbol.starts_with(prefix) ? symbol.substr(prefix.size()) : std::string();
}

}  // namespace

ObjectClasses::ObjectClasses(pid_t pid, symbols::SearchPath where)
    : pid_(pid),
      where_(std::move(where)),
      pages_(pid),
      map_(memory_map(pid).value_or(std::vector<Mapping>())) {
  uint64_t any = 0;
  const auto file = std::find_if(map_.begin(), map_.end(), [](const Mapping& one) {
    return one.readable && !one.inode.empty();
  });
  if (file != map_.end() && read_memory(pid, file->begin, &any, kWord)) return;
  throw std::runtime_error(fmt::format("{}: cannot read its memory: {}", pid,
                                       map_.empty() ? "it has ended" : std::strerror(errno)));
}

const std::string& ObjectClasses::at(uint64_t address, uint64_t size) {
  const uint64_t table = address % kWord == 0 && size >= kWord ? word(address) : 0;
  if (table == 0 || table % kWord != 0 || in_file(table) == nullptr) return none_;
  const auto [known, is_new] = known_.try_emplace(table);
  if (is_new) known->second = find(table);
  return known->second;
}

uint64_t ObjectClasses::word(uint64_t address) {
  constexpr uint64_t kWindow = 256 << 10;
  if (window_.empty() || address - window_begin_ >= kWindow) {
    Mapping pages;
    pages.begin = window_begin_ = address / kWindow * kWindow;
    pages.end = pages.begin + kWindow;
    pages.resident = kWindow;  // at most
    window_.assign(kWindow / kWord, 0);
    std::vector<Range> filled;
    pages_.find(pages, PageMap::Pages::kFilled, filled);
    for (const Range& one : filled) {
      uint64_t* const to = window_.data() + (one.begin - window_begin_) / kWord;
      read_memory(pid_, one.begin, to, one.end - one.begin);
    }
  }
  return window_[(address - window_begin_) / kWord];
}

// Also behind a file's variables: a program that is linked to its address has copies of tables that
// libraries have.
const Mapping* ObjectClasses::in_file(uint64_t address) const {
  const auto at =
      std::upper_bound(map_.begin(), map_.end(), address,
                       [](uint64_t place, const Mapping& one) { return place < one.end; });
  if (at == map_.end() || address < at->begin || !at->readable || at->shared) return nullptr;
  if (!at->inode.empty()) return &*at;
  const bool behind = at != map_.begin() && (at - 1)->end == at->begin && !(at - 1)->inode.empty();
  return behind && at->path.empty() ? &*(at - 1) : nullptr;
}

// The mangled name in an object of a class derived from std::type_info; empty: there is none.
std::string ObjectClasses::type_name(uint64_t information) const {
  uint64_t words[2] = {};  // virtual table, name
  if (information % kWord != 0 || in_file(information) == nullptr ||
      !read_memory(pid_, information, words, sizeof words)) {
    return {};
  }
  return read_string(pid_, words[1]);
}

std::string ObjectClasses::find(uint64_t table) {
  uint64_t before[2] = {};  // of this part in the object, type information
  if (!read_memory(pid_, table - sizeof before, before, sizeof before) || before[0] != 0) return {};
  if (before[1] == 0) return find_symbol(table);
  const std::string name = type_name(before[1]);
  uint64_t own_table = 0;  // of the type information, which is an object, too
  uint64_t own = 0;
  if (name.empty() || !read_memory(pid_, before[1], &own_table, kWord) ||
      !read_memory(pid_, own_table - kWord, &own, kWord) ||
      !type_name(own).starts_with("N10__cxxabiv1")) {
    return {};
  }
  // A name with * is compared by its address.
  const std::string symbol = "_ZTI" + name.substr(name[0] == '*' ? 1 : 0);
  return named(symbols::demangle(symbol.c_str()), "typeinfo for ");
}

// Without type information (-fno-rtti). Each look reads the symbols of a file.
std::string ObjectClasses::find_symbol(uint64_t table) {
  constexpr int kMostLookups = 500;
  constexpr std::string_view kFirst = "+0x10";  // behind the two words
  uint64_t function = 0;
  if (!read_memory(pid_, table, &function, kWord)) return {};
  const Mapping* const code = in_file(function);
  if (code == nullptr || !code->executable || ++lookups_ > kMostLookups) return {};
  const std::string& inode = in_file(table)->inode;
  const auto first = std::find_if(map_.begin(), map_.end(),
                                  [&](const Mapping& one) { return one.inode == inode; });
  std::string found =
      named(symbols::data_symbol_of({where_, first->path, open_mapped(pid_, *first), first->begin},
                                    {table}),
            "vtable for ");
  if (!found.ends_with(kFirst)) return {};
  return found.substr(0, found.size() - kFirst.size());
}

}  // namespace mtrace::process
