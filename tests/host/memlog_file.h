// A memlog as the tests read it. Written from the grammar in src/format/memlog.h, on purpose
// without any of the product's code, so that the product is not checked by itself.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtrace::test {

struct Frame {
  std::string function;  // escaped as in the file; empty: not resolved
  std::string source;    // path:line
  std::string module;    // escaped path without generation; empty: no module, or inlined
  unsigned generation = 1;
  uint64_t offset = 0;  // ELF address, or the absolute one without module
  bool inlined = false;
  bool guessed = false;  // marked with "?"

  bool operator==(const Frame&) const = default;
};

struct Entry {
  std::string kind;  // empty: heap
  int64_t bytes = 0;
  int64_t blocks = 0;
  int64_t live = 0;
  std::map<std::string, int64_t> counts;  // further fields that are numbers, by key
  std::string call;                       // the function that was called; empty: not told
  std::string before;                     // another stack; empty: none is told
  std::string mapped;                     // "rw- private,anonymous"; empty: not told
  std::string stack;
  bool cut = false;
  std::vector<Frame> frames;
  int line = 0;  // in the file, for messages

  // 0: it has no such field.
  int64_t count(const std::string& key) const { return counts.contains(key) ? counts.at(key) : 0; }
};

struct Amount {
  int64_t bytes = 0;
  int64_t blocks = 0;

  bool operator==(const Amount&) const = default;
  Amount& operator+=(const Amount& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    return *this;
  }
};

struct Memlog {
  std::string path;
  std::vector<std::pair<std::string, std::string>> meta;
  std::vector<Entry> entries;
  size_t meta_before_entries = 0;

  // First value of a key; empty when there is none.
  std::string get(const std::string& key) const;
  // All of them.
  std::vector<std::string> all(const std::string& key) const {
    std::vector<std::string> found;
    for (const auto& [name, value] : meta) {
      if (name == key) found.push_back(value);
    }
    return found;
  }
  bool has(const std::string& key) const;
  int64_t number(const std::string& key) const;
  Amount amount(const std::string& key) const;  // "N bytes M blocks"; zero when absent
  // The numbers of the words NAME=NUMBER of a key.
  std::map<std::string, int64_t> numbers(const std::string& key) const;
};

struct MemlogError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws MemlogError ("path:line: what") for anything that is not the grammar.
Memlog parse_memlog(const std::string& text, const std::string& path);
Memlog read_memlog(const std::string& path);

// What is wrong with the content of one memlog: order, sums, keys, modules, file name. Empty when
// nothing is.
std::vector<std::string> complaints(const Memlog& log);

// The memlogs of one process in the order of seq, and what is wrong with them as a series:
// inherited + deltas = live, for the process and for each stack.
std::vector<std::string> series_complaints(const std::vector<Memlog>& logs);

// Memlogs of a directory by process ("name-pid" or "name-pid.2"), each ordered by seq.
// Throws MemlogError for a damaged one.
std::map<std::string, std::vector<Memlog>> read_directory(const std::string& directory);

std::string describe(const Amount& amount);
void PrintTo(const Amount& amount, std::ostream* out);  // for GoogleTest

}  // namespace mtrace::test
